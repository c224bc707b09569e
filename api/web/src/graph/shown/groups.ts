// SPDX-License-Identifier: Apache-2.0
// What the rows of a table are: functions, or all functions of a module or of a source file as one.

import { labelOf } from "../drawing/colours";
import type { Frames } from "../tree/frames";

export type RowsBy = "" | "module" | "file"; // "": functions

export const NO_GROUP = 2 ** 32 - 1;

export class Groups {
  // By frame. NO_GROUP for what is no code.
  readonly of: Uint32Array;
  readonly size: number;
  readonly #first: number[] = []; // a frame of each group
  readonly #functions: number[] = [];
  #ranks: Uint32Array | null = null;

  constructor(
    readonly frames: Frames,
    readonly by: RowsBy,
  ) {
    this.of = new Uint32Array(frames.size).fill(NO_GROUP);
    const known = new Map<number | string, number>();
    for (let f = 0; f < frames.size; f++) {
      if (!frames.isCode(f)) continue;
      const key = this.#key(f);
      let group = known.get(key);
      if (group === undefined) {
        known.set(key, (group = this.#first.push(f) - 1));
        this.#functions.push(0);
      }
      this.of[f] = group;
      this.#functions[group]++;
    }
    this.size = this.#first.length;
  }

  name(group: number) {
    const { frames } = this;
    const f = this.#first[group];
    if (this.by === "") return frames.name(f);
    if (this.by === "file") return frames.file(f) || "source file not known";
    return frames.module(f) || `${labelOf(frames.kind(f))}, in no file`;
  }

  // Where a function is, or how many functions there are.
  note(group: number) {
    const { frames } = this;
    const f = this.#first[group];
    if (this.by === "") return frames.module(f) || labelOf(frames.kind(f));
    return `${this.#functions[group]} ${this.#functions[group] === 1 ? "function" : "functions"}`;
  }

  frame(group: number) {
    return this.#first[group];
  }

  // The rank of each group by name.
  ranks(): Uint32Array {
    if (this.#ranks !== null) return this.#ranks;
    if (this.by === "") {
      const ranks = this.frames.ranks();
      return (this.#ranks = Uint32Array.from(this.#first, (f) => ranks[f]));
    }
    const names = this.#first.map((_, group) => this.name(group));
    const order = names.map((_, group) => group).sort((a, b) => (names[a] < names[b] ? -1 : names[a] > names[b] ? 1 : a - b));
    this.#ranks = new Uint32Array(this.size);
    for (let rank = 0; rank < order.length; rank++) this.#ranks[order[rank]] = rank;
    return this.#ranks;
  }

  #key(f: number): number | string {
    const { frames } = this;
    if (this.by === "") return f;
    if (this.by === "file") return frames.file(f);
    return frames.module(f) || `\0${frames.kind(f)}`;
  }
}
