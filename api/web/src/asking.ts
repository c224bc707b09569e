// SPDX-License-Identifier: Apache-2.0
// A query that is sent again whenever its inputs change, and its latest answer.
import { type ReadonlySignal, batch, computed, effect, signal, untracked } from "@preact/signals";

import type { Problem } from "./answers";
import { type Progress, type Read, Refused, Unreachable, get, wasAborted } from "./api";
import { lostDaemon } from "./daemon";

// All queries are sent again when it grows: time went on, or the daemon is back.
export const round = signal(0);

const underWay = signal(0);
// Whether all visible queries have been answered.
export const isSettled = computed(() => underWay.value === 0);

export const CANCELLED: Problem = { title: "Cancelled", detail: "The query was cancelled before its answer came." };

interface Options<Answer> {
  // For answers that are not plain JSON.
  read?: Read<Answer>;
  // A more urgent query: this one is sent once that one's answer is painted. They share the daemon's threads, and on a
  // small host they share its CPUs with the browser, too.
  after?: Asking<unknown>;
}

// The second query is sent anyway if the answer to the first has neither begun nor ended for this long.
const PATIENCE_MS = 1000;

// Waits until the current content has been painted. In a hidden page nothing ever is.
const painted = () => new Promise<void>((resolve) => {
  requestAnimationFrame(() => setTimeout(resolve));
});

export class Asking<Answer> {
  // Stays while the next one is on its way, and if that is refused.
  readonly answer: ReadonlySignal<Answer | null>;
  // Why there is no newer answer.
  readonly problem: ReadonlySignal<Problem | null>;
  // null: no request is on its way.
  readonly progress: ReadonlySignal<Progress | null>;
  // How long the latest answer took.
  tookMs = 0;
  // performance.now() when it had come.
  readonly answeredAt: ReadonlySignal<number>;

  readonly #answer = signal<Answer | null>(null);
  readonly #problem = signal<Problem | null>(null);
  readonly #progress = signal<Progress | null>(null);
  readonly #answeredAt = signal(0);
  readonly #again = signal(0);
  #abort: AbortController | null = null;

  readonly #options: Options<Answer>;

  // `address` reads signals, and returns the address to request, or null for none.
  constructor(address: () => string | null, options: Options<Answer> = {}) {
    this.#options = options;
    this.answer = this.#answer;
    this.problem = this.#problem;
    this.progress = this.#progress;
    this.answeredAt = this.#answeredAt;
    const asked = computed(address);
    effect(() => {
      const next = asked.value;
      round.value;
      this.#again.value;
      untracked(() => {
        this.#stop();
        if (next !== null) return void this.#ask(next);
        this.#answer.value = null;
        this.#problem.value = null;
      });
    });
  }

  again() {
    this.#again.value++;
  }

  cancel() {
    if (this.#abort === null) return;
    this.#stop();
    this.#problem.value = CANCELLED;
  }

  #stop() {
    if (this.#abort === null) return;
    this.#abort.abort();
    this.#finish(this.#abort);
  }

  #finish(abort: AbortController) {
    if (this.#abort !== abort) return;
    this.#abort = null;
    this.#progress.value = null;
    underWay.value--;
  }

  // Waits until the latest answer has been painted, or for the longest time.
  async #isDone() {
    // The inputs change for all queries at once, but the queries are notified one after the other.
    await Promise.resolve();
    if (this.#abort === null) return;
    const stage = computed(() => this.#progress.value?.stage);
    let timer = 0;
    let end = () => {};
    await new Promise<void>((resolve) => {
      end = effect(() => {
        clearTimeout(timer);
        timer = setTimeout(resolve, PATIENCE_MS);
        if (stage.value === undefined) void painted().then(resolve);
      });
    });
    clearTimeout(timer);
    end();
  }

  async #ask(address: string) {
    const abort = new AbortController();
    const { signal: aborted } = abort;
    this.#abort = abort;
    underWay.value++;
    const since = performance.now();
    try {
      if (this.#options.after !== undefined) {
        this.#progress.value = { stage: "asking", bytes: 0, since };
        await this.#options.after.#isDone();
        if (aborted.aborted) return;
      }
      const answer = await get<Answer>(address, { signal: aborted, onProgress: (progress) => {
        if (!aborted.aborted) this.#progress.value = progress;
      } }, this.#options.read);
      if (aborted.aborted) return;
      this.tookMs = performance.now() - since;
      // At once, since an observer of the answer may send the next query.
      batch(() => {
        this.#finish(abort);
        this.#problem.value = null;
        this.#answer.value = answer;
        this.#answeredAt.value = performance.now();
      });
    } catch (error) {
      if (aborted.aborted || wasAborted(error)) return;
      batch(() => {
        this.#finish(abort);
        if (error instanceof Unreachable) {
          lostDaemon();
        } else if (error instanceof Refused) {
          this.#problem.value = error.problem;
        } else {
          console.error(error);
          this.#problem.value = { title: "The page failed", detail: String(error) };
        }
      });
    }
  }
}
