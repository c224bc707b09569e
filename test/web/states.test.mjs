// SPDX-License-Identifier: Apache-2.0
// The page while it waits, when time goes on, and when something is missing.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { Daemon, NOW, answerInstead, inspect, loaded, loads, mirror, ofGraph, open, text } from "./browser.mjs";
import { binary } from "./columns.mjs";
import { browser, daemon, page, useFixture } from "./fixture.mjs";

const LARGEST_BUNDLE = 108 * 1024; // as in docs/overhead.md

describe("the page's states", () => {
  useFixture();

  // Holds back answers of `path` until they are released.
  async function hold(path) {
    let letGo;
    const held = new Promise((resolve) => (letGo = resolve));
    await page.route(`${daemon.url}${path}*`, async (route) => {
      await held;
      await route.continue().catch(() => {}); // cancelled meanwhile
    });
    return letGo;
  }

  it("shows what a long query waits for, and can cancel and repeat it", async () => {
    const letGo = await hold("/profile");
    await page.goto(`${daemon.url}/?pid=4242`);
    await page.waitForSelector("#stage .waiting");
    assert.match(await text(page, "#stage .waiting"), /The daemon computes the profile/);
    await inspect(page, "waiting");
    await page.click("#stage .waiting button");
    assert.match(await text(page, "#notice"), /Cancelled/);
    letGo();
    await loaded(page);
    await page.click("#notice button");
    await loaded(page, 2);
    assert.equal(await page.$("#notice"), null);
    assert.equal((await mirror(page))[0].value, 10470);
    assert.deepEqual(page.troubles, []);
  });

  it("says when only the caller's own processes are visible, and what that means", async () => {
    await page.route(ofGraph, async (route) => {
      const answer = await page.context().request.get(route.request().url().replace("columns-binary", "columns"));
      await route.fulfill({ body: binary({ ...(await answer.json()), visible_uid: 1000 }) });
    });
    await open(page, daemon.url);
    assert.match(await text(page, "#facts"), /Seen.*own processes only uid 1000/);
    const explanation = await page.$eval("#facts a[href$='#seen']", (link) => link.getAttribute("href"));
    await page.goto(new URL(explanation, daemon.url).href);
    assert.match(await text(page, "#seen + p"), /Other users see only their own processes/);
    assert.deepEqual(page.troubles, []);
  });

  it("says that it shows a file, of which host and which time, and does not go on", async () => {
    const window = { from: "2026-01-31T11:05:30.000Z", to: "2026-01-31T14:05:30.000Z", from_ms: NOW - 10800_000, to_ms: NOW };
    await answerInstead(page, "/healthz", (answer) => ({ ...answer, file: { name: "incident.db", host: "web-1", window } }));
    await open(page, daemon.url);
    await page.waitForSelector("#opened-file");
    assert.match(await text(page, "#opened-file"), /^A file of the host web-1, from 2026-01-31 11:05:30 to 2026-01-31 14:05:30\. Its end is .now., and nothing is sampled\. incident\.db$/);
    assert.equal(await text(page, "#health"), "file");
    assert.equal(await page.$("#live"), null);
    assert.equal(await page.title(), "Whole machine – web-1 – flamed");
    await inspect(page, "opened-file");
    await answerInstead(page, "/healthz", (answer) => ({ ...answer, file: { name: "a.db", host: null, window } }));
    await open(page, daemon.url);
    await page.waitForSelector("#opened-file");
    assert.match(await text(page, "#opened-file"), /^A file of an unknown host, /);
  });

  it("sends the other queries once the graph is painted, or takes long", async () => {
    const asked = [];
    page.on("request", (request) => asked.push(new URL(request.url()).pathname));
    const beside = () => asked.filter((path) => ["/processes", "/timeline"].includes(path)).length;
    let answered = () => 0;
    await page.route(ofGraph, async (route) => {
      const answer = await page.context().request.get(route.request().url());
      const before = beside();
      answered = () => before;
      await route.fulfill({ response: answer });
    });
    await open(page, daemon.url);
    assert.equal(answered(), 0);
    assert.ok(beside() > 0);
    // No query waits forever for another one.
    await page.unroute(ofGraph);
    const letGo = await hold("/profile");
    const before = beside();
    await page.click('#ranges [data-from="now-5m"]');
    await page.waitForRequest((request) => new URL(request.url()).pathname === "/processes");
    assert.ok(beside() > before);
    letGo();
    await loaded(page, 2);
    assert.deepEqual(page.troubles, []);
  });

  it("keeps its content until the next answer arrives", async () => {
    await open(page, `${daemon.url}/?pid=4242`);
    const letGo = await hold("/profile");
    const before = await loads(page);
    await page.click('#ranges [data-from="now-5m"]');
    await page.waitForSelector(".progress");
    assert.equal((await mirror(page))[0].value, 10470);
    letGo();
    await loaded(page, before + 1);
    assert.ok((await mirror(page))[0].value < 10470);
  });

  it("drops a query for a later one", async () => {
    await open(page, daemon.url);
    const letGo = await hold("/profile");
    await page.click('[data-id="31337@70000"] .name');
    await page.click('[data-id="4242@90000"] .name');
    letGo();
    await page.waitForFunction(() => document.querySelector(".flame-item")?.dataset.value === "10470");
    assert.match(await text(page, "#profile-title"), /^checkout-api/);
    assert.deepEqual(page.troubles, []);
  });

  it("follows the time while it is live, and stays otherwise", async () => {
    const going = await Daemon.start(process.env.FLAMED_FIXTURE);
    const live = await browser.page(going.url);
    try {
      await open(live, `${going.url}/?pid=4242&from=now-5m`);
      const [{ value }] = await mirror(live);
      const times = await loads(live);
      await going.goOn(30);
      await live.clock.setFixedTime(NOW + 30_000);
      await live.waitForFunction((before) => Number(document.body.dataset.loaded) > before, times, { timeout: 20_000 });
      assert.notEqual((await mirror(live))[0].value, value);
      await live.keyboard.press("l");
      await loaded(live, times + 2);
      assert.match(await live.evaluate(() => location.search), /to=2026-01-31T14%3A06%3A00.000Z/);
      assert.deepEqual(live.troubles, []);
    } finally {
      await live.close();
      await going.stop();
    }
  });

  it("notices within six seconds that the daemon is gone, and says how old a live window is", async () => {
    const going = await Daemon.start(process.env.FLAMED_FIXTURE);
    const live = await browser.page(going.url, { now: null });
    await open(live, `${going.url}/?from=now-1h`); // asked again every 40 s
    const bright = await live.$eval("#live", (button) => getComputedStyle(button).color);
    assert.equal(await live.$("#updated"), null);
    await going.stop();
    await live.waitForSelector("#away", { timeout: 6000 });
    assert.match(await text(live, "#away"), /flamed does not answer/);
    await live.waitForFunction(() => /^updated \d+ s ago$/.test(document.querySelector("#updated")?.textContent ?? ""));
    assert.notEqual(await live.$eval("#live", (button) => getComputedStyle(button).color), bright);
    await live.close();
  });

  it("asks again for a quarter of an hour within ten seconds", async () => {
    const live = await browser.page(daemon.url, { now: null });
    await live.clock.install({ time: NOW });
    await open(live, daemon.url);
    const before = await loads(live);
    await live.clock.fastForward(9_500);
    await live.waitForFunction((wanted) => Number(document.body.dataset.loaded) >= wanted, before + 1, { timeout: 4000 });
    await live.close();
  });

  it("keeps all that it shows in the address", async () => {
    const address = "/?from=13:50&to=14:00&unit=checkout&side=user&focus=Server&search=json&view=flame&colour=module&processes=batch#zoom=_start&zoom=main";
    await open(page, daemon.url + address);
    await page.keyboard.press("["); // a step, and back
    await loaded(page, 2);
    await page.goBack();
    await loaded(page, 3);
    assert.equal(await page.evaluate(() => location.search + location.hash), address.slice(1));
    assert.equal(await page.inputValue("#search"), "json");
    assert.equal(await page.inputValue("#process-filter"), "batch");
    assert.deepEqual(page.troubles, []);
  });

  it("shows a message without JavaScript", async () => {
    const body = await (await fetch(daemon.url)).text();
    assert.match(body, /<noscript>The page needs JavaScript/);
    assert.doesNotMatch(body, /<script(?![^>]*\bsrc=)|\sstyle=|<style|\son\w+=/);
  });

  it("is small, compressed, and cached by browsers until it changes", async () => {
    const get = (path, encoding) => page.context().request.get(daemon.url + path, { headers: { "Accept-Encoding": encoding } });
    const document = await get("/", "gzip");
    assert.equal(document.headers()["cache-control"], "no-cache");
    assert.match(document.headers()["content-security-policy"], /^default-src 'self';/);
    assert.doesNotMatch(document.headers()["content-security-policy"], /unsafe/);
    const files = [...(await document.text()).matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, path]) => path);
    assert.ok(files.length >= 3, files.join());
    let bytes = 0;
    for (const file of files) {
      const packed = await get(file, "gzip");
      assert.equal(packed.headers()["content-encoding"], "gzip");
      assert.match(packed.headers()["cache-control"], /immutable/);
      assert.equal((await get(file, "gzip, br")).headers()["content-encoding"], "br");
      bytes += Number(packed.headers()["content-length"]);
    }
    assert.ok(bytes <= LARGEST_BUNDLE, `${bytes} bytes`);
    console.log(`the page's own files: ${bytes} bytes packed with gzip`);
  });

  for (const [name, options] of [["wide", { width: 3840, height: 2160 }], ["narrow-dark", { width: 360, height: 740, colorScheme: "dark" }], ["tablet", { width: 820, height: 1180 }]]) {
    it(`fits a screen of ${options.width} by ${options.height} pixels`, async () => {
      const other = await browser.page(daemon.url, options);
      await open(other, `${daemon.url}/?pid=4242&focus=Server`);
      assert.equal(await other.evaluate(() => document.documentElement.scrollWidth), options.width);
      await inspect(other, name);
      await other.close();
    });
  }

  it("gives the graph most of the screen", async () => {
    const screen = await browser.page(daemon.url, { width: 1440, height: 900 });
    const height = () => screen.$eval("#stage", (stage) => stage.clientHeight);
    await open(screen, daemon.url);
    assert.ok((await height()) >= 28 * 20, `${await height()} pixels`);
    // Also with a selection and with a remark of the daemon, which is one line in the footer until it is clicked.
    await open(screen, `${daemon.url}/?pid=4242&from=now-24h`);
    assert.ok((await height()) >= 540, `${await height()} pixels`);
    assert.match(await text(screen, "footer #warnings"), /began to sample at/);
    await screen.click("#warnings");
    assert.equal(await screen.getAttribute("#warnings", "aria-expanded"), "true");
    await screen.close();
    const phone = await browser.page(daemon.url, { width: 360, height: 740 });
    await open(phone, daemon.url);
    const { top } = await phone.$eval("#stage", (stage) => stage.getBoundingClientRect().toJSON());
    assert.ok(top < 740 - 5 * 20, `begins at ${top}`);
    await phone.close();
  });

  it("has a link that leads past everything to the graph", async () => {
    for (const view of ["icicle", "table", "sandwich"]) {
      await open(page, `${daemon.url}/?view=${view}`);
      await page.keyboard.press("Tab");
      assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to the flame graph");
      await page.keyboard.press("Enter");
      assert.equal(await page.evaluate(() => document.activeElement.id), "stage");
    }
  });

  it("does not move for those who asked for less motion", async () => {
    const calm = await browser.page(daemon.url, { reducedMotion: "reduce" });
    let letGo;
    const held = new Promise((resolve) => (letGo = resolve));
    await calm.route(`${daemon.url}/profile*`, async (route) => {
      await held;
      await route.continue();
    });
    await calm.goto(daemon.url);
    await calm.waitForSelector("#stage .progress");
    assert.equal(await calm.$eval("#stage .progress", (line) => getComputedStyle(line, "::before").animationName), "none");
    letGo();
    await loaded(calm);
    await calm.close();
  });
});
