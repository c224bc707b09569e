// SPDX-License-Identifier: Apache-2.0
// A window that ends now is requested again as time goes on: once for each ninetieth of its length, which is about one
// pixel column of the timeline, and for a fifth of the time at most.
import { computed, effect, signal } from "@preact/signals";

import { round } from "./asking";
import { file, isAway, nowMs } from "./daemon";
import { askedWindow, profile } from "./questions";
import { ask, isLive } from "./state";
import { asDuration } from "./text";

const SHORTEST_MS = 5000;
const LONGEST_MS = 60000;

const atOnce = (ms: number) => new Date(ms).toISOString();

export function pause() {
  const window = askedWindow.peek();
  if (window !== null) ask({ from: atOnce(window.from_ms), to: atOnce(window.to_ms) });
}

// A window of the same length that ends now.
export function goLive() {
  const window = askedWindow.peek();
  if (window === null) return ask({ from: "", to: "" });
  const length = window.to_ms - window.from_ms;
  return ask({ from: length === 900000 ? "" : `now-${asDuration(length)}`, to: "" });
}

// By whole lengths of the window, to the past (-1) or the future (1).
export function step(by: -1 | 1) {
  const window = askedWindow.peek();
  if (window === null) return undefined;
  const length = window.to_ms - window.from_ms;
  const to = window.to_ms + by * length;
  if (to >= nowMs()) return goLive();
  return ask({ from: atOnce(to - length), to: atOnce(to) });
}

const refreshMs = (lengthMs: number) => Math.min(Math.max(lengthMs / 90, SHORTEST_MS), LONGEST_MS);

// So much later than its refresh was due, a live window is called old.
const OLD_MS = 5000;
const now = signal(0);
// The age of the shown answer in seconds if it is old; otherwise null.
export const oldSeconds = computed(() => {
  const window = askedWindow.value;
  if (!isLive.value || window === null) return null;
  const age = now.value - profile.answeredAt.value;
  const isOld = age > OLD_MS + Math.max(refreshMs(window.to_ms - window.from_ms), 5 * profile.tookMs) + profile.tookMs;
  return age > 0 && (isAway.value || isOld) ? Math.round(age / 1000) : null;
});

export function keepLive() {
  setInterval(() => (now.value = performance.now()), 1000);
  let timer = 0;
  let isDue = false;
  const tick = () => {
    isDue = document.hidden;
    if (!isDue) round.value++;
  };
  effect(() => {
    clearTimeout(timer);
    const window = askedWindow.value;
    if (!isLive.value || isAway.value || file.value !== null || window === null) return;
    timer = setTimeout(tick, Math.max(refreshMs(window.to_ms - window.from_ms), 5 * profile.tookMs));
  });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && isDue) tick();
  });
}
