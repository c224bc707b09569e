// SPDX-License-Identifier: Apache-2.0
// A flame graph as flat arrays: nodes in depth-first order, parents before children. So drawing and searching hundreds
// of thousands of nodes is a loop, no stack is too deep, and the visible part of a level is found by binary search.

import type { Frames } from "./frames";

export type Numbers = Uint32Array | Float64Array;

// The columns of a tree: each node's frame, its depth (0 only for the root), and its self samples.
export interface NodeColumns {
  frame: Uint32Array;
  depth: Uint32Array;
  self: Numbers;
  // In a comparison also the self samples of the side before; `self` are then those of the side after.
  selfBefore?: Numbers;
  // 1 if the change of a node's self samples is significant.
  significant?: Uint8Array;
}

// The share of the whole, or of a CPU, of one sample on each side of a comparison.
export interface Scales {
  after: number;
  before: number;
}

interface Sides {
  scales: Scales;
  selfAfter: Numbers;
  selfBefore: Numbers;
  after: Numbers; // totals
  before: Numbers;
  significant: Uint8Array;
}

// A model without its frames, which can be transferred between threads.
export interface ModelData {
  frame: Uint32Array;
  depth: Uint32Array;
  parent: Uint32Array; // the root's parent is the root
  end: Uint32Array; // the nodes of a subtree are [i, end[i])
  self: Numbers;
  value: Numbers; // total: a node's width
  start: Numbers; // where it begins, in units of value. A frame's self part is at its right end.
  levelNodes: Uint32Array; // by level, from left to right; those of level l are [levelStart[l], levelStart[l + 1])
  levelStart: Uint32Array;
  levelSum: Numbers; // the sum of the values before each in levelNodes
  sides: Sides | null;
}

const LARGEST = 2 ** 32 - 1;

function numbers(size: number, largest: number, areWhole: boolean): Numbers {
  return areWhole && largest <= LARGEST ? new Uint32Array(size) : new Float64Array(size);
}

// The total of each node and its subtree.
function totals(self: Numbers, parent: Uint32Array) {
  let all = 0;
  for (let i = 0; i < self.length; i++) all += self[i];
  const total = numbers(self.length, all, true);
  total.set(self);
  for (let i = self.length - 1; i > 0; i--) total[parent[i]] += total[i];
  return total;
}

// The width is the weighted sum of both sides, so that code that is gone is still visible. With the larger of the two,
// callees could be wider than their caller.
function weighed(after: Numbers, before: Numbers, scales: Scales) {
  const sum = new Float64Array(after.length);
  for (let i = 0; i < sum.length; i++) sum[i] = after[i] * scales.after + before[i] * scales.before;
  return sum;
}

// Throws if a node has no parent. For a million nodes, each column takes 2 ms to allocate, and each pass as long again.
// There are two passes: one to count, and one for everything else.
export function modelData(nodes: NodeColumns, scales: Scales | null): ModelData {
  const { frame, depth } = nodes;
  const size = frame.length;
  const selfBefore = nodes.selfBefore ?? new Uint32Array(scales === null ? 0 : size);
  const self = scales === null ? nodes.self : weighed(nodes.self, selfBefore, scales);

  const counts = [1]; // by level
  let all = self[0];
  for (let i = 1; i < size; i++) {
    const level = depth[i];
    if (level === 0 || level > depth[i - 1] + 1) throw new Error(`the answer's node ${i} has no parent`);
    if (level === counts.length) counts.push(0);
    counts[level]++;
    all += self[i];
  }
  const levels = counts.length;
  const levelStart = new Uint32Array(levels + 1);
  for (let level = 0; level < levels; level++) levelStart[level + 1] = levelStart[level] + counts[level];

  const areWhole = scales === null;
  const parent = new Uint32Array(size);
  const end = new Uint32Array(size);
  const value = numbers(size, all, areWhole);
  const start = numbers(size, all, areWhole);
  const levelNodes = new Uint32Array(size);
  const levelSum = numbers(size, all, areWhole);
  // By level: the open node, its value so far, where it or the next one begins, the values of complete nodes, and the
  // number of nodes so far.
  const open = new Uint32Array(levels);
  const values = new Float64Array(levels);
  const begins = new Float64Array(levels + 1);
  const sums = new Float64Array(levels);
  const filled = levelStart.slice();
  for (let i = 0, deepest = -1; i <= size; i++) {
    const level = i < size ? depth[i] : 0;
    // Nodes that are not above this one are complete.
    for (; deepest >= level; deepest--) {
      const node = open[deepest];
      const complete = values[deepest];
      end[node] = i;
      value[node] = complete;
      begins[deepest] += complete;
      sums[deepest] += complete;
      if (deepest > 0) values[deepest - 1] += complete;
    }
    if (i === size) break;
    parent[i] = level === 0 ? 0 : open[level - 1];
    open[level] = i;
    values[level] = self[i];
    start[i] = begins[level];
    begins[level + 1] = begins[level];
    const place = filled[level]++;
    levelNodes[place] = i;
    levelSum[place] = sums[level];
    deepest = level;
  }
  const sides = scales === null ? null : {
    scales, selfAfter: nodes.self, selfBefore,
    after: totals(nodes.self, parent), before: totals(selfBefore, parent),
    significant: nodes.significant ?? new Uint8Array(size),
  };
  return { frame, depth, parent, end, self, value, start, levelNodes, levelStart, levelSum, sides };
}

// Of a model that is not of samples from callers to callees.
export interface Meaning {
  isInverted?: boolean; // its levels go from callees to callers
  startMs?: number | null; // its siblings stand in the order of time, which begins here; values are microseconds
}

export class Model {
  readonly size: number;
  readonly levels: number;
  readonly total: number;
  readonly frame: Uint32Array;
  readonly depth: Uint32Array;
  readonly parent: Uint32Array;
  readonly end: Uint32Array;
  readonly self: Numbers;
  readonly value: Numbers;
  readonly start: Numbers;
  readonly sides: Sides | null;
  readonly isInverted: boolean;
  readonly startMs: number | null;

  constructor(
    readonly frames: Frames,
    readonly data: ModelData,
    { isInverted = false, startMs = null }: Meaning = {},
  ) {
    this.isInverted = isInverted;
    this.startMs = startMs;
    ({ frame: this.frame, depth: this.depth, parent: this.parent, end: this.end, self: this.self, value: this.value, start: this.start, sides: this.sides } = data);
    this.size = data.frame.length;
    this.levels = data.levelStart.length - 1;
    this.total = data.value[0];
  }

  static of(frames: Frames, nodes: NodeColumns, scales: Scales | null = null, meaning: Meaning = {}) {
    return new Model(frames, modelData(nodes, scales), meaning);
  }

  // What it was made of.
  columns(): NodeColumns {
    const { frame, depth, self, sides } = this;
    return sides === null ? { frame, depth, self } : { frame, depth, self: sides.selfAfter, selfBefore: sides.selfBefore, significant: sides.significant };
  }

  name(node: number) {
    return this.frames.name(this.frame[node]);
  }

  // For a comparison: the change of a node's total, in shares of the whole or in CPUs.
  change(node: number) {
    const { sides } = this;
    return sides === null ? 0 : sides.after[node] * sides.scales.after - sides.before[node] * sides.scales.before;
  }

  // The index in levelNodes of the first node of a level that ends after `position`; the level's end if none does.
  firstAfter(level: number, position: number, from = this.data.levelStart[level]) {
    const { levelNodes, levelStart } = this.data;
    let low = from;
    let high = levelStart[level + 1];
    // It is usually near: steps that double until they are past it.
    for (let step = 1; low + step < high; step *= 2) {
      const node = levelNodes[low + step];
      if (this.start[node] + this.value[node] > position) {
        high = low + step;
        break;
      }
      low += step;
    }
    while (low < high) {
      const middle = (low + high) >> 1;
      const node = levelNodes[middle];
      if (this.start[node] + this.value[node] > position) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  // The node of a level that covers a position, or -1.
  at(level: number, position: number) {
    if (level < 0 || level >= this.levels) return -1;
    const index = this.firstAfter(level, position);
    if (index === this.data.levelStart[level + 1]) return -1;
    const node = this.data.levelNodes[index];
    return this.start[node] <= position ? node : -1;
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

  deepest(node: number) {
    let deepest = this.depth[node];
    for (let i = node; i < this.end[node]; i++) if (this.depth[i] > deepest) deepest = this.depth[i];
    return deepest;
  }

  // The names from below the root down to a node. They are the same in every answer, so that an address can name a
  // place.
  names(node: number) {
    return this.path(node).slice(1).map((step) => this.name(step));
  }

  // Follows these names as far as the tree goes. Takes the largest of siblings with the same name.
  find(names: readonly string[]): { node: number; found: number } {
    let node = 0;
    for (let found = 0; found < names.length; found++) {
      let best = -1;
      for (let i = node + 1; i < this.end[node]; i = this.end[i]) {
        if (this.name(i) === names[found] && (best === -1 || this.value[i] > this.value[best])) best = i;
      }
      if (best === -1) return { node, found };
      node = best;
    }
    return { node, found: names.length };
  }

  // The node at the same place as `node` of another tree, or -1.
  counterpart(other: Model, node: number): number {
    if (other.isInverted !== this.isInverted || other.startMs !== this.startMs) return -1;
    const names = other.names(node);
    const place = this.find(names);
    return place.found === names.length ? place.node : -1;
  }

  // The child that replaces the functions left out below a node, or -1.
  prunedBelow(node: number) {
    for (let i = node + 1; i < this.end[node]; i = this.end[i]) if (this.frames.isPruned(this.frame[i])) return i;
    return -1;
  }
}
