// SPDX-License-Identifier: Apache-2.0
// A question that is asked again whenever what it depends on changes, and its latest answer.
import { type ReadonlySignal, batch, computed, effect, signal, untracked } from "@preact/signals";

import type { Problem } from "./answers";
import { type Progress, type Read, Refused, Unreachable, get, wasAborted } from "./api";
import { lostDaemon } from "./daemon";

// All questions are asked anew when it grows: time went on, or the daemon is back.
export const round = signal(0);

const underWay = signal(0);
// Whether everything that is to be seen has been answered.
export const isSettled = computed(() => underWay.value === 0);

export const CANCELLED: Problem = { title: "Cancelled", detail: "The query was cancelled before its answer came." };

interface Options<Answer> {
  // For answers that are not plain JSON.
  read?: Read<Answer>;
  // The question whose answer is waited for more: this one is put once that is painted. They share the daemon's threads,
  // and on a small host they share its CPUs with the browser, too.
  after?: Asking<unknown>;
}

// The second question is put in any case when for so long the answer to the first has neither begun nor ended.
const PATIENCE_MS = 1000;

// Until what is there now has been painted. In a page that nobody sees nothing ever is.
const painted = () => new Promise<void>((resolve) => {
  requestAnimationFrame(() => setTimeout(resolve));
});

export class Asking<Answer> {
  // Stays while the next is under way, and when that is refused.
  readonly answer: ReadonlySignal<Answer | null>;
  // Why there is no newer answer.
  readonly problem: ReadonlySignal<Problem | null>;
  // null: nothing is under way.
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

  // `address` reads signals, and gives what to ask, or null for nothing.
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

  // Until the latest answer has been painted, or that takes too long.
  async #isDone() {
    // What is to be asked changes for all questions at once, but one after the other hears of it.
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
      // At once, since whoever sees the answer may ask the next question.
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
