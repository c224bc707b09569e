// SPDX-License-Identifier: Apache-2.0
// The texts on frames and about them. Profiled programs choose the names.

import { count, printable, seconds } from "../../text";
import { moment } from "../../time/ticks";
import type { Model } from "../tree/model";

const LONGEST = 400;

export function share(part: number, whole: number) {
  if (part === 0 || whole === 0) return "0 %";
  const value = (100 * part) / whole;
  if (value < 0.01) return "< 0.01 %";
  return `${value < 10 ? value.toFixed(2) : value.toFixed(1)} %`;
}

// Percentage points, or hundredths of a CPU, always with a sign.
export function changeText(change: number) {
  const points = 100 * change;
  if (points === 0) return "±0";
  const size = Math.abs(points);
  return `${points > 0 ? "+" : "−"}${size < 0.01 ? "<0.01" : size.toFixed(size < 10 ? 2 : 1)}`;
}

// Cuts a text in its middle, since names differ at both ends. A text that fits is not cut.
export function fitted(text: string, letters: number) {
  if (text.length <= letters) return text;
  if (letters < 3) return "";
  return `${text.slice(0, letters - 1)}…`;
}

// "12.3 ms" of microseconds.
export function lasting(us: number) {
  if (us >= 999_500) return seconds(us / 1e6);
  return us >= 100_000 ? `${Math.round(us / 1000)} ms` : `${(us / 1000).toFixed(1)} ms`;
}

// The name of a node below the root: programs have paths, and stand for many processes.
function placeName(name: string, programs: ReadonlyMap<string, number>) {
  if (!name.startsWith("/")) return name;
  const many = programs.get(name) ?? 1;
  return `${name.slice(name.lastIndexOf("/") + 1)}${many > 1 ? ` ×${many}` : ""}`;
}

// The texts of a model's frames, built when they are first shown.
export class Labels {
  readonly #texts: (string | undefined)[];

  // `programs`: how many processes each program has, by its path.
  constructor(
    readonly model: Model,
    private readonly programs: ReadonlyMap<string, number> = new Map(),
    private readonly amount: (samples: number) => string = (samples) => `${count(samples)} samples`,
  ) {
    this.#texts = new Array<string | undefined>(model.frames.size);
  }

  frame(f: number) {
    return (this.#texts[f] ??= printable(this.#textOf(f), LONGEST));
  }

  #textOf(f: number) {
    const { frames } = this.model;
    const name = frames.name(f);
    if (frames.kind(f) === "root") return placeName(name, this.programs);
    return frames.isFolded(f) ? `${name} (in one)` : name;
  }

  // The text on a rectangle. In a comparison it includes the change, since not everyone can see the colours.
  node(node: number) {
    const text = this.frame(this.model.frame[node]);
    return this.model.sides === null || node === 0 ? text : `${changeText(this.model.change(node))}  ${text}`;
  }

  // A sentence for screen readers.
  spoken(node: number) {
    const { model } = this;
    const name = printable(this.frame(model.frame[node]), 200);
    if (model.startMs !== null) return `${name}, ${moment(model.startMs + model.start[node] / 1000)}, ${lasting(model.value[node])}`;
    if (model.sides === null) return `${name}, ${share(model.value[node], model.total)}, ${this.amount(model.value[node])}`;
    const { after, before } = model.sides;
    const mark = model.sides.significant[node] === 1 ? ", significant" : "";
    return `${name}, from ${share(before[node], before[0])} to ${share(after[node], after[0])}${mark}`;
  }
}
