// SPDX-License-Identifier: Apache-2.0
// CPU use over the window for the sparklines of the visible rows. The busiest processes come in one answer. Other
// processes, groups that contain such, and threads are requested row by row.
import { computed, effect, signal } from "@preact/signals";

import type { Timeline } from "../answers";
import { Refused, Unreachable, addressWith, get, wasAborted } from "../api";
import { Asking } from "../asking";
import { profile } from "../questions";
import { type Selection, question, windowOnly } from "../state";
import { lengthOf } from "./length";
import { type Row, cpuOf } from "./rows";

const STEPS = 48;
const MOST_LINES = 64; // processes in one answer of /timeline
const PAUSE_MS = 150; // without scrolling, before rows are requested

function parameters(): URLSearchParams {
  const asked = windowOnly(question.value);
  const length = lengthOf(question.value);
  if (length !== null) asked.set("step", String(Math.min(86400, Math.max(1, Math.ceil(length / 1000 / STEPS)))));
  return asked;
}

export const activity = new Asking<Timeline>(() => {
  const asked = parameters();
  asked.set("processes", String(MOST_LINES));
  return addressWith("/timeline", asked);
}, { after: profile });

// By the row's key.
export const courses = signal<ReadonlyMap<string, readonly number[]>>(new Map());

// The rows that the list draws.
export const inSight = signal<readonly Row[]>([]);

interface Wanted {
  key: string;
  selects: Partial<Selection>;
}
// As text, so that the signal changes only with its content. Rows that have been answered stay in it until the next
// answer of `activity`.
const wanted = computed(() => {
  const known = activity.answer.value;
  if (known === null) return "[]";
  const told = new Set(known.processes.map(({ id }) => `process ${id}`));
  const rows = inSight.value.filter(({ key, kind, steps, selects }) =>
    !told.has(key) && kind !== "machine" && Object.keys(selects).length > 0 && (steps === null || courses.peek().has(key)));
  return JSON.stringify(rows.map(({ key, selects }): Wanted => ({ key, selects })));
});

async function ask(rows: readonly Wanted[], window: { from_ms: number; to_ms: number }, signal: AbortSignal) {
  for (const { key, selects } of rows) {
    const asked = parameters();
    asked.set("from", String(window.from_ms));
    asked.set("to", String(window.to_ms));
    for (const [selector, values] of Object.entries(selects)) for (const value of values as readonly string[]) asked.append(selector, value);
    const { steps } = await get<Timeline>(addressWith("/timeline", asked), { signal });
    if (signal.aborted) return;
    courses.value = new Map(courses.peek()).set(key, cpuOf(steps));
  }
}

effect(() => {
  const rows = JSON.parse(wanted.value) as Wanted[];
  const window = activity.answer.value?.window.asked;
  if (rows.length === 0 || window === undefined) return undefined;
  const abort = new AbortController();
  const timer = setTimeout(() => {
    ask(rows, window, abort.signal).catch((error: unknown) => {
      // The row goes without its sparkline until the next answer.
      if (!wasAborted(error) && !(error instanceof Refused) && !(error instanceof Unreachable)) console.error(error);
    });
  }, PAUSE_MS);
  return () => {
    clearTimeout(timer);
    abort.abort();
  };
});
