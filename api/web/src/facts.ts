// SPDX-License-Identifier: Apache-2.0
// What the figures of an answer mean. Pure.
import type { About } from "./answers";

// What narrows an answer besides its window.
export interface Narrowed {
  offset_from: string;
  offset_to: string;
  lives: readonly { started: string | null; ended: string | null }[]; // of the selected processes; none: the whole machine
}

const hertz = (hz: number) => Number(hz.toFixed(1));

// Reasons for which nothing could run.
const STANDSTILLS: ReadonlySet<string> = new Set(["suspended", "clock_set"]);

// The rate at which the window was sampled: "25 Hz", "25 to 99 Hz"; "" if it was not sampled.
export function rateText({ quality: { frequencies } }: Pick<About, "quality">): string {
  const rates = frequencies.map(({ hz }) => hertz(hz)).sort((a, b) => a - b);
  if (rates.length === 0) return "";
  return rates[0] === rates.at(-1) ? `${rates[0]} Hz` : `${rates[0]} to ${rates.at(-1)} Hz`;
}

// For how long the selection could be sampled: without the time before it started and after it ended, without suspends,
// and without the parts of each second that are not selected.
export function sampledMs({ window: { used }, missing }: Pick<About, "window" | "missing">, { offset_from, offset_to, lives }: Narrowed): number {
  const begins = lives.map(({ started }) => (started === null ? -Infinity : Date.parse(started)));
  const ends = lives.map(({ ended }) => (ended === null ? Infinity : Date.parse(ended)));
  const from = Math.max(used.from_ms, lives.length === 0 ? -Infinity : Math.min(...begins));
  const to = Math.min(used.to_ms, lives.length === 0 ? Infinity : Math.max(...ends));
  const gaps = missing.filter(({ reason }) => STANDSTILLS.has(reason)).reduce((sum, gap) => sum + Math.max(0, Math.min(gap.to_ms, to) - Math.max(gap.from_ms, from)), 0);
  const part = (Number(offset_to || 1000) - Number(offset_from || 0)) / 1000;
  return Math.max(0, to - from - gaps) * part;
}
