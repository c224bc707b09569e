// SPDX-License-Identifier: Apache-2.0
// Whether the daemon is there and well.
import { signal } from "@preact/signals";

import type { Health } from "./answers";
import { Unreachable, get } from "./api";

export const health = signal<Health | null>(null);
// No answer came to the latest question. The page finds out by itself when the daemon is back.
export const isAway = signal(false);

const RETRY_MS = 2000;
const LONGEST_WAIT_MS = 5000;

const ask = <Answer>(path: string) => get<Answer>(path, { signal: AbortSignal.timeout(LONGEST_WAIT_MS) });

export async function askHealth() {
  try {
    health.value = await ask<Health>("/healthz");
  } catch {
    health.value = null;
  }
}

let timer = 0;
let onBack: () => void = () => {};
// What to do when the daemon answers again.
export function whenBack(callback: () => void) {
  onBack = callback;
}

export function lostDaemon() {
  if (isAway.peek()) return;
  isAway.value = true;
  health.value = null;
  timer = setTimeout(lookForDaemon, RETRY_MS);
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
