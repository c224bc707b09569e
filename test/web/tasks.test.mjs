// SPDX-License-Identifier: Apache-2.0
// Common tasks, and in how many actions they can be done: a click, a drag, a key or a typed text. Prints how long each took.
import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";

import { NOW, answered, mirror, open, text } from "./browser.mjs";
import { browser, daemon, page, useFixture } from "./fixture.mjs";

const MOST_ACTIONS = 3;

describe("with three actions at most", () => {
  useFixture({ clipboard: true, width: 1440, height: 900 });
  afterEach(() => assert.deepEqual(page.troubles, []));

  const query = async () => Object.fromEntries(new URL(await page.evaluate(() => location.href)).searchParams);

  // From the page as it is opened; each of `actions` is one.
  async function task(name, actions, start = "") {
    assert.ok(actions.length <= MOST_ACTIONS, name);
    await open(page, daemon.url + start);
    const since = performance.now();
    for (const act of actions) await act();
    console.log(`${name}: ${actions.length} ${actions.length === 1 ? "action" : "actions"}, ${Math.round(performance.now() - since)} ms`);
  }
  const dragOver = (selector, from, to) => async () => {
    const box = await page.$eval(selector, (element) => element.getBoundingClientRect().toJSON());
    await page.mouse.move(box.x + from[0] * box.width, box.y + from[1] * box.height);
    await page.mouse.down();
    await page.mouse.move(box.x + to[0] * box.width, box.y + to[1] * box.height, { steps: 3 });
    await page.mouse.up();
  };

  it("finds the function behind a burst of two seconds, three minutes ago", async () => {
    // It stands out in the heat map.
    await task("a burst three minutes ago", [
      () => answered(page, () => page.click("#heat-toggle")),
      () => answered(page, dragOver("#heat", [(900 - 142) / 900, 0.99], [(900 - 136) / 900, 0.01])),
    ]);
    const { from, to } = await query();
    assert.ok(Date.parse(from) <= NOW - 139_000 && Date.parse(to) >= NOW - 138_000, `${from} ${to}`);
    const found = (await mirror(page)).filter(({ kind }) => kind !== "root");
    const hottest = found.find(({ name }) => name.startsWith("std::map"));
    assert.ok(hottest.value > found[0].value / 3, "what only the burst did is not wide");
  });

  it("finds the hottest function and its callers", async () => {
    await task("the hottest function and its callers", [() => page.click('#modes [data-mode="sandwich"]')]);
    await page.waitForSelector("#graph-callers .flame-item");
    assert.equal(await text(page, "#middle"), "price_with_tax(Item const&)");
    const callers = await page.$$eval("#graph-callers .flame-item", (items) => items.map(({ dataset }) => dataset.name));
    assert.ok(callers.includes("Cart::total() const"));
  });

  it("finds what has changed between two windows", async () => {
    await task("a regression between two windows", [
      () => answered(page, () => page.click('#ranges [data-from="now-5m"]')),
      () => answered(page, () => page.keyboard.press("d")),
      () => page.click('#modes [data-mode="table"]'),
    ]);
    await page.waitForSelector(".rows [data-index='0']");
    assert.match(await text(page, '.rows [data-index="0"]'), /^odd\(int\).*significant$/);
  });

  it("finds a process that has ended", async () => {
    await task("an ended process", [
      () => answered(page, () => page.click('#ranges [data-from="now-1h"]')),
      () => page.fill("#process-filter", "backup"),
      () => answered(page, () => page.press("#process-filter", "Enter")),
    ]);
    assert.equal((await query()).pid, "2222@30000");
    assert.ok((await mirror(page)).some(({ name }) => name === "ZSTD_compressBlock"));
  });

  it("finds a container by its name, its id or what runs it", async () => {
    // LXC's have names, and Docker's only ids that flamed knows.
    for (const [what, typed, pid, function_] of [
      ["a container by name", "stage-7", "5150@80000", "odd(int)"], ["a container by id", "3f1c9a0b7d2e", "31337@70000", "com.shop.Stock.scan"],
      ["a container by what runs it", "docker", "31337@70000", "com.shop.Stock.scan"],
    ]) {
      await task(what, [
        () => page.fill("#process-filter", typed),
        () => answered(page, () => page.press("#process-filter", "Enter")),
      ]);
      assert.equal((await query()).pid, pid);
      assert.ok((await mirror(page)).some(({ name }) => name === function_), typed);
    }
  });

  it("shares what it shows", async () => {
    await task("a link", [() => page.keyboard.press("c")], "/?pid=4242");
    await page.waitForSelector(".copied");
    const shown = await mirror(page);
    const link = await page.evaluate(() => navigator.clipboard.readText());
    const other = await browser.page(daemon.url, { now: NOW + 3600_000 });
    await open(other, link);
    assert.deepEqual(await mirror(other), shown);
    await other.close();
  });

  it("exports what it shows", async () => {
    let download;
    await task("an export", [
      () => page.keyboard.press("e"),
      async () => ([download] = await Promise.all([page.waitForEvent("download"), page.click('#export a:has-text("pprof")')])),
    ], "/?pid=4242");
    assert.equal(download.suggestedFilename(), "checkout-api-2026-01-31-1350.pb.gz");
  });
});
