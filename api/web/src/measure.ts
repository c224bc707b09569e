// SPDX-License-Identifier: Apache-2.0
// What the page's times are: time on a CPU, waiting time, or both.
import { computed } from "@preact/signals";

import type { About } from "./answers";
import { health } from "./daemon";
import { about } from "./questions";
import { type Measure, ask, go, question } from "./state";
import { count, seconds } from "./text";

export const asked = computed<Measure>(() => question.value.measure);
// The order of single samples is shown only of CPU time.
export const isCpu = computed(() => asked.value === "");
// Whether there is a choice. A link to waiting time shows it as soon as the page is opened.
export const hasChoice = computed(() => (health.value?.measures ?? []).includes("wait") || !isCpu.value);

export const choose = (measure: Measure) => go({ question: { measure } });

export const showIdle = (isShown: boolean) => ask({ idle: isShown ? "show" : "" });

// Of the shown answer, which may be older than the question.
export const shownMeasure = computed(() => about.value?.measure ?? "cpu");
// Its samples are units of time, so that their number says nothing.
export const isTimed = computed(() => shownMeasure.value !== "cpu");

export const worth = ({ samples, cpu_seconds }: Pick<About, "samples" | "cpu_seconds">) => (samples === 0 ? 0 : cpu_seconds / samples);

// So many samples as a number and a time, or as a time only. `each` is what a sample is worth.
export function amount(samples: number, each: number): string {
  const time = seconds(samples * each);
  return isTimed.value ? time : `${count(samples)} ${samples === 1 ? "sample" : "samples"} · ${time}`;
}

// What uses the time, on average so many at once.
export const unit = computed(() => (isCpu.value ? "CPUs" : "threads"));
export const title = computed(() => ({ "": "CPU use", wait: "Waiting", wall: "CPU and waiting" })[asked.value]);
