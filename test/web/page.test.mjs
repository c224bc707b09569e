// SPDX-License-Identifier: Apache-2.0
// The page over fixed content (fixture_server.cc).
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { Daemon, answerInstead, answered, loaded, mirror, NOW, open, painted, shot, text } from "./browser.mjs";
import { browser, daemon, page, useFixture } from "./fixture.mjs";

describe("the page", () => {
  useFixture();

  it("loads without an error and sends requests only to the daemon", async () => {
    await open(page, daemon.url);
    await page.waitForTimeout(300);
    assert.deepEqual(page.troubles, []);
    assert.equal(await page.title(), "Whole machine – flamed");
    assert.equal(await text(page, "#health"), "sampling");
    await shot(page, "machine");
  });

  it("shows the whole machine by program below the root, or by the list's grouping", async () => {
    await open(page, daemon.url);
    const second = (await mirror(page)).filter((frame) => frame.depth === 1);
    assert.ok(second.some((frame) => frame.text.startsWith("checkout-api, ") && frame.value === 10470));
    await open(page, `${daemon.url}/?from=2026-01-31T11:48:00Z&to=2026-01-31T12:12:00Z`);
    assert.ok((await mirror(page)).some((frame) => frame.depth === 1 && frame.text.startsWith("cc1plus ×12, ")));
    // Processes of the selection count, not those of the machine.
    await open(page, `${daemon.url}/?from=2026-01-31T11:48:00Z&to=2026-01-31T12:12:00Z&pid=2301&pid=2302&group=exe`);
    assert.ok((await mirror(page)).some((frame) => frame.depth === 1 && frame.text.startsWith("cc1plus ×2, ")));
    await open(page, `${daemon.url}/?from=2026-01-31T11:48:00Z&to=2026-01-31T12:12:00Z`);
    await answered(page, () => page.selectOption("#by", "unit"));
    assert.ok((await mirror(page)).some((frame) => frame.depth === 1 && frame.text.startsWith("user@1000.service, ")));
    await answered(page, () => page.selectOption("#by", "tree"));
    assert.ok((await mirror(page)).some((frame) => frame.depth === 1 && frame.text.startsWith("make (2300), ")));
    await answered(page, () => page.selectOption("#by", "pid"));
    assert.ok((await mirror(page)).some((frame) => frame.depth === 1 && frame.text.startsWith("cc1plus (2301), ")));
    assert.ok(second.every((frame) => frame.kind === "root"));
  });

  it("paints a process's flame graph after a click on it", async () => {
    await open(page, daemon.url);
    await answered(page, () => page.click('[data-id="4242@90000"]'));
    assert.match(await page.evaluate(() => location.search), /^\?pid=4242%4090000$/);
    assert.match(await text(page, "#profile-title"), /^checkout-api/);
    const frames = await mirror(page);
    const find = (name) => frames.find((frame) => frame.name === name);
    assert.equal(frames[0].value, 10470);
    assert.equal(find("Cart::total() const").value, 6600);
    assert.equal(find("Cart::total() const").depth, 5);
    assert.equal(find("ksys_write").kind, "kernel");
    assert.equal(find("[libvendor.so+0x1a20]").kind, "unnamed");
    const { colours, share } = await painted(page);
    assert.ok(colours > 50, `${colours} colours`);
    assert.ok(share > 0.15 && share < 0.9, `${share} of the canvas`);
    assert.deepEqual(await page.$$eval("#legend li", (items) => items.map((item) => item.textContent)),
      ["Program", "Kernel", "vdso", "Unnamed", "Cut off", "Process"]);
    await shot(page, "light");
  });

  it("shows the profile's quality", async () => {
    await open(page, `${daemon.url}/?pid=4242`);
    const facts = await text(page, "#facts");
    assert.match(facts, /Samples10,470 at 100 Hz/);
    assert.match(facts, /CPU1 min 45 s/);
    assert.match(facts, /Stacks0\.57 % are cut too deep/);
    assert.match(facts, /Lost12 samples flamed came too late/);
    assert.equal(await page.$("#warnings"), null);
    await open(page, `${daemon.url}/?pid=4242&from=now-24h`);
    assert.match(await text(page, "#warnings"), /began to sample at 2026-01-31T11:05:30Z, after the window/);
  });

  it("shows the CPUs in use over the time that flamed ran, without the time before", async () => {
    // The machine's history is three hours long.
    await open(page, `${daemon.url}/?from=2026-01-31T11:00:30Z&to=2026-01-31T11:11:00Z`);
    const facts = await page.evaluate(async () => (await fetch("/processes?from=2026-01-31T11:05:30Z&to=2026-01-31T11:11:00Z")).json());
    assert.ok((await text(page, "#facts")).includes(`${(facts.cpu_seconds / 330).toFixed(2)} CPUs`), await text(page, "#facts"));
    await open(page, `${daemon.url}/?from=2026-01-31T10:00:00Z&to=2026-01-31T10:10:00Z`);
    assert.match(await text(page, "#facts"), /CPU0 s(?!.*CPUs)/);
  });

  it("shows the rate at which the window was sampled, not the configured one", async () => {
    await answerInstead(page, "/profile", (answer) => ({ ...answer, quality: { ...answer.quality, frequencies: [{ hz: 24.75, share: 1 }] } }));
    await open(page, daemon.url);
    assert.match(await text(page, "#facts"), / at 24\.8 Hz/);
    await page.unroute(() => true);
    await answerInstead(page, "/profile", (answer) => ({ ...answer, quality: { ...answer.quality, frequencies: [{ hz: 99, share: 0.7 }, { hz: 24.75, share: 0.3 }] } }));
    await open(page, daemon.url);
    assert.match(await text(page, "#facts"), / at 24\.8 to 99 Hz/);
  });

  it("averages CPUs over the time in which the selection could be sampled", async () => {
    const cpus = async () => Number(/([\d.]+) CPUs/.exec(await text(page, "#facts"))[1]);
    const begun = { started: new Date(NOW - 150_000).toISOString() };
    await answerInstead(page, "/profile", (answer) => ({ ...answer, processes: answer.processes.map((process) => ({ ...process, ...begun })) }));
    await open(page, `${daemon.url}/?pid=4242`);
    assert.equal(await cpus(), Number((104.7 / 150).toFixed(2))); // and not over a quarter of an hour
    // A tenth of each second: a tenth of the window.
    await open(page, `${daemon.url}/?offset_from=240&offset_to=340`);
    const part = await page.evaluate(async () => (await fetch("/processes?offset_from=240&offset_to=340")).json());
    assert.equal(await cpus(), Number((part.cpu_seconds / 90).toFixed(2)));
    // The machine slept for ten minutes of these twenty.
    const asleep = "from=2026-01-31T12:25:30Z&to=2026-01-31T12:45:30Z";
    await page.unroute(() => true);
    await answerInstead(page, "/profile", (answer) => ({ ...answer, missing: [{ from_ms: NOW - 5700_000, to_ms: NOW - 5100_000, reason: "suspended", cpu: null }] }));
    await open(page, `${daemon.url}/?${asleep}`);
    const awake = await page.evaluate(async (window) => (await fetch(`/processes?${window}`)).json(), asleep);
    assert.equal(await cpus(), Number((awake.cpu_seconds / 600).toFixed(2)));
  });

  it("keeps its state in the address, through reload and back", async () => {
    await open(page, daemon.url);
    await page.click('[data-id="31337@70000"]');
    await loaded(page, 2);
    await page.fill("#when", "now-1h");
    await page.keyboard.press("Enter");
    await loaded(page, 3);
    await page.fill("#search", "scan");
    const address = new URL(await page.evaluate(() => location.href));
    assert.deepEqual(Object.fromEntries(address.searchParams), { pid: "31337@70000", from: "now-1h", search: "scan" });
    const frames = await mirror(page);

    await page.reload();
    await loaded(page);
    assert.deepEqual(await mirror(page), frames);
    assert.equal(await page.inputValue("#when"), "last 1h");
    assert.match(await text(page, "#search-result"), /80.6 % matched/);
    assert.equal(await page.$eval('[data-id="31337@70000"]', (row) => row.getAttribute("aria-selected")), "true");

    await page.goBack();
    await loaded(page, 2);
    assert.equal(await page.inputValue("#when"), "last 15m");
    assert.match(await text(page, "#profile-title"), /^java/);
    await page.goBack();
    await loaded(page, 3);
    assert.equal(await text(page, "#profile-title"), "Whole machine");
  });

  it("has quick choices of the window", async () => {
    await open(page, daemon.url);
    await page.click("#ranges button:nth-child(3)");
    await loaded(page, 2);
    assert.equal(await page.evaluate(() => location.search), "?from=now-1h");
    assert.equal(await page.$eval("#ranges button:nth-child(3)", (button) => button.getAttribute("aria-pressed")), "true");
  });

  it("shows hostile names as text", async () => {
    await open(page, `${daemon.url}/?pid=777`);
    assert.equal(await text(page, "#profile-title bdi"), "<img onerror=x>");
    assert.equal(await page.$$eval("img", (images) => images.length), 0);
    assert.equal(await page.$$eval("body script", (scripts) => scripts.length), 0);
    const names = (await mirror(page)).map((frame) => frame.text);
    assert.ok(names.some((name) => name.startsWith("<script>alert(1)</script>, 100.0 %")));
    assert.ok(names.some((name) => name.startsWith("line\\u000abreak,")));
    assert.ok(names.some((name) => name.startsWith("bad \uFFFD utf-8,")));
    await shot(page, "hostile");
    await open(page, `${daemon.url}/?pid=778`);
    assert.match(await text(page, "#profile-title"), /^\\u202egnp\.exe/);
    assert.ok((await mirror(page)).some((frame) => frame.text.startsWith("\\u202ereversed\\u202c,")));
    assert.deepEqual(page.troubles, []);
  });

  it("has processes that can be chosen by keyboard", async () => {
    await open(page, `${daemon.url}/?pid=4242`);
    await page.focus("#process-list");
    for (const key of ["ArrowDown", "ArrowDown", "ArrowDown", "Enter"]) await page.keyboard.press(key);
    await loaded(page, 2);
    assert.match(await text(page, "#profile-title"), /^java/);
  });

  it("says so if a known process has no samples", async () => {
    await open(page, `${daemon.url}/?pid=600`);
    assert.match(await text(page, "#notice"), /Never sampled.*Process 600 has no samples in the window.*No sample in all that is retained, from 2026-01-31T11:05:30Z on, matches pid/s);
    assert.deepEqual(await page.$$eval("#notice button", (buttons) => buttons.map((button) => button.textContent)), ["Whole machine"]);
    assert.deepEqual(page.troubles, []);
    await shot(page, "empty");
    await page.click("#notice button");
    await loaded(page, 2);
    assert.ok(await page.isHidden("#notice"));
    assert.equal(await text(page, "#profile-title"), "Whole machine");
  });

  it("offers another window if it has samples", async () => {
    await open(page, `${daemon.url}/?pid=4242&from=2026-01-31T11:06:00Z&to=2026-01-31T11:07:00Z&focus=nosuch`);
    assert.match(await text(page, "#notice"), /^Never sampled.*matches pid and focus/s);
    await open(page, `${daemon.url}/?pid=2222`);
    assert.match(await text(page, "#notice"), /^No samples here.*Process 2222 has no samples in the window.*Last hour/s);
  });

  it("says what is wrong with a window and in which field", async () => {
    await open(page, daemon.url);
    await page.fill("#when", "teatime");
    await page.keyboard.press("Enter");
    await loaded(page, 2);
    assert.match(await text(page, "#notice"), /"teatime" is not a time/);
    assert.equal(await page.getAttribute("#when", "aria-invalid"), "true");
    await shot(page, "error");
    await page.click("#notice .primary");
    await loaded(page, 3);
    assert.ok(await page.isHidden("#notice"));
    assert.equal(await page.getAttribute("#when", "aria-invalid"), null);
  });

  it("says so if a process was never seen", async () => {
    await open(page, `${daemon.url}/?pid=1`);
    assert.match(await text(page, "#notice"), /Unknown process.*never seen process 1/s);
  });

  it("says that the daemon is unreachable, and goes on when it is back", async () => {
    const other = await Daemon.start(process.env.FLAMED_FIXTURE);
    await open(page, `${other.url}/?pid=4242`);
    await other.stop();
    await page.click("#ranges button:nth-child(3)");
    await loaded(page, 2);
    assert.match(await text(page, "#away"), /flamed does not answer/);
    // The earlier answer stays readable.
    assert.equal((await mirror(page))[0].value, 10470);
    await shot(page, "away");
    // Back on another port: the network redirects the page, as if a new daemon had the old port.
    await page.route(`${other.url}/**`, async (route) => {
      const answer = await page.context().request.get(route.request().url().replace(other.url, daemon.url));
      await route.fulfill({ response: answer });
    });
    await page.waitForSelector("#away", { state: "detached" });
    await loaded(page, 3);
    assert.ok((await mirror(page))[0].value > 10470); // of an hour
  });

  it("fits a screen of 360 pixels", async () => {
    const narrow = await browser.page(daemon.url, { width: 360, height: 740 });
    await open(narrow, `${daemon.url}/?pid=4242`);
    assert.equal(await narrow.evaluate(() => document.documentElement.scrollWidth), 360);
    assert.ok((await painted(narrow)).share > 0.1);
    await shot(narrow, "narrow", { fullPage: true });
    await narrow.close();
  });
});
