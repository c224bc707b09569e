// SPDX-License-Identifier: Apache-2.0
// The threads of the selection, and what one of them did in the order of time.
import { computed, effect, signal } from "@preact/signals";

import type { About, ThreadUsage, Threads } from "../../answers";
import { addressWith } from "../../api";
import { Asking } from "../../asking";
import { isCpu } from "../../measure";
import { askedWindow, profile } from "../../questions";
import { question, view, windowAndSelection } from "../../state";
import { fromText } from "../../time/span";
import type { Shown } from "../drawing/flame_canvas";
import { Labels } from "../drawing/labels";
import type { Frames } from "../tree/frames";
import { type SamplesAnswer, orderOf, samplesOf } from "./order";
import { ink, mode, paletteOf } from "../shown/shown";
import { NameSearch } from "../tree/workers";

const LONGEST_MS = 900_000;

const isShown = computed(() => mode.value === "time");

export const threads = new Asking<Threads>(() => (isShown.value ? addressWith("/threads", windowAndSelection(question.value)) : null), { after: profile });

export const keyOf = ({ process, tid }: ThreadUsage) => `${process.id}/${tid}`;
const chosenTrack = computed(() => view.value.track);
export const chosen = computed<ThreadUsage | null>(() => {
  const all = threads.answer.value?.threads ?? [];
  return all.find((thread) => keyOf(thread) === chosenTrack.value) ?? all[0] ?? null;
});
export const chosenKey = computed(() => (chosen.value === null ? "" : keyOf(chosen.value)));

export const isCut = computed(() => askedWindow.value !== null && askedWindow.value.to_ms - askedWindow.value.from_ms > LONGEST_MS);

export const samples = new Asking<SamplesAnswer & About>(() => {
  if (!isShown.value || !isCpu.value || chosenKey.value === "") return null;
  const [pid, tid] = chosenKey.value.split("/");
  const parameters = windowAndSelection(question.value);
  parameters.set("pid", pid);
  parameters.set("tid", tid);
  if (isCut.value) parameters.set("from", String(askedWindow.value!.to_ms - LONGEST_MS));
  for (const key of ["focus", "ignore", "hide", "names"] as const) if (question.value[key] !== "") parameters.set(key, question.value[key]);
  if (!question.value.inlines) parameters.set("inlines", "0");
  parameters.set("format", "samples");
  return addressWith("/profile", parameters);
}, { after: threads });
const read = computed(() => (samples.answer.value === null ? null : samplesOf(samples.answer.value)));

// The shown part of the window, as far as there are samples.
const at = computed(() => view.value.at);
export const range = computed(() => {
  if (read.value === null) return null;
  const { startMs, endMs } = read.value;
  const wanted = fromText(at.value);
  if (wanted === null || wanted.to <= startMs || wanted.from >= endMs) return { from: startMs, to: endMs };
  return { from: Math.max(startMs, wanted.from), to: Math.min(endMs, wanted.to) };
});
// The whole is kept, since the way back from a zoom leads to it.
const whole = computed(() => (read.value === null ? null : orderOf(read.value, 0, (read.value.endMs - read.value.startMs) * 1000)));
export const order = computed(() => {
  if (read.value === null || range.value === null) return null;
  const { startMs, endMs } = read.value;
  const { from, to } = range.value;
  return from === startMs && to === endMs ? whole.value : orderOf(read.value, (from - startMs) * 1000, (to - startMs) * 1000);
});

export const isZoomed = computed(() => order.value !== whole.value);

const frames = computed(() => read.value?.frames ?? null);
const search = computed(() => view.value.search);
const result = signal<{ of: Frames; text: string; marked: Uint8Array } | null>(null);
effect(() => {
  const of = frames.value;
  const text = search.value;
  if (!isShown.value || of === null || text === "") return undefined;
  const names = new NameSearch(of);
  let isOld = false;
  // An expression that can't be searched is reported beside the field: see shown.ts.
  names.find(text).then((marked) => !isOld && (result.value = { of, text, marked }), () => {});
  return () => {
    isOld = true;
    names.end();
  };
});
const found = computed(() => (result.value !== null && result.value.of === frames.value && result.value.text === search.value ? result.value.marked : null));

export const ordered = computed<Shown | null>(() => {
  if (order.value === null) return null;
  const { model } = order.value;
  return { model, palette: paletteOf(model), labels: new Labels(model), ink: ink.value, direction: "down", zoomed: 0, found: found.value, chosen: -1, since: null };
});
