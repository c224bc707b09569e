// SPDX-License-Identifier: Apache-2.0
// Whether the daemon is reachable and healthy.
import { computed, signal } from "@preact/signals";

import type { Health } from "./answers";
import { Refused, Unreachable, get } from "./api";

export const health = signal<Health | null>(null);
// Set if the daemon shows a file instead of its host.
export const file = computed(() => health.value?.file ?? null);
// Where "now" is: a file has nothing after its end.
export const nowMs = () => file.peek()?.window.to_ms ?? Date.now();
// The latest query got no answer. The page notices by itself when the daemon is back.
export const isAway = signal(false);

const RETRY_MS = 2000;
// An outage is noticed after the sum of both at the latest.
const BEAT_MS = 2500;
const LONGEST_BEAT_MS = 3000;
const LONGEST_WAIT_MS = 5000;

const ask = <Answer>(path: string, longestMs = LONGEST_WAIT_MS) => get<Answer>(path, { signal: AbortSignal.timeout(longestMs) });

export async function askHealth() {
  try {
    health.value = await ask<Health>("/healthz");
  } catch {
    health.value = null;
  }
}

let timer = 0;
let onBack: () => void = () => {};
// Called when the daemon answers again.
export function whenBack(callback: () => void) {
  onBack = callback;
}

export function lostDaemon() {
  if (isAway.peek()) return;
  isAway.value = true;
  health.value = null;
  timer = setTimeout(lookForDaemon, RETRY_MS);
}

// Checks every few seconds that the daemon answers, while the page is visible.
export async function listenForDaemon() {
  if (!isAway.peek() && !document.hidden) {
    try {
      await ask<Health>("/readyz", LONGEST_BEAT_MS);
    } catch (error) {
      // A daemon that is starting, or that refuses, is reachable.
      if (!(error instanceof Refused)) lostDaemon();
    }
  }
  setTimeout(listenForDaemon, BEAT_MS);
}

export async function lookForDaemon() {
  clearTimeout(timer);
  try {
    const { status } = await ask<Health>("/readyz");
    if (status !== "ready") throw new Unreachable("the daemon is starting");
    isAway.value = false;
    onBack();
  } catch {
    timer = setTimeout(lookForDaemon, RETRY_MS);
  }
}
