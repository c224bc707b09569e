// SPDX-License-Identifier: Apache-2.0
// CPU use over time as the timeline draws it: answers of /timeline, joined as time goes on. Pure.
import type { Timeline } from "../answers";
import { REASONS, type Reason } from "../waits";
import type { Span } from "./span";

export interface Line {
  id: string;
  name: string;
  cpuMs: number[];
}

export interface Lost extends Span {
  samples: number;
}

// One CPU was not sampled: the drawn CPU use is that of the others.
export interface Missing extends Span {
  cpu: number;
}

// Step i begins at startMs + i * stepMs.
export interface History extends Span {
  startMs: number;
  stepMs: number;
  userMs: number[];
  kernelMs: number[];
  waits: ReadonlyMap<Reason, number[]>; // of time on a CPU none
  processes: Line[];
  lost: Lost[];
  gaps: Span[];
  missing: Missing[];
}

const added = (a: number[], b: number[]) => a.map((value, index) => value + b[index]);
const spanned = ({ from_ms, to_ms }: { from_ms: number; to_ms: number }): Span => ({ from: from_ms, to: to_ms });

export function historyOf(answer: Timeline): History {
  const { used } = answer.window;
  return {
    from: used.from_ms,
    to: used.to_ms,
    startMs: answer.start_ms,
    stepMs: answer.step_ms,
    userMs: answer.steps.user_cpu_ms,
    kernelMs: answer.steps.kernel_cpu_ms,
    waits: new Map(REASONS.flatMap((reason) => (answer.waits?.[reason] === undefined ? [] : [[reason, answer.waits[reason]!]]))),
    processes: answer.processes.map(({ id, comm, steps }) => ({ id, name: comm, cpuMs: added(steps.user_cpu_ms, steps.kernel_cpu_ms) })),
    lost: answer.lost.map((lost) => ({ ...spanned(lost), samples: lost.samples })),
    gaps: answer.gaps.map(spanned),
    missing: answer.missing.flatMap(({ cpu, ...span }) => (cpu === null ? [] : [{ ...spanned(span), cpu }])),
  };
}

// Where the next answer must begin for appended(). The last step was not over, and the one before may have got samples
// since, because an answer has only those up to a second ago.
export const nextFrom = ({ startMs, stepMs, userMs }: History) => startMs + Math.max(0, userMs.length - 2) * stepMs;

// Appends a later answer, from its start on. Null if they do not fit: the steps differ in length, or there is a hole in
// between.
export function appended(history: History, tail: History): History | null {
  const place = (tail.startMs - history.startMs) / history.stepMs;
  if (tail.stepMs !== history.stepMs || !Number.isInteger(place) || place < 0 || place > history.userMs.length) return null;
  const steps = place + tail.userMs.length;
  const put = (before: number[], after: number[] | undefined) => {
    const together = before.slice(0, place).concat(after ?? []);
    while (together.length < steps) together.push(0);
    return together;
  };
  return {
    ...history,
    to: Math.max(history.to, tail.to),
    userMs: put(history.userMs, tail.userMs),
    kernelMs: put(history.kernelMs, tail.kernelMs),
    waits: new Map(REASONS.flatMap((reason) => {
      const [before, after] = [history.waits.get(reason), tail.waits.get(reason)];
      return before === undefined && after === undefined ? [] : [[reason, put(before ?? history.userMs.map(() => 0), after)]];
    })),
    processes: history.processes.map((line) => ({ ...line, cpuMs: put(line.cpuMs, tail.processes.find(({ id }) => id === line.id)?.cpuMs) })),
    lost: [...history.lost.filter(({ from }) => !tail.lost.some((later) => later.from === from)), ...tail.lost],
    gaps: [...history.gaps.filter(({ to }) => to <= tail.startMs), ...tail.gaps],
    missing: [...history.missing.filter(({ to }) => to <= tail.startMs), ...tail.missing],
  };
}

// Converts values per step of `from` to the steps of `onto`.
export function resampled(cpuMs: readonly number[], from: Pick<History, "startMs" | "stepMs">, onto: Pick<History, "startMs" | "stepMs" | "userMs">): number[] {
  return onto.userMs.map((_, index) => {
    const begin = (onto.startMs + index * onto.stepMs - from.startMs) / from.stepMs; // in steps of `from`
    const end = begin + onto.stepMs / from.stepMs;
    let sum = 0;
    for (let step = Math.max(0, Math.floor(begin)); step < Math.min(cpuMs.length, end); step++) {
      sum += cpuMs[step] * (Math.min(step + 1, end) - Math.max(step, begin));
    }
    return sum;
  });
}

// The known part of step `index`: it may begin before the history, end after it, or be in a gap.
function knownMs(history: History, index: number) {
  const from = Math.max(history.startMs + index * history.stepMs, history.from);
  const to = Math.min(history.startMs + (index + 1) * history.stepMs, history.to);
  const unknown = history.gaps.reduce((sum, gap) => sum + Math.max(0, Math.min(gap.to, to) - Math.max(gap.from, from)), 0);
  return to - from - unknown;
}

// CPU time as the number of busy CPUs; null if nothing is known.
export function busyCpus(history: History, cpuMs: readonly number[]): (number | null)[] {
  // In a tiny part of a step one sample would look like a peak.
  const least = Math.min(500, history.stepMs / 20);
  return cpuMs.map((value, index) => {
    const known = knownMs(history, index);
    return known < least ? null : value / known;
  });
}

// The same over all known time; null if there is none. Partly known steps count for that part.
export function meanCpus(history: History, cpuMs: readonly number[]): number | null {
  const known = cpuMs.reduce((sum, _, index) => sum + Math.max(0, knownMs(history, index)), 0);
  return known > 0 ? cpuMs.reduce((sum, ms) => sum + ms, 0) / known : null;
}

// The CPUs that were not sampled at some time in a span, each once.
export function missingCpus({ missing }: History, span: Span): number[] {
  return [...new Set(missing.filter(({ from, to }) => from < span.to && to > span.from).map(({ cpu }) => cpu))].sort((a, b) => a - b);
}

export const stepAt = ({ startMs, stepMs, userMs }: History, ms: number) => {
  const index = Math.floor((ms - startMs) / stepMs);
  return index >= 0 && index < userMs.length ? index : -1;
};

// The values of uPlot's stacked areas, lowest layer first.
export function stacked(layers: readonly (number | null)[][]): (number | null)[][] {
  const sums: (number | null)[][] = [];
  for (const layer of layers) {
    const below = sums.at(-1);
    sums.push(layer.map((value, index) => (value === null ? null : value + (below?.[index] ?? 0))));
  }
  return sums;
}
