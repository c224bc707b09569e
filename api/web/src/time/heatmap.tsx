// SPDX-License-Identifier: Apache-2.0
// Samples, or waiting time, by second and part of the second, to show events of fractions of a second. A rectangle in it,
// or a stretch of time, selects the flame graph of just that.
import { computed, effect, signal, useComputed, useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import "./heatmap.css";
import type { Heatmap as Answer } from "../answers";
import { addressWith } from "../api";
import { Asking } from "../asking";
import { worth } from "../measure";
import { askedWindow, profile } from "../questions";
import { ask, go, look, question, view, windowAndSelection } from "../state";
import { Waiting } from "../states";
import { count, printable, seconds } from "../text";
import { isDark } from "../theme";
import { HeatCanvas } from "./heat_canvas";
import { type Chosen, HeatGrid, type Selected, isStretch, offsets } from "./heat_grid";
import { type Span, asText, fromText } from "./span";
import { moment, ticks } from "./ticks";

const ROWS = 50;
const LONGEST_MS = 3600_000;
const LEAST_COLUMN_PX = 2;

// The map's range around a window that was chosen in it, while the window is a part of it.
const around = computed<Span | null>(() => {
  const context = fromText(view.value.around);
  const window = askedWindow.value;
  if (context === null || window === null) return context;
  return context.from <= window.from_ms && window.to_ms <= context.to ? context : null;
});

// Whether the map marks stretches of time in place of rectangles.
const marksTime = computed(() => view.value.pick === "time");

const PICKS: readonly ["" | "time", string, string][] = [
  ["", "Part of each second", "A rectangle: the same part of several seconds"],
  ["time", "Stretch of time", "From a part of one second to a part of the same or a later one, without gaps"],
];

const isPart = computed(() => question.value.offset_from !== "" || question.value.offset_to !== "");

const heatmap = new Asking<Answer>(() => {
  if (!view.value.heat) return null;
  const parameters = windowAndSelection(question.value);
  const context = around.value;
  if (context !== null) {
    parameters.set("from", String(Math.round(context.from)));
    parameters.set("to", String(Math.round(context.to)));
  } else if (askedWindow.value !== null && askedWindow.value.to_ms - askedWindow.value.from_ms > LONGEST_MS) {
    parameters.set("from", String(askedWindow.value.to_ms - LONGEST_MS));
  }
  parameters.set("rows", String(ROWS));
  return addressWith("/heatmap", parameters);
}, { after: profile });

const selected = computed<Selected | null>(() => {
  const window = askedWindow.value;
  if (window === null || (around.value === null && !isPart.value)) return null;
  const { offset_from, offset_to } = question.value;
  return { from: window.from_ms, to: window.to_ms, offsetFrom: Number(offset_from || 0), offsetTo: Number(offset_to || 1000) };
});

const isStretchChosen = computed(() => selected.value !== null && !isPart.value && (selected.value.from % 1000 !== 0 || selected.value.to % 1000 !== 0));

// Where the shown map's scale ends.
const cap = signal<number | null>(null);

// Samples as a number; units of waiting time as a time.
function told(samples: number): string {
  const answer = heatmap.answer.value;
  if (answer !== null && answer.measure !== "cpu") return seconds(samples * worth(answer));
  return `${count(samples)} ${samples === 1 ? "sample" : "samples"}`;
}

const at = (ms: number) => new Date(ms).toISOString();

function choose(grid: HeatGrid, chosen: Chosen) {
  const { from, to, offsetFrom, offsetTo } = grid.selected(chosen);
  const isWhole = offsetFrom === 0 && offsetTo === 1000;
  const context = around.peek() ?? { from: grid.startMs, to: grid.startMs + grid.columns * grid.secondsPerColumn * 1000 };
  go({
    question: { from: at(from), to: at(to), offset_from: isWhole ? "" : String(offsetFrom), offset_to: isWhole ? "" : String(offsetTo) },
    view: { around: asText({ from: Math.min(context.from, from), to: Math.max(context.to, to) }) },
  });
}

function chooseAll() {
  const context = around.peek();
  go({
    question: { offset_from: "", offset_to: "", ...(context === null ? {} : { from: at(context.from), to: at(context.to) }) },
    view: { around: "" },
  });
}

function readout(grid: HeatGrid, chosen: Chosen) {
  const { from, to, offsetFrom, offsetTo } = grid.selected(chosen);
  if (isStretch(chosen)) return `${moment(from)} – ${moment(to)}: ${told(grid.sum(chosen))}`;
  return `${moment(from)} – ${moment(to)}, ${offsets(offsetFrom, offsetTo)} of each second: ${told(grid.sum(chosen))}`;
}

// A description in words: the parts of the second with the most, and the hottest place.
function describe(grid: HeatGrid): string {
  const hottest = grid.hottest();
  if (hottest.count === 0) return "Nothing.";
  const rows = grid.byRow();
  const total = rows.reduce((sum, value) => sum + value, 0);
  const busiest = rows.indexOf(Math.max(...rows));
  const place = grid.selected({ firstColumn: hottest.column, lastColumn: hottest.column, firstRow: hottest.row, lastRow: hottest.row });
  const row = grid.selected({ firstColumn: 0, lastColumn: 0, firstRow: busiest, lastRow: busiest });
  return `${told(total)} in ${count(grid.columns * grid.secondsPerColumn)} seconds. The busiest part of the second is ${offsets(row.offsetFrom, row.offsetTo)}, `
    + `with ${((100 * rows[busiest]) / total).toFixed(1)} % of it. The hottest place is at ${moment(place.from)}, ${offsets(place.offsetFrom, place.offsetTo)}, with ${told(hottest.count)}.`;
}

function Axis({ grid, width }: { grid: HeatGrid; width: number }) {
  const from = grid.startMs;
  const to = from + grid.columns * grid.secondsPerColumn * 1000;
  return (
    <svg class="heat-axis" width={width} height={18} aria-hidden="true">
      {ticks(from, to, Math.max(2, width / 84)).map(({ ms, label }) => {
        const x = ((ms - from) / (to - from)) * width;
        return <text key={ms} x={x} y={13} text-anchor={x < 24 ? "start" : x > width - 24 ? "end" : "middle"}>{label}</text>;
      })}
    </svg>
  );
}

function Map() {
  const canvas = useRef<HTMLCanvasElement>(null);
  const map = useRef<HeatCanvas | null>(null);
  const width = useSignal(0);
  const hovered = useSignal<{ column: number; row: number } | null>(null);
  const marked = useSignal<Chosen | null>(null);
  const grid = useComputed(() => {
    const answer = heatmap.answer.value;
    return answer === null || width.value === 0 ? null : new HeatGrid(answer, Math.floor(width.value / LEAST_COLUMN_PX));
  });
  const chosen = useComputed(() => (grid.value === null || selected.value === null ? null : grid.value.chosen(selected.value)));

  useEffect(() => {
    const element = canvas.current!;
    map.current = new HeatCanvas(element, {
      onMark: (value) => (marked.value = value),
      onChoose: (value) => choose(grid.peek()!, value),
      onHover: (place) => (hovered.value = place),
    });
    const resizes = new ResizeObserver(() => (width.value = element.clientWidth));
    resizes.observe(element);
    return () => {
      resizes.disconnect();
      map.current?.destroy();
    };
  }, []);
  useSignalEffect(() => {
    cap.value = grid.value?.cap ?? null;
  });
  useSignalEffect(() => {
    if (grid.value !== null) map.current?.show(grid.value, chosen.value, marksTime.value);
  });
  useSignalEffect(() => {
    isDark.value;
    map.current?.restyle();
  });

  const shown = grid.value;
  const place = hovered.value;
  const target = marked.value ?? (place === null ? null : { firstColumn: place.column, lastColumn: place.column, firstRow: place.row, lastRow: place.row });
  const problem = heatmap.problem.value;
  const warnings = heatmap.answer.value?.warnings ?? [];
  const window = askedWindow.value;
  const isCut = around.value === null && window !== null && window.to_ms - window.from_ms > LONGEST_MS;
  return (
    <div class="heat-body">
      <p id="heat-readout" class="heat-readout" aria-live="polite">{shown !== null && target !== null ? readout(shown, target) : "\u00a0"}</p>
      <div class="heat-stage">
        <Waiting asking={heatmap} what="the heat map" />
        <span class="heat-side" aria-hidden="true"><span>1 s</span><span>½ s</span><span>0</span></span>
        <canvas id="heat" ref={canvas} tabIndex={0} role="application" aria-roledescription="heat map" aria-label="Time by second and part of the second"
          aria-describedby="heat-text heat-help" />
        {problem !== null && (
          <div id="heat-problem" class="heat-problem" role="status">
            <p>{printable(problem.detail ?? problem.title ?? "Refused")}</p>
            <button type="button" class="quiet" onClick={() => ask({ from: "", to: "", offset_from: "", offset_to: "" })}>Last 15 minutes</button>
          </div>
        )}
      </div>
      {shown !== null && <Axis grid={shown} width={width.value} />}
      {(warnings.length > 0 || isCut) && (
        <ul class="heat-warnings" aria-label="Warnings">
          {isCut && <li>The last hour of the window.</li>}
          {warnings.map((warning) => <li key={warning}>{printable(warning)}</li>)}
        </ul>
      )}
      <p id="heat-text" class="visually-hidden">{shown === null ? "" : describe(shown)}</p>
      <p id="heat-help" class="visually-hidden">
        Arrow keys move between cells: left and right by seconds, up and down by parts of the second. With Shift held they mark
        {marksTime.value ? " a stretch of time" : " a rectangle"}. Enter shows the flame graph of it, Escape gives it up.
      </p>
    </div>
  );
}

export function HeatToggle() {
  const isOpen = view.value.heat;
  return <button type="button" id="heat-toggle" aria-pressed={isOpen} title="Time by second and part of the second" onClick={() => look({ heat: !isOpen })}>Within the second</button>;
}

export function HeatMap() {
  const { offset_from, offset_to } = question.value;
  const isOpen = view.value.heat;
  const isChosen = isPart.value || around.value !== null;
  if (!isOpen && !isChosen) return null;
  return (
    <section class="heatmap" aria-labelledby="heat-title">
      <div class="heat-head">
        <h2 id="heat-title">Within the second</h2>
        {isPart.value && <span id="heat-part" class="heat-part">{offsets(Number(offset_from || 0), Number(offset_to || 1000))} of each second</span>}
        {around.value !== null && isStretchChosen.value && <span id="heat-stretch" class="heat-part">{moment(askedWindow.value!.from_ms)} – {moment(askedWindow.value!.to_ms)}</span>}
        {isOpen && (
          <div class="segments" role="group" aria-label="What a drag chooses" id="heat-pick">
            {PICKS.map(([key, label, title]) => <button key={label} type="button" title={title} aria-pressed={view.value.pick === key} onClick={() => look({ pick: key }, "replace")}>{label}</button>)}
          </div>
        )}
        {isChosen && <button type="button" id="heat-all" class="heat-all" onClick={chooseAll}>Show all again</button>}
        {isOpen && cap.value !== null && <HeatLegend cap={cap.value} />}
      </div>
      {isOpen && <Map />}
    </section>
  );
}

function HeatLegend({ cap }: { cap: number }) {
  return (
    <span class="heat-legend" title="The scale ends at the 99th percentile of the cells that are not empty">
      0<i /><i /><i /><i /><i />{told(cap)} in {1000 / ROWS} ms or more (99th percentile)
    </span>
  );
}

// A window chosen elsewhere ends the selection in the map.
effect(() => {
  if (view.value.around !== "" && around.value === null) look({ around: "" }, "replace");
});
