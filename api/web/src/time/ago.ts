// SPDX-License-Identifier: Apache-2.0
// The window's own time some hours or days earlier, to compare with. Pure.
import { asDuration, dateTime } from "../text";
import { type Span, length } from "./span";

const HOUR_MS = 3600_000;

export const AGO: readonly [name: string, ms: number][] = [
  ["an hour ago", HOUR_MS], ["a day ago", 24 * HOUR_MS], ["a week ago", 7 * 24 * HOUR_MS],
];

// Why a window can't be compared with that time; "" if it can. `retained` is the whole history, null if it is not known.
export function obstacle(window: Span, ago: number, retained: Span | null): string {
  if (length(window) > ago) return "the window is longer";
  if (retained !== null && window.from - ago < retained.from) return `samples begin at ${dateTime(retained.from)}`;
  return "";
}

// In words that the daemon reads. The baseline of a live window goes on with it.
export function earlier(window: Span, ago: number, isLive: boolean): { from: string; to: string } {
  if (isLive) return { from: `now-${asDuration(length(window) + ago)}`, to: `now-${asDuration(ago)}` };
  return { from: new Date(window.from - ago).toISOString(), to: new Date(window.to - ago).toISOString() };
}
