// SPDX-License-Identifier: Apache-2.0
// The timeline and the heat map over fixed content (fixture_history.cc).
import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";

import { Daemon, NOW, answerInstead, answered, drag, inspect, loaded, open, text } from "./browser.mjs";
import { browser, daemon, page, useFixture } from "./fixture.mjs";

const address = async (page) => Object.fromEntries(new URL(await page.evaluate(() => location.href)).searchParams);
const slider = (page, name) => page.getByRole("slider", { name, exact: true });
const valueText = (page, name) => slider(page, name).getAttribute("aria-valuetext");

// The number of different colours on a canvas.
const colours = (page, selector) =>
  page.$eval(selector, (canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const found = new Set();
    for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 0) found.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
    return found.size;
  });

async function hover(page, selector, [x, y]) {
  const box = await page.$eval(selector, (element) => element.getBoundingClientRect().toJSON());
  await page.mouse.move(box.x + x * box.width, box.y + y * box.height);
}

useFixture();
afterEach(() => assert.deepEqual(page.troubles, []));

const OVER = "#timeline .u-over";
// In the three retained hours.
const share = (secondsAgo) => 1 - secondsAgo / 10800;

describe("the timeline", () => {
  it("shows the whole retained history, with a description in words", async () => {
    await open(page, daemon.url);
    const told = await text(page, "#timeline-text");
    assert.match(told, /^CPU use from 11:05:30 to 14:05:30 \(UTC\+00:00\), in steps of 1 min: 0\.\d\d CPUs on average, 1\.9\d at most/);
    assert.match(told, /There are no samples from 12:30:\d\d to 12:40:\d\d\./);
    assert.match(told, /5,000 samples were lost from 13:35:00 to 13:36:00\./);
    assert.ok((await colours(page, "#timeline canvas")) > 4);
    assert.equal(await valueText(page, "Move the window"), "13:50:30 to 14:05:30");
    await inspect(page, "timeline");
  });

  it("marks where one CPU was not sampled", async () => {
    const from_ms = NOW - 3000_000;
    await page.route(`${daemon.url}/timeline*`, async (route) => {
      const answer = await (await page.context().request.get(route.request().url())).json();
      await route.fulfill({ json: { ...answer, missing: [{ from_ms, to_ms: from_ms + 20_000, reason: "timer_silent", cpu: 3 }] } });
    });
    await open(page, daemon.url);
    assert.match(await text(page, "#timeline-text"), / CPU 3 was not sampled from 13:15:30 to 13:15:50\./);
    await hover(page, OVER, [share(3000), 0.5]);
    assert.match(await text(page, "#timeline-readout"), /^13:15:00 user 0\.\d\d · kernel 0\.\d\d · CPU 3 not sampled$/);
    await hover(page, OVER, [share(2800), 0.5]);
    assert.doesNotMatch(await text(page, "#timeline-readout"), /CPU 3/);
    assert.deepEqual(page.troubles, []);
  });

  it("describes the time under the pointer", async () => {
    await open(page, daemon.url);
    await hover(page, OVER, [share(3000), 0.5]);
    assert.match(await text(page, "#timeline-readout"), /^13:15:00 user 0\.\d\d · kernel 0\.\d\d$/);
    await hover(page, OVER, [share(5400), 0.5]);
    assert.match(await text(page, "#timeline-readout"), /no samples/);
    await hover(page, OVER, [share(1785), 0.5]);
    assert.match(await text(page, "#timeline-readout"), /5,000 lost$/);
    await page.mouse.move(2, 2);
    assert.equal(await text(page, "#timeline-readout"), "");
  });

  it("makes a dragged span the window", async () => {
    await open(page, daemon.url);
    await answered(page, () => drag(page, OVER, [share(3600), 0.5], [share(2400), 0.5]));
    const { from, to } = await address(page);
    assert.ok(Math.abs(Date.parse(from) - (NOW - 3600_000)) < 30_000, from);
    assert.ok(Math.abs(Date.parse(to) - (NOW - 2400_000)) < 30_000, to);
    assert.match(await valueText(page, "Start of the window"), /^13:05:/);
    await page.goBack();
    await loaded(page, 3);
    assert.deepEqual(await address(page), {});
    assert.equal(await valueText(page, "Start of the window"), "13:50:30");
  });

  it("stays live if the window ends at the newest sample", async () => {
    await open(page, daemon.url);
    await answered(page, () => drag(page, OVER, [share(1200), 0.5], [1.02, 0.5]));
    const { from, to } = await address(page);
    assert.match(from, /^now-1[12]\d\ds$/);
    assert.equal(to, undefined);
  });

  it("does not change the window on a click", async () => {
    await open(page, daemon.url);
    await drag(page, OVER, [0.3, 0.5], [0.3, 0.5]);
    assert.deepEqual(await address(page), {});
    assert.equal(await valueText(page, "Start of the window"), "13:50:30");
  });

  it("moves the window by its grip and an edge by itself", async () => {
    await open(page, `${daemon.url}/?from=2026-01-31T12:50:00Z&to=2026-01-31T13:20:00Z`);
    const grip = await page.$eval(".brush.window .brush-all", (element) => element.getBoundingClientRect().toJSON());
    const width = await page.$eval(OVER, (element) => element.clientWidth);
    const [x, y] = [grip.x + grip.width / 2, grip.y + grip.height / 2];
    await answered(page, async () => {
      await page.mouse.move(x, y);
      await page.mouse.down();
      await page.mouse.move(x + width * (1800 / 10800), y);
      await page.mouse.up();
    });
    const moved = await address(page);
    assert.equal(Date.parse(moved.to) - Date.parse(moved.from), 1800_000);
    assert.ok(Math.abs(Date.parse(moved.from) - Date.parse("2026-01-31T13:20:00Z")) < 30_000, moved.from);
    const edge = await page.$eval(".brush.window .brush-to", (element) => element.getBoundingClientRect().toJSON());
    await answered(page, async () => {
      await page.mouse.move(edge.x + 4, edge.y + 15);
      await page.mouse.down();
      await page.mouse.move(edge.x + 4 - width * (600 / 10800), edge.y + 15);
      await page.mouse.up();
    });
    const shortened = await address(page);
    assert.equal(shortened.from, moved.from);
    assert.ok(Math.abs(Date.parse(moved.to) - Date.parse(shortened.to) - 600_000) < 30_000, shortened.to);
  });

  it("moves the window's edges with keys", async () => {
    await open(page, `${daemon.url}/?from=2026-01-31T12:50:00Z&to=2026-01-31T13:20:00Z`);
    await slider(page, "End of the window").focus();
    await answered(page, () => page.keyboard.press("ArrowLeft"));
    const once = Date.parse("2026-01-31T13:20:00Z") - Date.parse((await address(page)).to);
    assert.ok(once >= 1000 && once <= 60_000, String(once));
    await answered(page, () => page.keyboard.press("PageDown"));
    assert.equal(Date.parse("2026-01-31T13:20:00Z") - Date.parse((await address(page)).to), 11 * once);
    await slider(page, "Move the window").focus();
    await answered(page, () => page.keyboard.press("Home"));
    assert.equal((await address(page)).from, "2026-01-31T11:05:30.000Z");
    assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), "Move the window");
  });

  it("pins a baseline with Shift, and compares the window with it", async () => {
    await open(page, daemon.url);
    await answered(page, () => drag(page, OVER, [share(3600), 0.5], [share(2400), 0.5], { modifier: "Shift" }));
    const { from, base_from, base_to } = await address(page);
    assert.equal(from, undefined);
    assert.ok(Math.abs(Date.parse(base_from) - (NOW - 3600_000)) < 30_000, base_from);
    assert.ok(Math.abs(Date.parse(base_to) - (NOW - 2400_000)) < 30_000, base_to);
    assert.match(await valueText(page, "Start of the baseline"), /^13:05:/);
    assert.equal(await valueText(page, "Start of the window"), "13:50:30");
    await inspect(page, "diff");
    await answered(page, () => page.click("#timeline-unpin"));
    assert.deepEqual(await address(page), {});
    assert.equal(await slider(page, "Start of the baseline").count(), 0);
  });

  it("pins a baseline by a button, for users without Shift", async () => {
    await open(page, daemon.url);
    await page.click("#timeline-pin");
    assert.equal(await page.getAttribute("#timeline-pin", "aria-pressed"), "true");
    await answered(page, () => drag(page, OVER, [share(9000), 0.5], [share(8400), 0.5]));
    assert.ok(Math.abs(Date.parse((await address(page)).base_from) - (NOW - 9000_000)) < 30_000);
    // The next span is the window again.
    await answered(page, () => drag(page, OVER, [share(3600), 0.5], [share(2400), 0.5]));
    assert.ok(Math.abs(Date.parse((await address(page)).from) - (NOW - 3600_000)) < 30_000);
  });

  it("pins and moves a baseline with the keyboard only", async () => {
    await open(page, daemon.url);
    await page.focus("#compare-button");
    await page.keyboard.press("Enter");
    // The browser tells of an opened popover a moment later.
    await page.waitForFunction(() => document.activeElement.closest(".menu") !== null);
    await page.keyboard.press("ArrowDown");
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "The time just before");
    await answered(page, () => page.keyboard.press("Enter"));
    assert.equal((await address(page)).base_from, "2026-01-31T13:35:30.000Z");
    assert.equal((await address(page)).base_to, "2026-01-31T13:50:30.000Z");
    await slider(page, "Move the baseline").focus();
    await answered(page, () => page.keyboard.press("Home"));
    assert.equal((await address(page)).base_from, "2026-01-31T11:05:30.000Z");
  });

  it("compares with the same time an hour ago by one click or key, and goes on with it", async () => {
    await open(page, daemon.url);
    for (const act of [() => page.click("#what-changed"), () => page.keyboard.press("w")]) {
      await answered(page, act);
      assert.deepEqual(await address(page), { base_ago: "1h" });
      assert.equal(await valueText(page, "Start of the baseline"), "12:50:30");
      assert.equal(await text(page, "#chips"), "Compared with 12:50:30 – 13:05:30, the same time an hour ago");
      assert.match(await text(page, "#legend"), /^LessUnchangedMore$/);
      await answered(page, () => page.click("#timeline-unpin"));
    }
    await open(page, `${daemon.url}/?pid=4242&from=2026-01-31T13:00:00Z&to=2026-01-31T13:10:00Z`);
    await answered(page, () => page.click("#what-changed"));
    const { base_ago, base_from, base_pid } = await address(page);
    assert.deepEqual([base_ago, base_from, base_pid], ["1h", undefined, undefined]);
    assert.match(await text(page, "#chips"), /Compared with 12:00:00 – 12:10:00, the same time an hour ago/);
    // The baseline goes with its window, and a baseline that is moved stays where it is.
    await answered(page, () => page.click("#step-forward"));
    assert.match(await text(page, "#chips"), /Compared with 12:10:00 – 12:20:00, the same time an hour ago/);
    await slider(page, "Move the baseline").focus();
    await answered(page, () => page.keyboard.press("Home"));
    const moved = await address(page);
    assert.deepEqual([moved.base_ago, moved.base_from], [undefined, "2026-01-31T11:05:30.000Z"]);
  });

  it("compares with what is on disk before the timeline, and says when the history does not reach so far", async () => {
    const day = 24 * 3600_000;
    await answerInstead(page, "/healthz", (answer) => ({ ...answer, oldest_ms: NOW - 8 * day }));
    await open(page, daemon.url);
    await page.waitForFunction(() => !document.querySelector('#compare .entry:nth-of-type(3)')?.disabled);
    await page.click("#compare-button");
    await answered(page, () => page.click('#compare .entry:has-text("a week ago")'));
    assert.deepEqual(await address(page), { base_ago: "7d" });
    // The fixture has no such history.
    assert.match(await text(page, "#warnings"), /Of the time before: The window is before flamed began to sample/);
    await page.click("#copy-link");
    await page.waitForFunction(() => document.querySelector("#copy-link").dataset.address !== "");
    const link = new URL(await page.getAttribute("#copy-link", "data-address")).searchParams;
    assert.deepEqual([link.get("from"), link.get("base_ago"), link.get("base_from")], ["2026-01-31T13:50:30.000Z", "7d", null]);
  });

  it("says which times a window can't be compared with, and why", async () => {
    const choices = () => page.$$eval("#compare .entry", (all) => all.map((entry) => [entry.firstChild.textContent, entry.querySelector("small").textContent, entry.disabled]));
    await open(page, daemon.url);
    await page.click("#compare-button");
    const none = "samples begin at 2026-01-31 11:05:30";
    assert.deepEqual(await choices(), [
      ["The same time an hour ago", "", false], ["The same time a day ago", none, true], ["The same time a week ago", none, true], ["The time just before", "", false],
    ]);
    await inspect(page, "compare");
    await open(page, `${daemon.url}/?from=now-2h`);
    assert.deepEqual((await choices())[0], ["The same time an hour ago", "the window is longer", true]);
    assert.ok(await page.isDisabled("#what-changed"));
    assert.match(await page.getAttribute("#what-changed", "title"), /^The same time an hour ago: the window is longer\nThe same time a day ago: samples begin at/);
  });

  it("compares with a day ago if the history is that long", async () => {
    // As if flamed had run for two days.
    await answerInstead(page, "/timeline", (answer) => ({ ...answer, window: { ...answer.window, used: { ...answer.window.used, from_ms: NOW - 48 * 3600_000 } } }));
    await open(page, daemon.url);
    await page.click("#compare-button");
    await answered(page, () => page.click('#compare .entry:has-text("a day ago")'));
    assert.deepEqual(await address(page), { base_ago: "1d" });
  });

  it("shows the busiest processes on demand, and selects one on a click", async () => {
    await open(page, daemon.url);
    await answered(page, () => page.click("#timeline-top"));
    assert.equal((await address(page)).top, "5");
    const names = await page.$$eval(".timeline-legend li", (items) => items.map((item) => item.textContent));
    assert.equal(names.length, 6);
    assert.equal(names[0], "checkout-api");
    assert.equal(names[5], "others");
    await inspect(page, "top-processes");
    await answered(page, () => page.click(".timeline-legend li:nth-child(1) button"));
    assert.equal((await address(page)).pid, "4242@90000");
  });

  it("ranks the processes of the chosen window, and not of all that is retained", async () => {
    await open(page, `${daemon.url}/?from=2026-01-31T13:05:30Z&to=2026-01-31T13:25:30Z`);
    await answered(page, () => page.click("#timeline-top"));
    const names = await page.$$eval(".timeline-legend li", (items) => items.map((item) => item.textContent));
    assert.deepEqual(names, ["backup", "checkout-api", "java", "others"]);
  });

  it("is scaled to what is selected, and dims what is outside of the window", async () => {
    const filled = (selector, part) => page.$eval(selector, (canvas, [from, to]) => {
      const { data, width, height } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      let count = 0;
      // Orange, as user code is.
      for (let y = 0; y < height; y++) for (let x = Math.floor(from * width); x < to * width; x++) if (data[4 * (y * width + x)] > 200 && data[4 * (y * width + x) + 2] < 120 && data[4 * (y * width + x) + 3] === 255) count++;
      return count / ((to - from) * width * height);
    }, part);
    // One process of two busy CPUs fills as much of the height as the machine would.
    await open(page, `${daemon.url}/?pid=31337`);
    const share = await filled("#timeline canvas", [0.95, 0.99]);
    assert.ok(share > 0.15, `${share}`);
    const ground = (pseudo) => page.$eval(".brush.window", (band, which) => getComputedStyle(band, which).backgroundColor, pseudo);
    assert.match(await ground(undefined), /rgba\(0, 0, 0, 0\)|transparent/);
    assert.match(await ground("::before"), /0\.62/);
  });

  it("shows what is selected before the whole machine", async () => {
    await open(page, `${daemon.url}/?pid=2222`);
    const told = await text(page, "#timeline-text");
    assert.match(told, /0\.\d\d at most, at 13:(0[5-9]|1\d|2[0-5]):00/);
    assert.ok((await colours(page, "#timeline canvas")) > 4);
  });

  it("zooms in on a part of the time, and out again", async () => {
    await open(page, daemon.url);
    await answered(page, () => page.click("#timeline-in"));
    await answered(page, () => page.click("#timeline-in"));
    assert.match((await address(page)).line, /^\d+-\d+$/);
    assert.match(await text(page, "#timeline-text"), /in steps of (10|15) s/);
    assert.equal(await valueText(page, "Start of the window"), "13:50:30");
    const line = (await address(page)).line;
    await page.reload();
    await loaded(page);
    assert.equal((await address(page)).line, line);
    await answered(page, () => page.click("#timeline-all"));
    assert.equal((await address(page)).line, undefined);
    for (const step of ["in", "in", "out"]) await answered(page, () => page.click(`#timeline-${step}`));
    assert.notEqual((await address(page)).line, line);
    await answered(page, () => page.click("#timeline-out"));
    assert.equal((await address(page)).line, undefined);
    assert.ok(await page.isDisabled("#timeline-all"));
    await answered(page, () => page.dblclick(OVER, { position: { x: 200, y: 25 } }));
    assert.equal((await address(page)).line, `${NOW - 900_000}-${NOW}`);
  });

  it("requests only the new part when time goes on", async () => {
    const other = await Daemon.start(process.env.FLAMED_FIXTURE);
    const live = await browser.page(other.url, { now: null });
    await live.clock.install({ time: NOW });
    await open(live, `${other.url}/?from=now-5m`);
    const asked = [];
    live.on("request", (request) => {
      // The processes' sparklines are another query.
      const { pathname, searchParams } = new URL(request.url());
      if (pathname === "/timeline" && !searchParams.has("processes")) asked.push(searchParams);
    });
    await other.goOn(90);
    await answered(live, () => live.clock.fastForward(90_000));
    assert.match(await text(live, "#timeline-text"), /to 14:07:00 /);
    assert.ok(asked.length > 0);
    for (const parameters of asked) {
      assert.equal(parameters.get("step"), "60s");
      assert.ok(Number(parameters.get("from")) >= NOW - 120_000, parameters.get("from"));
    }
    assert.equal(await valueText(live, "End of the window"), "14:07:00");
    assert.deepEqual(live.troubles, []);
    await live.close();
    await other.stop();
  });

  it("labels its axes in letters of one size, whatever the screen's density", async () => {
    for (const density of [1, 2]) {
      const dense = await browser.page(daemon.url, { density });
      await dense.addInitScript(() => {
        window.fonts = [];
        const { fillText } = CanvasRenderingContext2D.prototype;
        CanvasRenderingContext2D.prototype.fillText = function (...all) {
          if (this.canvas.closest("#timeline") !== null) window.fonts.push(parseFloat(/([\d.]+)px/.exec(this.font)[1]) / devicePixelRatio);
          return fillText.apply(this, all);
        };
      });
      await open(dense, daemon.url);
      assert.deepEqual([...new Set(await dense.evaluate(() => window.fonts))], [12]);
      await dense.close();
    }
  });

  it("is told in the reader's own time zone", async () => {
    const far = await browser.page(daemon.url, { timeZone: "Asia/Kathmandu" });
    await open(far, daemon.url);
    assert.match(await text(far, "#timeline-text"), /^CPU use from 16:50:30 to 19:50:30 \(UTC\+05:45\)/);
    assert.deepEqual(far.troubles, []);
    await far.close();
  });

  it("fits from 360 pixels to 4K", async () => {
    for (const [width, height] of [[360, 740], [3840, 2160]]) {
      const sized = await browser.page(daemon.url, { width, height });
      await open(sized, `${daemon.url}/?heat=1&pid=4242`);
      assert.equal(await sized.evaluate(() => document.documentElement.scrollWidth), width);
      const { canvas, over } = await sized.$eval("#timeline", (chart) => ({
        canvas: chart.querySelector("canvas").getBoundingClientRect().width, over: chart.querySelector(".u-over").getBoundingClientRect().width }));
      assert.ok(canvas <= width && over > width * 0.7, `${canvas} ${over} of ${width}`);
      await inspect(sized, `time-${width}`);
      await sized.close();
    }
  });
});

describe("marks on the timeline", () => {
  const MARKS = [
    { time: "", time_ms: NOW - 5400_000, kind: "restart", text: "flamed was restarted" },
    { time: "", time_ms: NOW - 1200_000, kind: "note", text: "deploy <b>1.2</b>" },
    { time: "", time_ms: NOW - 1190_000, kind: "note", text: "cache emptied" },
  ];
  // A daemon that has these marks, and takes more or refuses them.
  async function withMarks(refusal = null) {
    const marks = [...MARKS];
    await page.route((url) => url.pathname === "/marks", async (route) => {
      const request = route.request();
      if (request.method() === "GET") return route.fulfill({ json: { marks } });
      assert.equal(request.headers()["content-type"], "application/json");
      if (refusal !== null) return route.fulfill({ status: 403, contentType: "application/problem+json", body: JSON.stringify({ status: 403, title: "Forbidden", detail: refusal }) });
      marks.push({ kind: "note", time_ms: NOW, ...request.postDataJSON() });
      return route.fulfill({ status: 201, json: marks.at(-1) });
    });
    return marks;
  }
  const flags = () => page.$$eval(".flag", (all) => all.map((flag) => flag.ariaLabel));

  it("are flags in their places, those close together in one, with their texts for pointers and keys", async () => {
    await withMarks();
    await open(page, daemon.url);
    assert.deepEqual(await flags(), [
      "12:35:30 flamed was restarted. Compare after with before", "13:45:30 deploy <b>1.2</b>, 13:45:40 cache emptied. Compare after with before",
    ]);
    const over = await page.$eval(OVER, (element) => element.getBoundingClientRect().toJSON());
    for (const [index, ago] of [[1, 5400], [2, 1200]]) {
      const { x } = await page.$eval(`.flags li:nth-child(${index})`, (flag) => flag.getBoundingClientRect().toJSON());
      assert.ok(Math.abs(x - (over.x + share(ago) * over.width)) < 2, `${x}`);
    }
    const told = () => page.$$eval(".flag-text", (all) => all.filter((one) => getComputedStyle(one).display !== "none").map((one) => one.textContent));
    assert.deepEqual(await told(), []);
    await page.hover(".flags li:nth-child(2) .flag");
    assert.match((await told()).join(), /^13:45:30 deploy <b>1\.2<\/b>13:45:40 cache emptied/);
    await inspect(page, "marks");
    await page.mouse.move(2, 2);
    await page.focus("#timeline-in");
    await page.focus(".flags li:nth-child(1) .flag");
    await page.keyboard.press("Shift+Tab");
    await page.keyboard.press("Tab");
    assert.match((await told()).join(), /^12:35:30 flamed was restarted/);
    await open(page, `${daemon.url}/?line=${NOW - 1300_000}-${NOW - 1100_000}`);
    assert.deepEqual((await flags()).map((flag) => flag.slice(0, 8)), ["13:45:30", "13:45:40"]);
  });

  it("are those of the selection, and are listed in part where many share a flag", async () => {
    const asked = [];
    await page.route((url) => url.pathname === "/marks", (route) => {
      asked.push(Object.fromEntries(new URL(route.request().url()).searchParams));
      return route.fulfill({ json: { marks: Array.from({ length: 100 }, (_, i) => ({ time_ms: NOW - 1200_000 + i, kind: "restart", text: `worker ${i} restarted` })) } });
    });
    await open(page, `${daemon.url}/?unit=checkout.service&comm=checkout-api&side=user`);
    assert.deepEqual(asked, [{ from: "0", unit: "checkout.service" }]);
    const [told] = await flags();
    assert.match(told, /worker 7 restarted, and 92 more\./);
    assert.doesNotMatch(told, /worker 8/);
  });

  it("compare the time after them with the time before", async () => {
    await withMarks();
    await open(page, daemon.url);
    await answered(page, () => page.click(".flags li:nth-child(2) .flag"));
    assert.deepEqual(await address(page), {
      from: "2026-01-31T13:45:30.000Z", to: "2026-01-31T14:00:30.000Z", base_from: "2026-01-31T13:30:30.000Z", base_to: "2026-01-31T13:45:30.000Z",
    });
  });

  it("tell the worst of several minutes under pressure, and show what waited in it", async () => {
    const minute = Date.parse("2026-01-31T13:20:00Z");
    const pressed = (start, io, waits) => ({ time_ms: start, to_ms: start + 60_000, kind: "pressure", text: `pressure: io ${io} %`, pressure: { cpu: 0, io: io / 100, memory: 0 }, waits });
    const asked = { from: "2026-01-31T13:20:00.000Z", to: "2026-01-31T13:21:00.000Z" };
    const marks = [pressed(minute - 60_000, 60, []), pressed(minute, 71, [{ id: "4711@5", comm: "<postgres>", reason: "disk", seconds: 43.1 }]), pressed(minute + 60_000, 55, null)];
    await page.route((url) => url.pathname === "/marks", (route) => route.fulfill({ json: { marks } }));
    await open(page, daemon.url);
    assert.deepEqual(await flags(), ["13:20:00 pressure: io 71 %, the worst of 3 minutes, <postgres> (4711): disk 43.1 s. Show what waited"]);
    await answered(page, () => page.click(".flag.pressure"));
    assert.deepEqual(await address(page), { ...asked, measure: "wait" });
    await answerInstead(page, "/healthz", (health) => ({ ...health, measures: ["cpu"] }));
    await open(page, daemon.url);
    assert.match((await flags())[0], / Show that minute$/);
    await answered(page, () => page.click(".flag.pressure"));
    assert.deepEqual(await address(page), asked);
  });

  it("can be added, at the end of what is looked at or now", async () => {
    const marks = await withMarks();
    await open(page, daemon.url);
    await page.keyboard.press("m");
    await page.waitForFunction(() => document.activeElement.matches("#add-mark input"));
    await page.keyboard.type("deploy 1.3");
    await inspect(page, "add-mark");
    await answered(page, () => page.keyboard.press("Enter"));
    assert.deepEqual(marks.at(-1), { kind: "note", text: "deploy 1.3", time_ms: NOW });
    assert.ok(await page.isHidden("#add-mark"));
    assert.match((await flags()).join(), /14:05:30 deploy 1\.3/);
    await open(page, `${daemon.url}/?from=2026-01-31T13:00:00Z&to=2026-01-31T13:10:00Z`);
    await page.click("#add-mark-button");
    await page.fill("#add-mark input", "over");
    await page.selectOption("#add-mark select", "to");
    await answered(page, () => page.click("#add-mark .primary"));
    assert.equal(marks.at(-1).time_ms, Date.parse("2026-01-31T13:10:00Z"));
  });

  it("say why they can't be added", async () => {
    await withMarks("Only root and members of the group flamed may set marks.");
    await open(page, daemon.url);
    await page.click("#add-mark-button");
    await page.fill("#add-mark input", "deploy");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#add-mark [role=alert]");
    assert.equal(await text(page, "#add-mark [role=alert]"), "Only root and members of the group flamed may set marks.");
    assert.equal(await page.inputValue("#add-mark input"), "deploy");
    // Those who see only their own processes are not asked at all.
    await answerInstead(page, "/profile", (answer) => ({ ...answer, visible_uid: 1000 }));
    await open(page, daemon.url);
    assert.equal((await flags()).length, 2);
    assert.equal(await page.$("#add-mark"), null);
  });

  it("are the daemon's own, and stay where they were added", async () => {
    const marked = await Daemon.start(process.env.FLAMED_FIXTURE);
    const other = await browser.page(marked.url);
    await open(other, marked.url);
    const told = () => other.$$eval(".flag", (all) => all.map((flag) => flag.ariaLabel));
    assert.deepEqual(await told(), ["11:05:30 flamed started. Compare after with before"]);
    await other.click("#add-mark-button");
    await other.fill("#add-mark input", "deploy 1.3");
    await other.selectOption("#add-mark select", "from");
    await answered(other, () => other.keyboard.press("Enter"));
    await other.reload();
    await loaded(other);
    assert.equal((await told())[1], "13:50:30 deploy 1.3. Compare after with before");
    assert.deepEqual(other.troubles, []);
    await other.close();
    await marked.stop();
  });

  it("are missing where the daemon has none", async () => {
    await page.route((url) => url.pathname === "/marks", (route) => route.fulfill({ status: 404, contentType: "application/problem+json", body: JSON.stringify({ status: 404, title: "Not found" }) }));
    await open(page, daemon.url);
    assert.deepEqual(await flags(), []);
    assert.equal(await page.$("#add-mark"), null);
  });
});

describe("the heat map", () => {
  it("opens by a button, stays open in the address, and has a description in words", async () => {
    await open(page, `${daemon.url}/?pid=4242`);
    await answered(page, () => page.click("#heat-toggle"));
    assert.equal((await address(page)).heat, "1");
    assert.equal(await page.getAttribute("#heat-toggle", "aria-pressed"), "true");
    // Answers are written together, at a quarter of the second.
    assert.match(await text(page, "#heat-text"), /^10,470 samples in 900 seconds\. The busiest part of the second is (240|260|280|300) to (260|280|300|320) ms, with /);
    assert.ok((await colours(page, "#heat")) >= 3);
    await inspect(page, "heatmap");
    await page.click("#heat-toggle");
    assert.equal(await page.$("#heat"), null);
  });

  it("describes the cell under the pointer", async () => {
    await open(page, `${daemon.url}/?pid=31337&heat=1`);
    await hover(page, "#heat", [0.5, 0.9]);
    assert.match(await text(page, "#heat-readout"), /^13:5\d:\d\d – 13:5\d:\d\d, \d+ to \d+ ms of each second: \d+ samples$/);
    await page.mouse.move(2, 2);
    assert.equal((await text(page, "#heat-readout")).trim(), "");
  });

  it("shows the flame graph of exactly the dragged rectangle, to the sample", async () => {
    await open(page, `${daemon.url}/?pid=4242&heat=1`);
    await drag(page, "#heat", [0.2, 0.79], [0.6, 0.66], { release: false });
    const told = await text(page, "#heat-readout");
    await answered(page, () => page.mouse.up());
    const { from, to, offset_from, offset_to } = await address(page);
    assert.ok(Number(offset_from) >= 180 && Number(offset_to) <= 380, `${offset_from} to ${offset_to}`);
    const samples = Number(/: ([\d,]+) samples$/.exec(told)[1].replaceAll(",", ""));
    assert.ok(samples > 100, told);
    const question = new URLSearchParams({ pid: "4242", from, to, offset_from, offset_to });
    const profile = await (await fetch(`${daemon.url}/profile?${question}`)).json();
    assert.equal(profile.samples, samples);
    // The page shows that profile; the map still shows the time around it.
    assert.match(await text(page, "body"), new RegExp(`${samples.toLocaleString("en-US")}`));
    assert.match(await text(page, "#heat-text"), /in 900 seconds/);
    assert.match(await text(page, "#heat-part"), /ms of each second$/);
    await inspect(page, "heatmap-rectangle");
    const shown = await page.evaluate(() => location.href);

    const fresh = await browser.page(daemon.url);
    await open(fresh, shown);
    assert.match(await text(fresh, "#heat-text"), /in 900 seconds/);
    assert.equal(await text(fresh, "#heat-part"), await text(page, "#heat-part"));
    await fresh.close();

    await answered(page, () => page.click("#heat-all"));
    const again = await address(page);
    assert.equal(again.offset_from, undefined);
    assert.equal(Date.parse(again.to) - Date.parse(again.from), 900_000);
    await page.goBack();
    await page.waitForSelector("#heat-part");
  });

  it("shows the flame graph of a stretch of time without gaps, to the sample", async () => {
    await open(page, `${daemon.url}/?pid=4242&heat=1`);
    await page.click('#heat-pick button:has-text("Stretch")');
    assert.equal((await address(page)).pick, "time");
    await drag(page, "#heat", [0.3, 0.2], [0.5, 0.7], { release: false });
    const told = await text(page, "#heat-readout");
    assert.match(told, /^13:5\d:\d\d\.\d+ – 13:5\d:\d\d\.\d+: [\d,]+ samples$/);
    await answered(page, () => page.mouse.up());
    const { from, to, offset_from } = await address(page);
    assert.equal(offset_from, undefined);
    const { samples } = await (await fetch(`${daemon.url}/profile?${new URLSearchParams({ pid: "4242", from, to })}`)).json();
    assert.equal(Number(/: ([\d,]+) samples$/.exec(told)[1].replaceAll(",", "")), samples);
    assert.match(await text(page, "#heat-text"), /in 900 seconds/);
    assert.equal(`${await text(page, "#heat-stretch")}: ${samples.toLocaleString("en-US")} samples`, told);
    await inspect(page, "heatmap-stretch");
    // By keys, from one second to the next.
    await answered(page, () => page.click("#heat-all"));
    assert.equal(await page.$("#heat-stretch"), null);
    await page.focus("#heat");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Shift+ArrowRight");
    await page.keyboard.press("Shift+ArrowDown");
    await answered(page, () => page.keyboard.press("Enter"));
    const next = await address(page);
    assert.ok(Date.parse(next.from) % 1000 !== 0 && Date.parse(next.to) - Date.parse(next.from) > 1000, `${next.from} ${next.to}`);
  });

  it("says where its scale ends", async () => {
    await open(page, `${daemon.url}/?pid=4242&heat=1`);
    assert.match(await text(page, ".heat-legend"), /^0\d+ samples? in 20 ms or more \(99th percentile\)$/);
  });

  it("can be used with the keyboard only", async () => {
    await open(page, `${daemon.url}/?pid=4242&heat=1`);
    await page.focus("#heat");
    await page.keyboard.press("ArrowRight"); // begins at the hottest place
    assert.match(await text(page, "#heat-readout"), /^14:03:(09|1\d)/);
    for (const key of ["ArrowLeft", "ArrowDown"]) await page.keyboard.press(key);
    for (let i = 0; i < 4; i++) await page.keyboard.press("Shift+ArrowRight");
    for (let i = 0; i < 5; i++) await page.keyboard.press("Shift+ArrowUp");
    const marked = await text(page, "#heat-readout");
    await page.keyboard.press("Escape");
    assert.notEqual(await text(page, "#heat-readout"), marked);
    for (let i = 0; i < 2; i++) await page.keyboard.press("Shift+ArrowRight");
    for (let i = 0; i < 4; i++) await page.keyboard.press("Shift+ArrowUp");
    await answered(page, () => page.keyboard.press("Enter"));
    const { from, to, offset_from, offset_to } = await address(page);
    assert.ok(Date.parse(to) - Date.parse(from) >= 3000, `${from} ${to}`);
    assert.equal(Number(offset_to) - Number(offset_from), 100);
    assert.equal(await page.evaluate(() => document.activeElement.id), "heat");
  });

  it("ends when a window is chosen elsewhere", async () => {
    await open(page, `${daemon.url}/?pid=4242&heat=1`);
    await answered(page, () => drag(page, "#heat", [0.2, 0.9], [0.6, 0.5]));
    await answered(page, () => drag(page, OVER, [share(2000), 0.5], [share(1000), 0.5]));
    const { around, offset_from } = await address(page);
    assert.equal(around, undefined);
    assert.equal(offset_from, undefined);
  });

  it("says why it is missing for time with only minutes' counts", async () => {
    await open(page, `${daemon.url}/?heat=1&from=2026-01-31T11:10:00Z&to=2026-01-31T11:30:00Z`);
    assert.match(await text(page, "#heat-problem"), /no longer kept one by one/);
    await inspect(page, "heatmap-none");
    await answered(page, () => page.click("#heat-problem button"));
    assert.equal(await page.$("#heat-problem"), null);
  });

  it("shows the last hour of a longer window, and says so", async () => {
    await open(page, `${daemon.url}/?heat=1&from=now-2h`);
    assert.match(await text(page, ".heat-warnings"), /The last hour of the window/);
    assert.match(await text(page, "#heat-text"), /in 3,6\d\d seconds/);
  });

  it("works together with everything else", async () => {
    const whole = await browser.page(daemon.url, { width: 1280, height: 1040 });
    await open(whole, `${daemon.url}/?pid=4242&heat=1`);
    await inspect(whole, "time-whole");
    const [timeline, map, graph] = await Promise.all(["#timeline", "#heat", ".flame-canvas"].map((selector) => whole.$eval(selector, (element) => element.getBoundingClientRect().toJSON())));
    assert.ok(timeline.bottom <= map.top && map.bottom <= graph.top && graph.height > 200, JSON.stringify({ timeline, map, graph }));
    await whole.close();
  });

  it("is readable in the dark, without motion", async () => {
    const dark = await browser.page(daemon.url, { colorScheme: "dark", reducedMotion: "reduce" });
    await open(dark, `${daemon.url}/?pid=4242&heat=1&top=5&base_from=now-30m&base_to=now-15m`);
    await inspect(dark, "time-dark");
    await dark.close();
  });
});
