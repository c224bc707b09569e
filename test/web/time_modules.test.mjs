// SPDX-License-Identifier: Apache-2.0
// The arithmetic of the timeline and the heat map.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";

import { source } from "./source.mjs";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const zoneBefore = process.env.TZ;
const clock = (ms) => new Date(ms).toTimeString().slice(0, 5);

describe("ticks of a time axis", () => {
  let ticks;

  before(async () => {
    ({ ticks } = await source("time/ticks.ts"));
  });
  after(() => {
    process.env.TZ = zoneBefore ?? "";
  });

  const within = (zone, from, to, most) => {
    process.env.TZ = zone;
    return ticks(Date.parse(from), Date.parse(to), most);
  };

  it("are round moments of the reader's clock, also with an offset of 45 minutes", () => {
    const labels = within("Asia/Kathmandu", "2026-01-31T10:00:00Z", "2026-01-31T11:00:00Z", 7).map(({ label }) => label);
    assert.deepEqual(labels, ["15:50", "16:00", "16:10", "16:20", "16:30", "16:40"]);
  });

  it("skip the hour that the clock skips", () => {
    // Berlin, 29 March 2026: 02:00 is 03:00.
    const found = within("Europe/Berlin", "2026-03-28T23:00:00Z", "2026-03-29T05:00:00Z", 8);
    assert.deepEqual(found.map(({ label }) => label), ["Sun 29 Mar", "01:00", "03:00", "04:00", "05:00", "06:00", "07:00"]);
    const gaps = found.slice(1).map(({ ms }, index) => ms - found[index].ms);
    assert.ok(gaps.every((gap) => gap === HOUR), gaps.join());
  });

  it("have the hour twice that comes twice", () => {
    // Berlin, 25 October 2026: 03:00 is 02:00 again.
    const found = within("Europe/Berlin", "2026-10-24T23:00:00Z", "2026-10-25T03:00:00Z", 6);
    assert.deepEqual(found.map(({ label }) => label), ["01:00", "02:00", "02:00", "03:00", "04:00"]);
  });

  it("begin days at midnight on both sides of a change of clocks", () => {
    const found = within("Europe/Berlin", "2026-03-27T00:00:00Z", "2026-04-01T00:00:00Z", 6);
    assert.deepEqual(found.map(({ label }) => label), ["Sat 28 Mar", "Sun 29 Mar", "Mon 30 Mar", "Tue 31 Mar", "Wed 1 Apr"]);
    assert.ok(found.every(({ ms, isDay }) => isDay && clock(ms) === "00:00"));
  });

  it("are never more than fit, and are in the shown range", () => {
    process.env.TZ = "America/St_Johns";
    for (const [length, most] of [[10_000, 4], [61_000, 3], [15 * MINUTE, 12], [3 * HOUR, 5], [26 * HOUR, 9], [40 * 24 * HOUR, 4]]) {
      const from = Date.parse("2026-03-07T21:17:33.250Z");
      const found = ticks(from, from + length, most);
      assert.ok(found.length > 0 && found.length <= most + 1, `${found.length} of ${most} in ${length} ms`);
      assert.ok(found.every(({ ms }) => ms >= from && ms <= from + length));
    }
    assert.deepEqual(ticks(5, 5, 3), []);
  });
});

describe("a span of time", () => {
  let span;
  const limits = { from: 1_000_000, to: 2_000_000, step: 1000 };

  before(async () => {
    span = await source("time/span.ts");
  });

  it("is between two moments in any order, in whole steps and within its limits", () => {
    assert.deepEqual(span.between(1_500_400, 1_200_600, limits), { from: 1_200_000, to: 1_501_000 });
    assert.deepEqual(span.between(0, 9_000_000, limits), { from: 1_000_000, to: 2_000_000 });
    assert.deepEqual(span.between(2_500_000, 2_500_001, limits), { from: 1_999_000, to: 2_000_000 });
  });

  it("keeps its edges in order, and its length when it is moved", () => {
    const window = { from: 1_200_000, to: 1_300_000 };
    assert.deepEqual(span.moved(window, "from", 1_900_000, limits), { from: 1_299_000, to: 1_300_000 });
    assert.deepEqual(span.moved(window, "to", 0, limits), { from: 1_200_000, to: 1_201_000 });
    assert.deepEqual(span.moved(window, "all", 1_990_000, limits), { from: 1_900_000, to: 2_000_000 });
    assert.deepEqual(span.keyed(window, "to", "PageUp", limits), { from: 1_200_000, to: 1_310_000 });
    assert.deepEqual(span.keyed(window, "all", "Home", limits), { from: 1_000_000, to: 1_100_000 });
    assert.equal(span.keyed(window, "all", "Tab", limits), null);
  });

  it("is zoomed around a fixed moment", () => {
    const view = span.zoomed({ from: 1_200_000, to: 1_600_000 }, 1_300_000, 0.5, limits, 10_000);
    assert.deepEqual(view, { from: 1_250_000, to: 1_450_000 });
    assert.deepEqual(span.zoomed(view, 1_300_000, 100, limits, 10_000), { from: 1_000_000, to: 2_000_000 });
    assert.equal(span.length(span.zoomed(view, 1_300_000, 1e-9, limits, 10_000)), 10_000);
  });

  it("is read from the address as it was written, and nothing else is", () => {
    assert.deepEqual(span.fromText(span.asText({ from: 1769868000000, to: 1769868900000 })), { from: 1769868000000, to: 1769868900000 });
    for (const text of ["", "1", "2-1", "1-1", "a-b", "1-2-3", "1e3-2e3"]) assert.equal(span.fromText(text), null, text);
  });
});

describe("the same time some hours earlier", () => {
  let ago;
  const window = { from: 10 * HOUR, to: 10 * HOUR + 15 * MINUTE };

  before(async () => {
    ago = await source("time/ago.ts");
  });

  it("goes on with its window, and has a name", () => {
    assert.deepEqual(ago.earlier(HOUR), { from: "", to: "", ago: "1h" });
    assert.deepEqual(ago.earlier(7 * 24 * HOUR), { from: "", to: "", ago: "7d" });
    assert.equal(ago.agoName("1d"), "a day ago");
    assert.equal(ago.agoName("2h"), "2h ago");
  });

  it("may be on disk, before what the timeline shows", () => {
    const shown = { from: 9 * HOUR, to: 11 * HOUR };
    assert.deepEqual(ago.whole(shown, undefined), shown);
    assert.deepEqual(ago.whole(shown, 2 * HOUR), { from: 2 * HOUR, to: 11 * HOUR });
    assert.deepEqual(ago.whole(shown, 10 * HOUR), shown);
    assert.equal(ago.whole(null, 2 * HOUR), null);
  });

  it("must be retained as a whole, and must not overlap with the window", () => {
    process.env.TZ = "UTC";
    assert.equal(ago.obstacle(window, HOUR, null), "");
    assert.equal(ago.obstacle(window, HOUR, { from: 9 * HOUR, to: 11 * HOUR }), "");
    assert.equal(ago.obstacle(window, HOUR, { from: 9 * HOUR + 1, to: 11 * HOUR }), "samples begin at 1970-01-01 09:00:00");
    assert.equal(ago.obstacle({ from: 8 * HOUR, to: 10 * HOUR }, HOUR, null), "the window is longer");
    process.env.TZ = zoneBefore ?? "";
  });
});

describe("marks", () => {
  let marks;
  const at = (time_ms) => ({ time_ms, kind: "note", text: String(time_ms) });

  before(async () => {
    marks = await source("time/marks.ts");
  });

  it("are in their places, and share a flag where there is no room for two", () => {
    const flags = marks.flagsOf([at(900), at(100), at(120), at(130), at(2000)], { from: 0, to: 1000 }, 1000);
    assert.deepEqual(flags.map(({ place, marks: all }) => [place, all.map(({ text }) => text)]), [[0.1, ["100", "120"]], [0.13, ["130"]], [0.9, ["900"]]]);
    assert.equal(marks.flagsOf([at(100), at(120)], { from: 0, to: 1000 }, 2000).length, 2);
  });

  it("compare as much time after them as the window is long, or as there is, with as much before", () => {
    assert.deepEqual(marks.around(at(10_000), { from: 0, to: 3000 }, 60_000), { before: { from: 7000, to: 10_000 }, after: { from: 10_000, to: 13_000 } });
    assert.deepEqual(marks.around(at(10_000), { from: 0, to: 3000 }, 12_000), { before: { from: 8000, to: 10_000 }, after: { from: 10_000, to: 12_000 } });
    assert.equal(marks.around(at(10_000), { from: 0, to: 3000 }, 10_500), null);
  });
});

describe("a history of CPU use", () => {
  let history;
  const answer = (startMs, user, more = {}) => ({
    step_ms: 1000, start_ms: startMs, steps: { user_cpu_ms: user, kernel_cpu_ms: user.map(() => 0) }, lost: [], gaps: [], missing: [], processes: [],
    window: { used: { from_ms: startMs, to_ms: startMs + 1000 * user.length } }, ...more,
  });

  before(async () => {
    history = await source("time/history.ts");
  });

  it("is continued by a later answer, which replaces the unfinished steps", () => {
    const first = history.historyOf(answer(10_000, [100, 200, 30]));
    assert.equal(history.nextFrom(first), 11_000);
    const next = history.appended(first, history.historyOf(answer(11_000, [250, 300, 40])));
    assert.deepEqual(next.userMs, [100, 250, 300, 40]);
    assert.equal(next.to, 14_000);
  });

  it("knows which CPUs were not sampled in a step, also when it is continued", () => {
    const missing = (from_ms, to_ms, cpu) => ({ from_ms, to_ms, cpu });
    const first = history.historyOf(answer(10_000, [1, 2, 3], { missing: [missing(10_100, 10_200, 3), missing(10_500, 12_100, 1), missing(10_900, 11_000, null)] }));
    assert.deepEqual(history.missingCpus(first, { from: 10_000, to: 11_000 }), [1, 3]);
    assert.deepEqual(history.missingCpus(first, { from: 11_000, to: 12_000 }), [1]);
    assert.deepEqual(history.missingCpus(first, { from: 12_100, to: 13_000 }), []);
    const next = history.appended(first, history.historyOf(answer(11_000, [2, 3, 4], { missing: [missing(10_500, 12_600, 1)] })));
    assert.deepEqual(next.missing, [{ from: 10_100, to: 10_200, cpu: 3 }, { from: 10_500, to: 12_600, cpu: 1 }]);
  });

  it("is not joined over a hole or different steps", () => {
    const first = history.historyOf(answer(10_000, [100, 200]));
    assert.equal(history.appended(first, history.historyOf(answer(13_000, [1]))), null);
    assert.equal(history.appended(first, { ...history.historyOf(answer(11_000, [1])), stepMs: 2000 }), null);
  });

  it("has the busy CPUs for the known part of a step, and nothing for gaps", () => {
    const known = history.historyOf(answer(10_000, [1000, 1000, 0, 0, 500], {
      gaps: [{ from_ms: 12_000, to_ms: 14_000 }], window: { used: { from_ms: 10_500, to_ms: 14_900 } } }));
    assert.deepEqual(history.busyCpus(known, known.userMs).map((value) => value && Number(value.toFixed(3))), [2, 1, null, null, 0.556]);
    assert.equal(history.meanCpus(known, known.userMs).toFixed(3), (2500 / 2400).toFixed(3));
    const unknown = history.historyOf(answer(10_000, [0], { gaps: [{ from_ms: 10_000, to_ms: 11_000 }] }));
    assert.equal(history.meanCpus(unknown, unknown.userMs), null);
    assert.deepEqual(history.stacked([[1, null, 3], [1, null, 1]]), [[1, null, 3], [2, null, 4]]);
  });
});

describe("the grid of a heat map", () => {
  let HeatGrid;
  let heat;
  // Three seconds of four parts; second c, part r has 10 c + r samples.
  const answer = { columns: 3, rows: 4, start_ms: 60_000, counts: [0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23] };

  before(async () => {
    ({ HeatGrid, heat } = await source("time/heat_grid.ts"));
  });

  it("converts a rectangle to a selection and back", () => {
    const grid = new HeatGrid(answer, 100);
    const rectangle = grid.between(2, 1, 1, 2);
    const selected = grid.selected(rectangle);
    assert.deepEqual(selected, { from: 61_000, to: 63_000, offsetFrom: 250, offsetTo: 750 });
    assert.deepEqual(grid.chosen(selected), rectangle);
    assert.equal(grid.sum(rectangle), 11 + 12 + 21 + 22);
    assert.equal(grid.chosen({ ...selected, from: 0, to: 1000 }), null);
  });

  it("converts a stretch of time to a selection and back", () => {
    const grid = new HeatGrid(answer, 100);
    const stretch = grid.stretch({ column: 2, row: 1 }, { column: 0, row: 3 });
    assert.deepEqual(stretch, { first: { column: 0, row: 3 }, last: { column: 2, row: 1 } });
    const selected = grid.selected(stretch);
    assert.deepEqual(selected, { from: 60_750, to: 62_500, offsetFrom: 0, offsetTo: 1000 });
    assert.deepEqual(grid.chosen(selected), stretch);
    assert.equal(grid.sum(stretch), 3 + 10 + 11 + 12 + 13 + 20 + 21);
    const inOne = grid.stretch({ column: 1, row: 1 }, { column: 1, row: 2 });
    assert.deepEqual(grid.selected(inOne), { from: 61_250, to: 61_750, offsetFrom: 0, offsetTo: 1000 });
    assert.equal(grid.sum(inOne), 11 + 12);
    // A window that reaches beyond the map, and one beside it.
    assert.deepEqual(grid.chosen({ from: 59_100, to: 61_250, offsetFrom: 0, offsetTo: 1000 }), { first: { column: 0, row: 0 }, last: { column: 1, row: 0 } });
    assert.equal(grid.chosen({ from: 50_100, to: 51_250, offsetFrom: 0, offsetTo: 1000 }), null);
  });

  it("takes a stretch of merged seconds from the first one's part to the last one's", () => {
    const grid = new HeatGrid(answer, 2);
    const stretch = grid.stretch({ column: 0, row: 3 }, { column: 0, row: 3 });
    assert.deepEqual(grid.selected(stretch), { from: 60_750, to: 62_000, offsetFrom: 0, offsetTo: 1000 });
    assert.equal(grid.sum(stretch), 3 + 10 + 11 + 12 + 13);
  });

  it("ends its scale where one cell in a hundred has more", () => {
    const counts = new Array(400).fill(0);
    for (let i = 0; i < 200; i++) counts[i] = i === 0 ? 5000 : i === 1 ? 4000 : 1 + (i % 10);
    const grid = new HeatGrid({ columns: 100, rows: 4, start_ms: 0, counts }, 100);
    assert.equal(grid.cap, 10);
    assert.deepEqual([heat(0, 10), heat(10, 10), heat(5000, 10), heat(3, 0)], [0, 1, 1, 0]);
    assert.equal(new HeatGrid({ ...answer, counts: answer.counts.map(() => 0) }, 100).cap, 0);
  });

  it("merges seconds without room for a column each, and loses none", () => {
    const grid = new HeatGrid(answer, 2);
    assert.equal(grid.secondsPerColumn, 2);
    assert.equal(grid.columns, 2);
    assert.equal(grid.sum(grid.between(0, 0, 1, 3)), answer.counts.reduce((sum, value) => sum + value));
    assert.equal(grid.count(0, 3), 16);
    assert.deepEqual(grid.hottest(), { column: 1, row: 3, count: 23 });
  });
});
