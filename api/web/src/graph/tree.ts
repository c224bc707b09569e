// SPDX-License-Identifier: Apache-2.0
// A flame graph as flat arrays: nodes in depth-first order, parents before children. Drawing and searching hundreds of
// thousands of nodes is then a loop, and no stack is too deep for it.

import type { Columns } from "../answers";

export interface Frame {
  name: string;
  kind: string;
  module: string;
  reason: string;
}

export class Tree {
  readonly frames: Frame[];
  readonly frame: Uint32Array;
  readonly parent: Uint32Array;
  readonly depth: Uint32Array;
  readonly start: Float64Array;
  readonly value: Float64Array;
  readonly self: Float64Array;
  readonly end: Uint32Array;
  readonly byLevel: Uint32Array[];
  readonly size: number;
  readonly levels: number;
  readonly total: number;

  constructor({ strings, kinds, frames, nodes }: Columns) {
    const text = (index: number | undefined) => (index === undefined ? "" : strings[index]);
    this.frames = frames.name.map((name, id) => ({
      name: strings[name], kind: kinds[frames.kind[id]], module: strings[frames.module[id]], reason: text(frames.details[id]?.reason),
    }));
    this.frame = Uint32Array.from(nodes.frame);
    this.depth = Uint32Array.from(nodes.depth);
    this.self = Float64Array.from(nodes.self);
    this.size = this.frame.length;
    this.parent = new Uint32Array(this.size);
    this.start = new Float64Array(this.size);
    this.value = Float64Array.from(nodes.self);
    this.levels = 0;
    const path: number[] = [];
    for (let i = 0; i < this.size; i++) {
      const depth = this.depth[i];
      path[depth] = i;
      if (depth > 0) this.parent[i] = path[depth - 1];
      this.levels = Math.max(this.levels, depth + 1);
    }
    for (let i = this.size - 1; i > 0; i--) this.value[this.parent[i]] += this.value[i];
    this.total = this.value[0];
    // What a frame does itself stands at its right end.
    const next = new Float64Array(this.size);
    for (let i = 0; i < this.size; i++) {
      if (i > 0) {
        this.start[i] = next[this.parent[i]];
        next[this.parent[i]] += this.value[i];
      }
      next[i] = this.start[i];
    }

    // Nodes of a subtree stand together: [i, end[i]).
    this.end = new Uint32Array(this.size);
    for (let i = this.size - 1; i >= 0; i--) {
      this.end[i] = Math.max(this.end[i], i + 1);
      if (i > 0) this.end[this.parent[i]] = Math.max(this.end[this.parent[i]], this.end[i]);
    }
    this.byLevel = this.#indexLevels();
  }

  #indexLevels() {
    const counts = new Uint32Array(this.levels);
    for (let i = 0; i < this.size; i++) counts[this.depth[i]]++;
    const levels = Array.from(counts, (length) => new Uint32Array(length));
    counts.fill(0);
    for (let i = 0; i < this.size; i++) levels[this.depth[i]][counts[this.depth[i]]++] = i;
    return levels;
  }

  of(node: number) {
    return this.frames[this.frame[node]];
  }

  // The node of a level that covers a position, or -1.
  at(level: number, position: number) {
    const nodes = this.byLevel[level];
    if (nodes === undefined) return -1;
    let low = 0;
    let high = nodes.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.start[nodes[middle]] <= position) low = middle + 1;
      else high = middle;
    }
    if (low === 0) return -1;
    const node = nodes[low - 1];
    return position < this.start[node] + this.value[node] ? node : -1;
  }

  // From the root down to and including `node`.
  path(node: number) {
    const nodes = [node];
    while (node !== 0) nodes.push((node = this.parent[node]));
    return nodes.reverse();
  }

  contains(outer: number, inner: number) {
    return inner >= outer && inner < this.end[outer];
  }

  children(node: number) {
    const found: number[] = [];
    for (let i = node + 1; i < this.end[node]; i = this.end[i]) found.push(i);
    return found;
  }

  // Which frames' names match, and how many samples below `node` have a matching frame (each sample once).
  search(matches: (name: string) => boolean, node: number) {
    const found = new Uint8Array(this.frames.length);
    this.frames.forEach((frame, id) => {
      if (matches(frame.name)) found[id] = 1;
    });
    let samples = 0;
    for (let i = node; i < this.end[node]; ) {
      if (found[this.frame[i]]) {
        samples += this.value[i];
        i = this.end[i];
      } else {
        i++;
      }
    }
    return { found, samples };
  }

  // The node that is the same place as `node` of another tree: names along the path. -1 where there is none.
  counterpart(other: Tree, node: number) {
    let at = 0;
    for (const step of other.path(node).slice(1)) {
      const wanted = other.of(step);
      at = this.children(at).find((child) => this.of(child).name === wanted.name && this.of(child).module === wanted.module) ?? -1;
      if (at === -1) return -1;
    }
    return at;
  }
}

// A plain text is looked for as it is, whatever its case; /text/ is a regular expression.
export function matcher(text: string): (name: string) => boolean {
  if (text.length > 2 && text.startsWith("/") && text.endsWith("/")) {
    const expression = new RegExp(text.slice(1, -1), "i");
    return (name) => expression.test(name);
  }
  const lower = text.toLowerCase();
  return (name) => name.toLowerCase().includes(lower);
}
