// SPDX-License-Identifier: Apache-2.0
// What a thread did in the order of time: its computation, and the view over fixed content.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { answered, inspect, loaded, mirror, open, text } from "./browser.mjs";
import { daemon, page, useFixture } from "./fixture.mjs";
import { source } from "./source.mjs";

const { MOST_CALLS, orderOf, samplesOf } = await source("graph/order/order.ts");

// [microseconds, "main;read"], each of a period of ten milliseconds.
function samples(taken, seconds = 10) {
  const strings = ["", "all"];
  const nodes = { frame: [0], caller: [0] };
  const places = new Map([["", 0]]);
  const frames = { name: [1], module: [0], kind: [0] };
  const numbers = new Map();
  const nodeOf = (stack) => {
    if (places.has(stack)) return places.get(stack);
    const cut = stack.lastIndexOf(";");
    const name = stack.slice(cut + 1);
    const caller = nodeOf(cut === -1 ? "" : stack.slice(0, cut));
    if (!numbers.has(name)) {
      numbers.set(name, frames.name.push(strings.push(name) - 1) - 1);
      frames.module.push(0);
      frames.kind.push(1);
    }
    nodes.caller.push(caller);
    const node = nodes.frame.push(numbers.get(name)) - 1;
    places.set(stack, node);
    return node;
  };
  return samplesOf({
    window: { used: { from_ms: 1_000_000, to_ms: 1_000_000 + seconds * 1000 } }, warnings: [],
    columns: { strings, kinds: ["root", "native"], frames, nodes, samples: { time_us: taken.map(([us]) => us), node: taken.map(([, stack]) => nodeOf(stack)), period_ns: taken.map(() => 10_000_000) } },
  });
}

// Each call as "depth name from-to", in milliseconds of the shown time.
const calls = (model) => Array.from({ length: model.size }, (_, i) => i).filter((i) => i > 0 && model.name(i) !== "not sampled")
  .map((i) => `${model.depth[i]} ${model.name(i)} ${model.start[i] / 1000}-${(model.start[i] + model.value[i]) / 1000}`);

describe("the order of time", () => {
  it("joins samples that follow each other, as far as their callers are the same", () => {
    const { model, merged } = orderOf(samples([[10_000, "main;read"], [20_000, "main;read"], [30_000, "main;write"], [40_000, "main"], [50_000, "main;read"]], 0.1), 0, 100_000);
    assert.deepEqual(calls(model), ["1 main 0-50", "2 read 0-20", "2 write 20-30", "2 read 40-50"]);
    assert.equal(model.total, 100_000);
    assert.equal(model.startMs, 1_000_000);
    assert.equal(merged, 0);
  });

  it("leaves time without samples empty", () => {
    const { model } = orderOf(samples([[30_000, "main;a"], [70_000, "main;a"], [80_500, "main;a"]], 0.1), 0, 100_000);
    assert.deepEqual(calls(model), ["1 main 20-30", "2 a 20-30", "1 main 60-80.5", "2 a 60-80.5"]);
    assert.equal(model.value[0], 100_000);
    assert.equal(model.frames.kind(model.frame[1]), "idle");
  });

  it("shows a part of the time, with what began before it", () => {
    const taken = Array.from({ length: 100 }, (_, i) => [(i + 1) * 10_000, i < 50 ? "main;a" : "main;b"]);
    const { model } = orderOf(samples(taken, 1), 495_000, 515_000);
    assert.deepEqual(calls(model), ["1 main 0-20", "2 a 0-5", "2 b 5-20"]);
    assert.equal(model.startMs, 1_000_495);
    assert.deepEqual(calls(orderOf(samples([], 1), 0, 1000).model), []);
  });

  it("keeps every sample at its time, however the stacks change", () => {
    let seed = 11;
    const random = (below) => (seed = (seed * 48271) % 2147483647) % below;
    const taken = [];
    for (let us = 10_000; us < 900_000; us += 10_000 * (1 + random(3))) taken.push([us, Array.from({ length: 1 + random(5) }, () => `f${random(3)}`).join(";")]);
    const { model } = orderOf(samples(taken, 1), 0, 1_000_000);
    for (const [us, stack] of taken) {
      stack.split(";").forEach((name, level) => {
        const node = model.at(level + 1, us - 5000);
        assert.equal(node === -1 ? "" : model.name(node), name, `${stack} at ${us}`);
      });
      const below = model.at(stack.split(";").length + 1, us - 5000);
      assert.ok(below === -1 || model.name(below) === "not sampled", `nothing below ${stack}`);
    }
  });

  it("draws no more calls than it may, leaves the shortest to their callers, and says so", () => {
    const taken = Array.from({ length: 90_000 }, (_, i) => [(i + 1) * 10_000, `main;a;${i % 2 === 0 ? "b;c" : "d"}`]);
    const whole = samples(taken, 900);
    const { model, merged, leastUs } = orderOf(whole, 0, 900_000_000);
    assert.deepEqual(calls(model), ["1 main 0-900000", "2 a 0-900000"]);
    assert.equal(merged, 135_000);
    assert.equal(leastUs, 225_000);
    const part = orderOf(whole, 0, 10_000_000);
    assert.equal(part.merged, 0);
    assert.equal(calls(part.model).length, 2 + 1500);
    // All long enough to be seen, but too many.
    const deep = samples(Array.from({ length: 3000 }, (_, i) => [(i + 1) * 10_000, `main;${Array.from({ length: 20 }, (_, level) => `f${level}_${i % 2}`).join(";")}`]), 30);
    const cut = orderOf(deep, 0, 30_000_000);
    assert.ok(calls(cut.model).length <= MOST_CALLS, String(calls(cut.model).length));
    assert.equal(calls(cut.model).length + cut.merged, 60_001);
  });

  it("shows seldom samples, however short they are beside the window", () => {
    const { model } = orderOf(samples([[100_000_000, "main;a"], [500_000_000, "main;b"]], 900), 0, 900_000_000);
    assert.deepEqual(calls(model).map((call) => call.split(" ")[1]), ["main", "main"]);
  });
});

describe("the view over time", () => {
  useFixture({ reducedMotion: "reduce" });

  const WINDOW = "from=2026-01-31T14:03:11Z&to=2026-01-31T14:03:15Z";
  const chart = () => page.waitForFunction(() => document.querySelector("#graph-time .flame-item") !== null);
  const address = async () => Object.fromEntries(new URL(await page.evaluate(() => location.href)).searchParams);

  it("lists threads by their load with the main one marked, and shows exactly the samples of the chosen one", async () => {
    await open(page, `${daemon.url}/?pid=4242&${WINDOW}`);
    await answered(page, () => page.click('#modes [data-mode="time"]'));
    await chart();
    const tracks = await page.$$eval(".track", (all) => all.map((track) => [track.dataset.track, track.textContent, track.getAttribute("aria-pressed")]));
    const { threads } = await (await fetch(`${daemon.url}/threads?pid=4242&${WINDOW}`)).json();
    assert.deepEqual(tracks.map(([key]) => key), threads.map(({ tid }) => `4242@90000/${tid}`));
    assert.deepEqual(tracks.filter(([, words]) => words.includes("main")).map(([key]) => key), ["4242@90000/4242"]);
    assert.equal(tracks[0][2], "true");
    await answered(page, () => page.click('[data-track="4242@90000/4243"]'));
    await chart();
    assert.equal((await address()).track, "4242@90000/4243");
    assert.match(await text(page, "#order-head"), /^worker-114:03:11 – 14:03:15, 4.00 s$/);
    const script = await (await fetch(`${daemon.url}/profile?pid=4242&tid=4243&${WINDOW}&format=perf-script`)).text();
    const functions = new Set(script.split("\n").filter((line) => line.startsWith("\t")).map((line) => line.trim().replace(/^[0-9a-f]+ (.*) \([^()]*\)$/, "$1")));
    const shown = new Set((await mirror(page)).filter(({ kind }) => kind !== "idle" && kind !== "root").map(({ name }) => name));
    assert.deepEqual([...shown].filter((name) => !functions.has(name)), []);
    assert.ok(shown.size > 5);
    await inspect(page, "over-time");
  });

  it("zooms to a call, keeps that in its address, and goes back", async () => {
    await open(page, `${daemon.url}/?pid=4242&${WINDOW}&view=time&track=4242@90000/4242`);
    await chart();
    const longest = (await mirror(page)).filter(({ depth, kind }) => depth === 1 && kind !== "idle").sort((a, b) => b.value - a.value)[0];
    const box = await page.$$eval("#graph-time .flame-item[data-depth='1']:not([data-kind='idle'])", (items) =>
      items.reduce((best, item) => (Number(item.dataset.value) > Number(best.dataset.value) ? item : best)).getBoundingClientRect().toJSON());
    await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
    await page.waitForSelector("#order-head button");
    const [from, to] = (await address()).at.split("-").map(Number);
    assert.ok(to - from > 0 && to - from <= longest.value / 1000 + 0.01, `${to - from} ms`);
    assert.deepEqual(page.troubles, []);
    const isZoomed = () => page.waitForFunction(() => !document.querySelector("#graph-time .flame-item")?.ariaLabel.includes("4.00 s"));
    await isZoomed();
    const items = await mirror(page);
    await page.reload();
    await loaded(page);
    await chart();
    assert.deepEqual(await mirror(page), items);
    await page.focus("#graph-time");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    assert.match(await text(page, "#announcer"), /^.+, 14:03:1\d(\.\d+)?, .* m?s$/);
    await page.keyboard.press("Escape");
    assert.equal((await address()).at, undefined);
    assert.deepEqual(page.troubles, []);
  });

  it("keeps the search and the window, and says why there are no single samples", async () => {
    await open(page, `${daemon.url}/?pid=4242&${WINDOW}&search=json`);
    await page.keyboard.press("g");
    await answered(page, () => page.click('#modes [data-mode="time"]'));
    const { search, from } = await address();
    assert.deepEqual([search, from], ["json", "2026-01-31T14:03:11Z"]);
    await open(page, `${daemon.url}/?pid=2222&from=2026-01-31T13:10:00Z&to=2026-01-31T13:20:00Z&view=time`);
    await page.waitForSelector("#order-head b");
    await open(page, `${daemon.url}/?view=time&from=2026-01-31T11:10:00Z&to=2026-01-31T11:20:00Z`);
    await page.waitForFunction(() => /no longer kept one by one|single samples/.test(document.querySelector(".order")?.textContent ?? ""));
  });

  it("says what it left out of a long window", async () => {
    await open(page, `${daemon.url}/?pid=4242&view=time&from=now-1h`);
    await chart();
    assert.match(await text(page, "#order-note"), /^The last 15 minutes of the window\. [\d,]+ calls shorter than 225 ms are drawn as a part of what called them/);
  });
});
