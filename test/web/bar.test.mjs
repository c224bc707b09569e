// SPDX-License-Identifier: Apache-2.0
// The head of the page: time, filters, links, exports, keys.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { answered, inspect, loaded, mirror, open, text } from "./browser.mjs";
import { browser, daemon, page, useFixture } from "./fixture.mjs";

const query = async (page) => Object.fromEntries(new URL(await page.evaluate(() => location.href)).searchParams);

describe("the bar", () => {
  useFixture({ clipboard: true });

  const jump = (written) => answered(page, async () => {
    await page.keyboard.press("t");
    await page.keyboard.type(written);
    await page.keyboard.press("Enter");
  });

  it("jumps to a time in any common notation", async () => {
    await open(page, daemon.url);
    // The clock is stopped at 14:05:30 on 2026-01-31, in UTC.
    const cases = [
      ["14:00", { from: "2026-01-31T13:55:00.000Z", to: "2026-01-31T14:05:00.000Z" }],
      ["13:50 - 14:01:30", { from: "2026-01-31T13:50:00.000Z", to: "2026-01-31T14:01:30.000Z" }],
      ["now-1h30m", { from: "now-1h30m" }],
      ["last 2 h", { from: "now-2h" }],
      ["now-2h to now-1h", { from: "now-2h", to: "now-1h" }],
      ["2026-01-31 13:00 – 13:30", { from: "2026-01-31T13:00:00.000Z", to: "2026-01-31T13:30:00.000Z" }],
      ["2026-01-31T14:30:00+01:00/2026-01-31T15:00:00+01:00", { from: "2026-01-31T13:30:00.000Z", to: "2026-01-31T14:00:00.000Z" }],
      ["1769866200", { from: "2026-01-31T13:25:00.000Z", to: "2026-01-31T13:35:00.000Z" }],
    ];
    for (const [written, asked] of cases) {
      await jump(written);
      assert.deepEqual(await query(page), asked, written);
    }
    await jump("14:00");
    assert.equal(await page.inputValue("#when"), "13:55:00 – 14:05:00");
    assert.deepEqual(page.troubles, []);
  });

  it("reads times of day in the reader's time zone, as it shows them", async () => {
    const abroad = await browser.page(daemon.url, { timeZone: "Asia/Tokyo" });
    await open(abroad, `${daemon.url}/?from=2026-01-31T14:00:00Z&to=2026-01-31T14:05:00Z`);
    assert.equal(await abroad.inputValue("#when"), "23:00:00 – 23:05:00");
    await answered(abroad, async () => {
      await abroad.fill("#when", "23:02");
      await abroad.keyboard.press("Enter");
    });
    assert.deepEqual(await query(abroad), { from: "2026-01-31T13:59:30.000Z", to: "2026-01-31T14:04:30.000Z" });
    await abroad.close();
  });

  it("steps by whole windows, back and forward to now", async () => {
    await open(page, daemon.url);
    assert.ok(await page.isDisabled("#step-forward"));
    await answered(page, () => page.click("#step-back"));
    assert.deepEqual(await query(page), { from: "2026-01-31T13:35:30.000Z", to: "2026-01-31T13:50:30.000Z" });
    await answered(page, () => page.keyboard.press("["));
    assert.deepEqual(await query(page), { from: "2026-01-31T13:20:30.000Z", to: "2026-01-31T13:35:30.000Z" });
    await answered(page, () => page.keyboard.press("]"));
    await answered(page, () => page.click("#step-forward"));
    assert.deepEqual(await query(page), {});
    await answered(page, () => page.goBack());
    assert.deepEqual(await query(page), { from: "2026-01-31T13:35:30.000Z", to: "2026-01-31T13:50:30.000Z" });
  });

  it("keeps the window when paused, and goes on to now from there", async () => {
    await open(page, `${daemon.url}/?from=now-1h`);
    assert.equal(await page.getAttribute("#live", "aria-pressed"), "true");
    await answered(page, () => page.keyboard.press("l"));
    assert.deepEqual(await query(page), { from: "2026-01-31T13:05:30.000Z", to: "2026-01-31T14:05:30.000Z" });
    assert.equal(await page.getAttribute("#live", "aria-pressed"), "false");
    await answered(page, () => page.click("#live"));
    assert.deepEqual(await query(page), { from: "now-1h" });
  });

  it("shows each part of the query as a chip that removes it", async () => {
    await open(page, `${daemon.url}/?pid=4242@90000&focus=json&side=user`);
    const chips = () => page.$$eval("#chips .chip", (items) => items.map((item) => item.textContent));
    assert.deepEqual(await chips(), ["Process checkout-api 4242", "Only stacks with json", "Stacks user code only"]);
    await inspect(page, "chips");
    await answered(page, () => page.click('[aria-label="Remove Only stacks with json"]'));
    assert.deepEqual(await query(page), { pid: "4242@90000", side: "user" });
    await answered(page, () => page.click(".chip-reset"));
    assert.deepEqual(await query(page), {});
    assert.equal(await page.$("#chips"), null);
  });

  it("filters by the text in its form", async () => {
    await open(page, `${daemon.url}/?pid=4242`);
    await page.keyboard.press("f");
    await page.selectOption("#filters form select", "ignore");
    await page.fill("#filters form input", "^json::");
    await answered(page, () => page.keyboard.press("Enter"));
    assert.deepEqual(await query(page), { pid: "4242", ignore: "^json::" });
    assert.ok((await mirror(page)).every(({ name }) => !name.startsWith("json::")));
    await page.click("#filters-button");
    await inspect(page, "filters");
    await answered(page, () => page.click('#filters .entry[aria-pressed]:nth-of-type(3)'));
    assert.equal((await query(page)).side, "kernel");
    await page.keyboard.press("Escape");
    assert.ok(await page.isHidden("#filters"));
  });

  it("starts and ends a comparison with the time before", async () => {
    await open(page, `${daemon.url}/?from=now-30m`);
    await answered(page, () => page.keyboard.press("d"));
    assert.deepEqual(await query(page), { from: "now-30m", diff: "1" });
    assert.equal(await text(page, "#chips"), "Compared with the same time before");
    assert.match(await text(page, "#facts"), /Samples24,176 at 100 Hz, before 103,467/);
    await page.click("#copy-link");
    await page.waitForSelector(".copied");
    const link = new URL(await page.evaluate(() => navigator.clipboard.readText())).searchParams;
    assert.deepEqual([link.get("base_from"), link.get("base_to")], ["2026-01-31T13:05:30.000Z", "2026-01-31T13:35:30.000Z"]);
    await answered(page, () => page.click("#chips button"));
    assert.deepEqual(await query(page), { from: "now-30m" });
  });

  it("copies a link with fixed times, which shows the same in a new page", async () => {
    await open(page, `${daemon.url}/?pid=4242&search=json&from=now-5m`);
    const shown = await mirror(page);
    await page.click("#copy-link");
    await page.waitForSelector(".copied");
    const link = await page.evaluate(() => navigator.clipboard.readText());
    assert.deepEqual(Object.fromEntries(new URL(link).searchParams),
      { pid: "4242", search: "json", from: "2026-01-31T14:00:30.000Z", to: "2026-01-31T14:05:30.000Z" });
    // "now" means the time of the link.
    const fresh = await browser.page(daemon.url, { now: Date.UTC(2026, 0, 31, 18) });
    await open(fresh, link);
    assert.deepEqual(await mirror(fresh), shown);
    assert.equal(await fresh.inputValue("#search"), "json");
    assert.equal(await fresh.getAttribute("#live", "aria-pressed"), "false");
    await fresh.close();
  });

  it("exports the shown profile with the same query in other formats", async () => {
    await open(page, `${daemon.url}/?pid=4242&focus=json`);
    await page.keyboard.press("e");
    await inspect(page, "export");
    const links = await page.$$eval("#export a[download]", (all) => all.map((link) => link.getAttribute("href")));
    const formats = links.map((link) => new URL(link, daemon.url).searchParams.get("format"));
    assert.deepEqual(formats, ["folded", "pprof", "speedscope", "perf-script", "top-text", "flamegraph"]);
    for (const link of links) {
      const { searchParams } = new URL(link, daemon.url);
      assert.deepEqual([searchParams.get("pid"), searchParams.get("focus"), searchParams.get("to")], ["4242", "json", "2026-01-31T14:05:30.000Z"]);
      assert.equal((await page.context().request.get(daemon.url + link)).status(), 200, link);
    }
    const folded = await (await page.context().request.get(daemon.url + links[0])).text();
    const samples = folded.trim().split("\n").reduce((sum, line) => sum + Number(line.split(" ").pop()), 0);
    assert.equal(samples, 1800);
  });

  it("saves what it exports under names that say what it is", async () => {
    await open(page, `${daemon.url}/?pid=4242`);
    for (const [label, name] of [["Folded stacks", "checkout-api-2026-01-31-1350.folded.txt"], ["pprof", "checkout-api-2026-01-31-1350.pb.gz"]]) {
      await page.click("#export-button");
      const [download] = await Promise.all([page.waitForEvent("download"), page.click(`#export a:has-text("${label}")`)]);
      assert.equal(download.suggestedFilename(), name);
      await download.cancel();
    }
  });

  it("opens what is shown in speedscope, from the daemon alone", async () => {
    await open(page, `${daemon.url}/?pid=4242`);
    await page.click("#export-button");
    const address = await page.getAttribute("#open-speedscope", "href");
    const other = await browser.page(daemon.url, { now: null });
    await other.goto(daemon.url + address);
    await other.waitForFunction(() => document.title.startsWith("checkout-api"));
    await other.waitForSelector("text=Left Heavy");
    await other.click("text=Sandwich");
    await other.waitForSelector("text=Cart::total() const");
    // A library of speedscope tries to compile code from text. It may not, and works without.
    const refused = (trouble) => !trouble.includes("'script-src'") && !trouble.includes("unsafe-eval") && !trouble.includes("GPU stall");
    assert.deepEqual(other.troubles.filter(refused), []);
    await other.close();
  });

  it("lists its keys", async () => {
    await open(page, daemon.url);
    await page.keyboard.press("?");
    const listed = await text(page, "#keys");
    for (const what of ["Jump to a time", "Search functions", "Copy a link", "Step back"]) assert.ok(listed.includes(what), what);
    await inspect(page, "keys");
    await page.keyboard.press("Escape");
    assert.equal(await page.$("#keys[open]"), null);
  });

  it("applies a chosen theme, and keeps it", async () => {
    await open(page, daemon.url);
    const ground = () => page.$eval("body", (body) => getComputedStyle(body).backgroundColor);
    assert.equal(await ground(), "rgb(244, 245, 247)");
    await page.click("#theme");
    await page.click("#theme");
    assert.equal(await page.getAttribute("#theme", "aria-label"), "Theme: dark");
    assert.equal(await ground(), "rgb(16, 18, 22)");
    await page.reload();
    await loaded(page);
    assert.equal(await ground(), "rgb(16, 18, 22)");
    await page.click("#theme");
    assert.equal(await ground(), "rgb(244, 245, 247)");
  });

  it("explains its figures on a page from the daemon", async () => {
    await page.goto(`${daemon.url}/help#coverage`);
    assert.equal(await page.$eval(":target", (target) => target.textContent), "Coverage");
    await inspect(page, "help");
  });
});
