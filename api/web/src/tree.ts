// SPDX-License-Identifier: Apache-2.0
// A flame graph as flat arrays: nodes in depth-first order, parents before children. Drawing and searching hundreds of
// thousands of nodes is then a loop, and no stack is too deep for it.

import type { FrameNode } from "./answers";

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

  constructor(root: FrameNode) {
    const frames: Frame[] = [];
    const frameIds = new Map<string, number>();
    const columns = { frame: [] as number[], parent: [] as number[], depth: [] as number[], start: [] as number[], value: [] as number[], self: [] as number[] };
    const open = [{ node: root, parent: 0, depth: 0, start: 0 }];
    let levels = 0;
    while (open.length > 0) {
      const { node, parent, depth, start } = open.pop()!;
      const id = columns.frame.length;
      const key = `${node.kind}\0${node.name}\0${node.module ?? ""}`;
      let frame = frameIds.get(key);
      if (frame === undefined) {
        frame = frames.length;
        frameIds.set(key, frame);
        frames.push({ name: node.name, kind: node.kind ?? "unknown", module: node.module ?? "", reason: node.reason ?? "" });
      }
      columns.frame.push(frame);
      columns.parent.push(parent);
      columns.depth.push(depth);
      columns.start.push(start);
      columns.value.push(node.value);
      columns.self.push(node.self ?? 0);
      levels = Math.max(levels, depth + 1);
      const children = node.children ?? [];
      let childStart = start + node.value;
      for (let i = children.length - 1; i >= 0; i--) childStart -= children[i].value;
      // What a frame does itself stands at its right end.
      childStart = Math.max(childStart - (node.self ?? 0), start);
      const starts = children.map((child) => {
        const at = childStart;
        childStart += child.value;
        return at;
      });
      for (let i = children.length - 1; i >= 0; i--) open.push({ node: children[i], parent: id, depth: depth + 1, start: starts[i] });
    }
    this.frames = frames;
    this.frame = Uint32Array.from(columns.frame);
    this.parent = Uint32Array.from(columns.parent);
    this.depth = Uint32Array.from(columns.depth);
    this.start = Float64Array.from(columns.start);
    this.value = Float64Array.from(columns.value);
    this.self = Float64Array.from(columns.self);
    this.size = this.frame.length;
    this.levels = levels;
    this.total = this.value[0];

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
