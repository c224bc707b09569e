// SPDX-License-Identifier: Apache-2.0
// The answer in words, above the graph.
import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";

import { answered, inspect, ofSummary, open, text } from "./browser.mjs";
import { browser, daemon, page, useFixture } from "./fixture.mjs";

const LINES = [
  "0.19 CPUs were busy on average: 170 s of CPU time in 15 minutes.",
  "checkout-api used 62 % of it, java 18 %, and <img onerror=x> 4 %.",
  "The hottest function is price_with_tax(Item const&) with 25 %, called by Cart::total() const.",
  "0.4 % of the stacks are cut: too deep.",
  "1.5 % of the functions have no name: libvendor.so has no symbols. A debug package would help.",
];
const inWords = (lines) => async (route) => route.fulfill({ contentType: "text/plain; charset=utf-8", body: `${lines.join("\n")}\n` });

describe("the answer in words", () => {
  useFixture({ width: 1440, height: 900 });
  afterEach(() => assert.deepEqual(page.troubles, []));
  const stage = () => page.$eval("#stage", (element) => element.clientHeight);

  it("stands above the graph, its first sentences at once, and leaves the graph its room", async () => {
    await page.route(ofSummary, inWords(LINES));
    await open(page, daemon.url);
    assert.equal(await text(page, "#summary .lines"), `${LINES.slice(0, 3).join(" ")} `);
    assert.ok((await stage()) >= 540, `${await stage()} pixels`);
    const place = (selector) => page.$eval(selector, (element) => element.getBoundingClientRect().toJSON());
    assert.ok((await place("#summary")).bottom <= (await place("#stage")).top);
    await inspect(page, "summary");
    await page.click("#summary button");
    assert.equal(await page.getAttribute("#summary button", "aria-expanded"), "true");
    assert.deepEqual(await page.$$eval("#summary .lines span", (all) => all.map((line) => line.textContent.trim())), LINES);
    await inspect(page, "summary-open");
    await page.click("#summary button");
    await open(page, `${daemon.url}/?pid=4242`);
    assert.ok((await stage()) >= 540, `${await stage()} pixels with a selection`);
    await answered(page, () => page.click("#what-changed"));
    assert.ok((await stage()) >= 540, `${await stage()} pixels with a comparison`);
    await inspect(page, "summary-diff");
  });

  it("is asked for the shown window and selection, and for the comparison", async () => {
    const asked = [];
    await page.route(ofSummary, async (route) => {
      asked.push(new URL(route.request().url()));
      await inWords(LINES)(route);
    });
    await open(page, `${daemon.url}/?pid=4242&focus=json`);
    assert.deepEqual(asked.map(({ pathname }) => pathname), ["/profile"]);
    assert.deepEqual(Object.fromEntries(asked[0].searchParams), {
      from: "2026-01-31T13:50:30.000Z", to: "2026-01-31T14:05:30.000Z", pid: "4242", focus: "json", format: "summary",
    });
    await answered(page, () => page.click("#what-changed"));
    assert.equal(asked.at(-1).pathname, "/diff");
    assert.equal(asked.at(-1).searchParams.get("base_ago"), "1h");
  });

  it("is the daemon's own", async () => {
    for (const [query, path, first] of [
      ["?pid=4242&from=now-10m", "/profile?pid=4242&from=now-10m", /^checkout-api /],
      ["?from=now-10m&base_from=now-20m&base_to=now-10m", "/diff?from=now-10m&base_from=now-20m&base_to=now-10m", /beyond chance/],
    ]) {
      const lines = (await (await fetch(`${daemon.url}${path}&format=summary`)).text()).trimEnd().split("\n");
      assert.match(lines[0], first);
      await open(page, `${daemon.url}/${query}`);
      assert.equal((await text(page, "#summary .lines")).trimEnd(), lines.slice(0, 3).join(" "));
    }
  });

  it("does not move the graph when it comes", async () => {
    let letGo;
    const held = new Promise((resolve) => (letGo = resolve));
    await page.route(ofSummary, async (route) => {
      await held;
      await inWords(LINES)(route);
    });
    await page.goto(daemon.url);
    await page.waitForSelector(".flame-item", { state: "attached" });
    const before = await stage();
    letGo();
    await page.waitForSelector("#summary");
    assert.equal(await stage(), before);
  });

  it("is left out where the daemon has no words", async () => {
    await page.route(ofSummary, (route) => route.fulfill({ status: 400, contentType: "application/problem+json", body: JSON.stringify({ status: 400, title: "Bad parameter", parameter: "format" }) }));
    await open(page, daemon.url);
    assert.equal(await page.$(".summary"), null);
    assert.ok((await stage()) >= 28 * 20);
  });

  it("is short on a phone", async () => {
    const phone = await browser.page(daemon.url, { width: 360, height: 740 });
    await phone.route(ofSummary, inWords(LINES));
    await open(phone, daemon.url);
    const { top } = await phone.$eval("#stage", (element) => element.getBoundingClientRect().toJSON());
    assert.ok(top < 740 - 5 * 20, `the graph begins at ${top}`);
    await inspect(phone, "summary-phone", { fullPage: true });
    await phone.close();
  });
});
