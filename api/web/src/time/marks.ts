// SPDX-License-Identifier: Apache-2.0
// Marks on the timeline as flags. Pure.
import type { Mark } from "../answers";
import { type Span, length } from "./span";

// Marks nearer to each other than a finger is wide share a flag, which stands at the first of them.
export interface Flag {
  place: number; // 0 at the left edge of the view, 1 at the right one
  marks: Mark[];
}

export const FLAG_PX = 24;

export function flagsOf(marks: readonly Mark[], view: Span, width: number): Flag[] {
  const flags: Flag[] = [];
  for (const mark of [...marks].sort((a, b) => a.time_ms - b.time_ms)) {
    if (mark.time_ms < view.from || mark.time_ms > view.to) continue;
    const place = (mark.time_ms - view.from) / Math.max(1, length(view));
    const last = flags.at(-1);
    if (last !== undefined && (place - last.place) * width < FLAG_PX) last.marks.push(mark);
    else flags.push({ place, marks: [mark] });
  }
  return flags;
}

export const isPressure = ({ kind }: Mark) => kind === "pressure";

// Of several minutes under pressure the one in which threads waited for the largest share of the time.
export function worstOf(marks: readonly Mark[]): Mark {
  const worst = ({ pressure }: Mark) => Math.max(...Object.values(pressure ?? {}));
  return marks.reduce((most, mark) => (worst(mark) > worst(most) ? mark : most));
}

// The time after a mark and as much before it, as long as the window is or as there is time after it; null if there is none.
export function around(mark: Mark, window: Span, now: number): { before: Span; after: Span } | null {
  const long = Math.min(length(window), now - mark.time_ms);
  if (long < 1000) return null;
  return { before: { from: mark.time_ms - long, to: mark.time_ms }, after: { from: mark.time_ms, to: mark.time_ms + long } };
}
