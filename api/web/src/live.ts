// SPDX-License-Identifier: Apache-2.0
// A window that ends now is asked for again as time goes on: once for each sixtieth of its length, which is about a
// pixel column of the timeline or two, and never for more than a twentieth of the time.
import { effect } from "@preact/signals";

import { round } from "./asking";
import { isAway } from "./daemon";
import { askedWindow, profile } from "./questions";
import { ask, isLive } from "./state";

const SHORTEST_MS = 5000;
const LONGEST_MS = 60000;

const atOnce = (ms: number) => new Date(ms).toISOString();

export function pause() {
  const window = askedWindow.peek();
  if (window !== null) ask({ from: atOnce(window.from_ms), to: atOnce(window.to_ms) });
}

const UNITS: [number, string][] = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];

// 5400000 → "1h30m"
export function asDuration(ms: number): string {
  let seconds = Math.max(1, Math.round(ms / 1000));
  let text = "";
  for (const [length, unit] of UNITS) {
    if (seconds >= length) text += `${Math.floor(seconds / length)}${unit}`;
    seconds %= length;
  }
  return text;
}

// As long a window as now, ending now.
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
  if (to >= Date.now()) return goLive();
  return ask({ from: atOnce(to - length), to: atOnce(to) });
}

export function keepLive() {
  let timer = 0;
  let isDue = false;
  const tick = () => {
    isDue = document.hidden;
    if (!isDue) round.value++;
  };
  effect(() => {
    clearTimeout(timer);
    const window = askedWindow.value;
    if (!isLive.value || isAway.value || window === null) return;
    const sixtieth = (window.to_ms - window.from_ms) / 60;
    timer = setTimeout(tick, Math.max(Math.min(Math.max(sixtieth, SHORTEST_MS), LONGEST_MS), 20 * profile.tookMs));
  });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && isDue) tick();
  });
}
