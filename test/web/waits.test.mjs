// SPDX-License-Identifier: Apache-2.0
// Waiting time over fixed content: of each ten seconds each of a service's workers waits nine, mostly for a lock.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { answerInstead, answered, drag, inspect, loaded, mirror, open, text } from "./browser.mjs";
import { browser, daemon, page, useFixture } from "./fixture.mjs";
import { source } from "./source.mjs";

const SERVICE = "pid=4242&from=2026-01-31T13:55:00Z&to=2026-01-31T14:05:00Z";
const query = async () => Object.fromEntries(new URL(await page.evaluate(() => location.href)).searchParams);
const names = async () => (await mirror(page)).map(({ name }) => name);

describe("reasons of waits", () => {
  it("are found by their filters and frames", async () => {
    const { REASONS, focusOn, frameOf, reasonIn, reasonOfFocus } = await source("waits.ts");
    for (const reason of REASONS) {
      assert.equal(reasonOfFocus(focusOn(reason)), reason);
      assert.equal(reasonIn(frameOf(reason)), reason);
      assert.ok(new RegExp(focusOn(reason)).test(frameOf(reason)));
    }
    assert.equal(reasonOfFocus("lock"), null);
    assert.equal(reasonIn("lock"), null);
  });

  it("are kinds of frames of the kernel only", async () => {
    const { frameData, Frames } = await source("graph/tree/frames.ts", "graph/tree/texts.ts");
    const { textData } = await source("graph/tree/texts.ts");
    const texts = ["", "[lock]", "[locks]", "lock"];
    const none = new Uint32Array();
    const frames = new Frames(frameData({
      strings: textData(texts), kinds: ["kernel", "native"], name: Uint32Array.of(1, 1, 2, 3), module: new Uint32Array(4), kind: Uint32Array.of(0, 1, 0, 0),
      fullName: none, reason: none, buildId: none, file: none, line: none, inlined: new Uint8Array(),
    }));
    assert.deepEqual([0, 1, 2, 3].map((f) => frames.kind(f)), ["wait lock", "native", "kernel", "kernel"]);
  });
});

describe("waiting time", () => {
  useFixture();

  it("has no switch where the daemon does not measure it", async () => {
    await answerInstead(page, "/healthz", (health) => ({ ...health, measures: ["cpu"] }));
    await open(page, daemon.url);
    await page.waitForSelector("#health");
    assert.equal(await page.$("#measures"), null);
    await page.keyboard.press("o");
    assert.deepEqual(await query(), {});
    assert.deepEqual(page.troubles, []);
  });

  it("is shown with its reasons after one click, and again by its link", async () => {
    await open(page, `${daemon.url}/?${SERVICE}`);
    await answered(page, () => page.click("#measures >> text=Waiting"));
    assert.equal((await query()).measure, "wait");
    const said = await text(page, "#reasons");
    // Nine of ten seconds of three workers in ten minutes; two thirds of them for locks, or half of them.
    assert.match(said, /Waited 2[67] min/);
    assert.match(said, /Lock 50\.\d %.*Network 33\.\d %.*Disk 16\.\d %/);
    assert.doesNotMatch(said, /Idle/);
    assert.match(await page.getAttribute("[data-reason=disk]", "title"), /, by samples, since the kernel does not count it \(kernel\.task_delayacct\)$/);
    assert.equal(await text(page, "#timeline-title"), "Waiting");
    assert.match(await text(page, ".timeline-legend"), /lock/);
    assert.ok((await names()).includes("Session::lock()"));
    await inspect(page, "waits");
    await open(page, await page.evaluate(() => location.href));
    assert.equal(await text(page, "#reasons"), said);
  });

  it("leaves out threads that wait for work, until they are asked for", async () => {
    await open(page, `${daemon.url}/?${SERVICE}&measure=wait`);
    assert.ok(!(await names()).includes("Pool::next()"));
    await answered(page, () => page.click("#idle"));
    assert.equal((await query()).idle, "show");
    assert.match(await text(page, "#reasons"), /Idle 25\.\d %/);
    assert.ok((await names()).includes("Pool::next()"));
    await answered(page, () => page.click("#idle"));
    assert.equal((await query()).idle, undefined);
    assert.deepEqual(page.troubles, []);
  });

  it("is told in time, never in samples", async () => {
    await open(page, `${daemon.url}/?${SERVICE}&measure=wait`);
    assert.match(await text(page, "#details"), /Waited2[67] min \d+ s of 2[67] min/);
    assert.match(await text(page, "#crumbs"), /All 2[67] min/);
    assert.match(await text(page, "#facts"), /Waited2[67] min.*2\.7\d threads/);
    assert.doesNotMatch(await text(page, "#facts"), /Samples/);
    const items = await mirror(page);
    assert.match(items.find(({ name }) => name === "[lock]").text, /\d s|min/);
    for (const view of ["table", "sandwich"]) {
      await page.click(`#modes [data-mode="${view}"]`);
      await page.waitForSelector(".function-row[data-name]");
      assert.match(await text(page, '.function-row[data-name="[lock]"]'), /min/);
      await inspect(page, `waits-${view}`);
    }
  });

  it("is filtered by a click on a reason, and a second one ends that", async () => {
    await open(page, `${daemon.url}/?${SERVICE}&measure=wait`);
    await answered(page, () => page.click('#reasons [data-reason="disk"]'));
    assert.equal(await page.getAttribute('#reasons [data-reason="disk"]', "aria-pressed"), "true");
    assert.match(await text(page, "#chips"), /waits: Disk/);
    const shown = await names();
    assert.ok(shown.includes("Journal::commit()") && !shown.includes("Session::lock()"), shown.join());
    await answered(page, () => page.click('#reasons [data-reason="disk"]'));
    assert.ok((await names()).includes("Session::lock()"));
    assert.deepEqual(page.troubles, []);
  });

  it("begins bottom-up with the reasons", async () => {
    await open(page, `${daemon.url}/?${SERVICE}&measure=wait&view=bottom-up`);
    const first = (await mirror(page)).filter(({ depth }) => depth === 1);
    assert.deepEqual(first.map(({ name }) => name), ["[lock]", "[network]", "[disk]"]);
    assert.deepEqual(first.map(({ kind }) => kind), ["wait lock", "wait network", "wait disk"]);
    await inspect(page, "waits-bottom-up");
  });

  it("says in the graph who held the lock", async () => {
    await open(page, `${daemon.url}/?${SERVICE}`);
    await answered(page, () => page.click("#measures >> text=Waiting"));
    await answered(page, () => page.click('#reasons [data-reason="lock"]'));
    const held = (await mirror(page)).find(({ name }) => name === "[held by worker-3 (4245)]");
    assert.ok(held !== undefined, (await names()).join());
    await inspect(page, "waits-holder");
    assert.deepEqual(page.troubles, []);
  });

  it("is told by thread and reason in place of an order of time", async () => {
    await open(page, `${daemon.url}/?${SERVICE}&measure=wait&view=time`);
    await page.waitForSelector("#tracks .wait-bar");
    await page.click('#tracks [data-track$="/4244"]');
    const said = await text(page, "#thread-waits");
    assert.match(said, /worker-2 waited (8 min 5\d|9 min \d+) s of 10 min/);
    assert.match(said, /Lock .*45\.0 %/);
    assert.match(said, /Disk .*45\.0 %/);
    assert.match(await text(page, "#lock-holders"), /worker-3 ?4245.*100(\.0)? %/);
    await inspect(page, "waits-threads");
  });

  it("is shown within the second, and a part of it has its graph", async () => {
    await open(page, `${daemon.url}/?${SERVICE}&measure=wait&heat=1`);
    assert.match(await text(page, "#heat-text"), /^\d+ min [\d.]+ s in 600 seconds\. The busiest part of the second is /);
    assert.match(await text(page, ".heat-legend"), /^0[\d.]+ m?s in 20 ms or more \(99th percentile\)$/);
    await drag(page, "#heat", [0.3, 0.79], [0.5, 0.66], { release: false });
    assert.match(await text(page, "#heat-readout"), /ms of each second: [\d.]+ s$/);
    await answered(page, () => page.mouse.up());
    assert.equal((await query()).measure, "wait");
    assert.notEqual((await query()).offset_from, undefined);
    assert.ok((await names()).includes("Session::lock()"), (await names()).join());
    await inspect(page, "waits-heatmap");
    assert.deepEqual(page.troubles, []);
  });

  it("together with CPU time shows both, and keys go from one measure to the next", async () => {
    await open(page, `${daemon.url}/?${SERVICE}`);
    await page.waitForSelector("#measures");
    await answered(page, () => page.keyboard.press("o"));
    await answered(page, () => page.keyboard.press("o"));
    assert.equal((await query()).measure, "wall");
    assert.equal(await text(page, "#timeline-title"), "CPU and waiting");
    assert.match(await text(page, "#reasons"), /On a CPU/);
    const shown = await names();
    assert.ok(shown.includes("Session::lock()") && shown.includes("Cart::total() const"), shown.join());
    await inspect(page, "waits-both");
    await answered(page, () => page.keyboard.press("o"));
    assert.equal((await query()).measure, undefined);
  });

  it("keeps a part of each second that is chosen", async () => {
    await open(page, `${daemon.url}/?${SERVICE}&offset_from=240&offset_to=340`);
    await page.waitForSelector("#measures");
    await answered(page, () => page.click("#measures >> text=Waiting"));
    const asked = await query();
    assert.deepEqual([asked.offset_from, asked.offset_to, asked.measure], ["240", "340", "wait"]);
    assert.ok((await names()).includes("Session::lock()"));
  });

  it("compares two windows", async () => {
    await open(page, `${daemon.url}/?${SERVICE}&measure=wait&base_from=2026-01-31T13:52:00Z&base_to=2026-01-31T13:55:00Z`);
    assert.ok((await names()).includes("Session::lock()"));
    await inspect(page, "waits-compared");
  });

  it("fits a phone, in both themes", async () => {
    for (const colorScheme of ["light", "dark"]) {
      const phone = await browser.page(daemon.url, { width: 390, height: 844, colorScheme });
      await open(phone, `${daemon.url}/?${SERVICE}&measure=wait`);
      await loaded(phone);
      const wide = await phone.evaluate(() => document.documentElement.scrollWidth > innerWidth);
      assert.ok(!wide, "the page scrolls sideways");
      await inspect(phone, `waits-phone-${colorScheme}`);
      await phone.close();
    }
  });
});
