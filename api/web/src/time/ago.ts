// SPDX-License-Identifier: Apache-2.0
// The window's own time some hours or days earlier, to compare with. Pure.
import { asDuration, dateTime } from "../text";
import { type Span, length } from "./span";

const HOUR_MS = 3600_000;

export const AGO: readonly [name: string, ms: number][] = [
  ["an hour ago", HOUR_MS], ["a day ago", 24 * HOUR_MS], ["a week ago", 7 * 24 * HOUR_MS],
];

// What the timeline shows, and what is on disk before it. `oldest` is undefined if it is not known.
export const whole = (shown: Span | null, oldest: number | undefined): Span | null =>
  (shown === null || oldest === undefined ? shown : { from: Math.min(shown.from, oldest), to: shown.to });

// Why a window can't be compared with that time; "" if it can. `retained` is the whole history, null if it is not known.
export function obstacle(window: Span, ago: number, retained: Span | null): string {
  if (length(window) > ago) return "the window is longer";
  if (retained !== null && window.from - ago < retained.from) return `samples begin at ${dateTime(retained.from)}`;
  return "";
}

// The baseline, which goes on with its window.
export const earlier = (ago: number) => ({ from: "", to: "", ago: asDuration(ago) });

// "an hour ago", or "2h ago" of another length.
export const agoName = (ago: string) => AGO.find(([, ms]) => asDuration(ms) === ago)?.[0] ?? `${ago} ago`;
