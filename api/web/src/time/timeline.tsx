// SPDX-License-Identifier: Apache-2.0
// CPU use over the retained history, to choose a window and a baseline.
import { computed, effect, signal, useComputed, useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import "./timeline.css";
import type { Processes, Timeline as Answer } from "../answers";
import { addressWith } from "../api";
import { Asking, round } from "../asking";
import { asked, title, unit } from "../measure";
import { askedWindow, isDiff, processes, profile } from "../questions";
import { base, compare, go, isMachine, look, question, select, view, windowAndSelection, withMeasure } from "../state";
import { Waiting } from "../states";
import { count, duration, printable } from "../text";
import { isDark } from "../theme";
import { REASON_TEXTS, colourOf } from "../waits";
import { Chart, type Layer, viewOf } from "./chart";
import { Compare } from "./compare";
import { AddMark, Flags } from "./flags";
import { HeatToggle } from "./heatmap";
import { type History, type Line, appended, busyCpus, historyOf, meanCpus, missingCpus, nextFrom, resampled, stepAt } from "./history";
import { Measures } from "./measures";
import { retained } from "./retained";
import { type Span, asText, contains, fromText, length } from "./span";
import { moment, zone } from "./ticks";

const TOP = 5;
const TOP_COLOURS = ["--top-1", "--top-2", "--top-3", "--top-4", "--top-5"];
// At most so many stretches of a silent timer are listed.
const MOST_TOLD = 5;
// A history that has grown by this much is requested again, in steps that fit.
const MOST_GROWTH = 1.3;

const line = computed(() => view.value.line);
const shown = computed(() => fromText(line.value));
const isPart = computed(() => !isMachine.value || question.value.side !== "");
const top = computed(() => Math.min(view.value.top, TOP_COLOURS.length));

// A history that is requested in full once, and then only its new part.
class Growing {
  readonly history = signal<History | null>(null);
  readonly asking: Asking<Answer>;
  #key = "";
  #steps = 0;

  // Empty parameters: no request.
  constructor(parameters: () => URLSearchParams | null) {
    this.asking = new Asking<Answer>(() => {
      round.value;
      const asked = parameters();
      if (asked === null) return null;
      const key = `${asked} ${line.value}`;
      const have = this.history.peek();
      const canGrow = have !== null && key === this.#key && have.userMs.length < MOST_GROWTH * this.#steps;
      if (!canGrow) this.#key = key;
      asked.set("from", String(Math.round(canGrow ? nextFrom(have) : (shown.value?.from ?? 0))));
      if (shown.value !== null) asked.set("to", String(Math.round(shown.value.to)));
      if (canGrow) asked.set("step", `${have.stepMs / 1000}s`);
      return addressWith("/timeline", asked);
    }, { after: profile });
    effect(() => {
      const answer = this.asking.answer.value;
      if (answer === null) return;
      const next = historyOf(answer);
      const have = this.history.peek();
      // An answer that begins at the end of the known history continues it.
      const together = have !== null && answer.start_ms > have.startMs && this.#continues(have, answer) ? appended(have, next) : null;
      if (together === null) this.#steps = next.userMs.length;
      this.history.value = together ?? next;
    });
  }

  #continues(have: History, answer: Answer) {
    return answer.window.asked.from_ms === Math.round(nextFrom(have));
  }
}

const machine = new Growing(() => withMeasure(new URLSearchParams(), question.value));

const part = new Growing(() => {
  if (!isPart.value) return null;
  const parameters = windowAndSelection(question.value);
  parameters.delete("from");
  parameters.delete("to");
  return parameters;
});

// The busiest processes of the chosen window, most CPU time first. Their lines cover the whole timeline.
const ranking = new Asking<Processes>(() => (top.value > 0 && isPart.value ? addressWith("/processes", windowAndSelection(question.value)) : null), { after: profile });
const ranked = computed(() => ((isPart.value ? ranking : processes).answer.value?.processes ?? []).slice(0, top.value).map(({ id }) => id));

const busiest = new Growing(() => {
  if (ranked.value.length === 0) return null;
  const parameters = windowAndSelection(question.value);
  for (const key of ["from", "to", "pid"]) parameters.delete(key);
  for (const id of [...ranked.value].sort()) parameters.append("pid", id);
  parameters.set("processes", String(ranked.value.length));
  return parameters;
});

const history = computed(() => (isPart.value ? part.history.value : machine.history.value));

const lines = computed<Line[]>(() => {
  const whole = history.value;
  const known = busiest.history.value;
  if (whole === null || known === null || top.value === 0) return [];
  return ranked.value.flatMap((id) => known.processes.filter((line) => line.id === id)).map((line) => ({ ...line, cpuMs: resampled(line.cpuMs, known, whole) }));
});

effect(() => {
  const whole = history.value;
  if (whole !== null && shown.value === null) retained.value = { from: whole.from, to: whole.to };
});

// CPU time, or what has no known reason, at the bottom.
function waitLayersOf({ userMs, kernelMs, waits }: History): Layer[] {
  const rest = userMs.map((user, index) => Math.max(0, user + kernelMs[index] - [...waits.values()].reduce((sum, ms) => sum + ms[index], 0)));
  return [
    ...(rest.some((ms) => ms >= 1) ? [{ name: asked.peek() === "wall" ? "on a CPU" : "not known", colour: "--wait-rest", cpuMs: rest }] : []),
    ...[...waits].map(([reason, ms]) => ({ name: REASON_TEXTS[reason].name.toLowerCase(), colour: colourOf(reason), cpuMs: ms })),
  ];
}

function layersOf(history: History, lines: readonly Line[]): Layer[] {
  if (lines.length === 0 && history.waits.size > 0) return waitLayersOf(history);
  if (lines.length === 0) {
    return [
      { name: "user", colour: "--user", cpuMs: history.userMs },
      { name: "kernel", colour: "--kernel", cpuMs: history.kernelMs },
    ];
  }
  const others = history.userMs.map((user, index) => Math.max(0, user + history.kernelMs[index] - lines.reduce((sum, line) => sum + line.cpuMs[index], 0)));
  return [
    ...lines.slice(0, TOP_COLOURS.length).map((line, index) => ({ name: line.name, colour: TOP_COLOURS[index], cpuMs: line.cpuMs })),
    ...(others.some((ms) => ms > 0) ? [{ name: "others", colour: "--others", cpuMs: others }] : []),
  ];
}

const at = (ms: number) => new Date(ms).toISOString();

// A window that ends at the newest sample ends now, and stays live.
function chooseWindow(span: Span, whole: History | null) {
  const isToNow = whole !== null && shown.peek() === null && span.to >= whole.to;
  const long = Math.max(1, Math.round(length(span) / 1000));
  go({ question: { offset_from: "", offset_to: "", ...(isToNow ? { from: `now-${long}s`, to: "" } : { from: at(span.from), to: at(span.to) }) }, view: { around: "" } });
}

const asSpan = (window: { from_ms: number; to_ms: number }): Span => ({ from: window.from_ms, to: window.to_ms });

const baselineSpan = computed<Span | null>(() => {
  if (base.value === null) return null;
  const answer = profile.answer.value;
  return answer !== null && isDiff(answer) ? asSpan(answer.before.window.asked) : null;
});

function describe(history: History): string {
  const cpuMs = history.userMs.map((user, index) => user + history.kernelMs[index]);
  const cores = busyCpus(history, cpuMs);
  const known = cores.filter((value) => value !== null);
  const mean = meanCpus(history, cpuMs);
  if (known.length === 0 || mean === null) return "There are no samples yet.";
  const most = Math.max(...known);
  const peak = history.startMs + cores.indexOf(most) * history.stepMs;
  const gaps = history.gaps.map((gap) => ` There are no samples from ${moment(gap.from)} to ${moment(gap.to)}.`);
  const told = history.missing.slice(-MOST_TOLD).map(({ cpu, from, to }) => ` CPU ${cpu} was not sampled from ${moment(from)} to ${moment(to)}.`);
  const untold = history.missing.length - told.length;
  const missing = untold > 0 ? [...told, ` ${count(untold)} more such stretches came before.`] : told;
  const lost = history.lost.map((minute) => ` ${count(minute.samples)} samples were lost from ${moment(minute.from)} to ${moment(minute.to)}.`);
  return `${title.value} from ${moment(history.from)} to ${moment(history.to)} (${zone(history.to)}), in steps of ${duration(history.stepMs)}: `
    + `${mean.toFixed(2)} ${unit.value} on average, ${most.toFixed(2)} at most, at ${moment(peak)}.${gaps.join("")}${missing.join("")}${lost.join("")}`;
}

function Readout({ history, ms }: { history: History; ms: number | null }) {
  if (ms === null) return null;
  const index = stepAt(history, ms);
  const gap = history.gaps.find((span) => contains(span, ms));
  const lost = history.lost.find((span) => contains(span, ms));
  const cpus = (cpuMs: number[]) => (index === -1 ? null : (busyCpus(history, cpuMs)[index]?.toFixed(2) ?? null));
  const user = cpus(history.userMs);
  const waits = ` ${[...history.waits].map(([reason, ms]) => [REASON_TEXTS[reason].name.toLowerCase(), cpus(ms)] as const).filter(([, threads]) => Number(threads) > 0).map((each) => each.join(" ")).join(" · ")}`;
  // Of the whole step under the pointer, since the missing part may be tiny.
  const start = index === -1 ? ms : history.startMs + index * history.stepMs;
  const missing = missingCpus(history, { from: start, to: index === -1 ? ms + 1 : start + history.stepMs });
  return (
    <>
      <b>{moment(index === -1 ? ms : history.startMs + index * history.stepMs)}</b>
      {gap !== undefined || user === null ? " no samples" : history.waits.size === 0 ? ` user ${user} · kernel ${cpus(history.kernelMs)}` : waits}
      {missing.length > 0 && ` · CPU ${missing.join(", ")} not sampled`}
      {lost !== undefined && ` · ${count(lost.samples)} lost`}
    </>
  );
}

function Legend({ layers }: { layers: readonly Layer[] }) {
  return (
    <ul class="timeline-legend" aria-label="Layers of the timeline">
      {layers.map((layer, index) => {
        const line = lines.value[index];
        const swatch = <i class={`swatch ${layer.colour.slice("--".length)}`} data-colour={layer.colour} />;
        return (
          <li key={line?.id ?? layer.name}>
            {line === undefined ? <span>{swatch}{layer.name}</span> : (
              <button type="button" title={`Show ${printable(line.name, 60)}, ${line.id}`} onClick={() => select({ pid: [line.id] })}>
                {swatch}<bdi>{printable(line.name, 24)}</bdi>
              </button>
            )}
          </li>
        );
      })}
    </ul>
  );
}

export function Timeline() {
  const box = useRef<HTMLDivElement>(null);
  const chart = useRef<Chart | null>(null);
  const hovered = useSignal<number | null>(null);
  const isPinning = useSignal(false);
  const layers = useComputed(() => (history.value === null ? [] : layersOf(history.value, lines.value)));

  useEffect(() => {
    chart.current = new Chart(box.current!, {
      onWindow: (span) => chooseWindow(span, history.peek()),
      onBaseline: (span) => {
        isPinning.value = false;
        compare({ from: at(span.from), to: at(span.to), ago: "" });
      },
      onView: (span) => look({ line: span === null ? "" : asText(span) }, "replace"),
      onHover: (ms) => (hovered.value = ms),
    });
    return () => chart.current?.destroy();
  }, []);
  useSignalEffect(() => {
    const whole = history.value;
    const behind = isPart.value ? machine.history.value : null;
    if (whole !== null) chart.current?.show(whole, layers.value, behind, shown.value, retained.value);
  });
  useSignalEffect(() => {
    isDark.value;
    chart.current?.restyle();
  });
  useSignalEffect(() => {
    const window = askedWindow.value;
    chart.current?.setWindow(window === null ? null : asSpan(window));
    chart.current?.setBaseline(baselineSpan.value);
  });
  useSignalEffect(() => {
    if (chart.current !== null) chart.current.isPinning = isPinning.value;
  });

  const whole = history.value;
  const asking = isPart.value ? part.asking : machine.asking;
  const problem = asking.problem.value;
  return (
    <section class={isPinning.value ? "timeline pinning" : "timeline"} aria-labelledby="timeline-title">
      <div class="timeline-head">
        <h2 id="timeline-title">{title.value}</h2>
        <Measures />
        {whole !== null && <Legend layers={layers.value} />}
        <p id="timeline-readout" class="timeline-readout">{whole !== null && <Readout history={whole} ms={hovered.value} />}</p>
        <div class="timeline-tools" role="group" aria-label="Timeline">
          <button type="button" id="timeline-top" aria-pressed={top.value > 0} title="The busiest of the chosen window" onClick={() => look({ top: top.value > 0 ? 0 : TOP })}>Top processes</button>
          <Compare />
          {base.value === null
            ? <button type="button" id="timeline-pin" aria-pressed={isPinning.value} aria-describedby="timeline-pin-help" onClick={() => (isPinning.value = !isPinning.value)}>Draw baseline</button>
            : <button type="button" id="timeline-unpin" onClick={() => compare(null)}>Stop comparing</button>}
          <HeatToggle />
          <AddMark />
          <button type="button" id="timeline-in" aria-label="Zoom in" title="Zoom in" onClick={() => chart.current?.zoom(0.5)}>+</button>
          <button type="button" id="timeline-out" aria-label="Zoom out" title="Zoom out" disabled={line.value === ""} onClick={() => chart.current?.zoom(2)}>−</button>
          <button type="button" id="timeline-all" disabled={line.value === ""} onClick={() => look({ line: "" })}>All</button>
        </div>
      </div>
      <div class="timeline-stage">
        <Waiting asking={asking} what="the timeline" />
        <div id="timeline" class="timeline-chart" ref={box} role="group" aria-label={`Timeline: ${title.value}`} aria-describedby="timeline-text timeline-help" />
        {whole !== null && <Flags view={shown.value ?? viewOf(whole)} />}
        {problem !== null && <p class="timeline-problem" role="status">{printable(problem.detail ?? problem.title ?? "Refused")}</p>}
      </div>
      <p id="timeline-text" class="visually-hidden">{whole === null ? "" : describe(whole)}</p>
      <p id="timeline-help" class="visually-hidden">
        Drag to choose a window; with Shift held, what it is compared with. The window's edges are sliders: arrow keys move them, Page Up
        and Page Down by ten steps, Home and End to the ends.
      </p>
      <p id="timeline-pin-help" class="visually-hidden">Then drag over the time to compare with. With the keyboard: The time just before, in the menu Compare with, and move the baseline's edges.</p>
    </section>
  );
}

