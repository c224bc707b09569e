// SPDX-License-Identifier: Apache-2.0
// A flame graph as flat arrays: nodes in depth-first order, parents before children. Drawing and searching hundreds of
// thousands of nodes is then a loop, no stack is too deep for it, and what is seen of a level is found by halving.

import type { Frames } from "./frames";

export type Numbers = Uint32Array | Float64Array;

// What makes a tree: of each node its frame, its depth (the root's is 0, and only the root's), and its own samples.
export interface NodeColumns {
  frame: Uint32Array;
  depth: Uint32Array;
  self: Numbers;
  // Of a comparison also those of the side before; `self` are then those of the side after.
  selfBefore?: Numbers;
  // 1 where the change of a node's own samples is more than chance.
  significant?: Uint8Array;
}

// How much of the whole, or of a CPU, one sample of each side of a comparison stands for.
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

// All that a model is made of but its frames: can be handed from thread to thread.
export interface ModelData {
  frame: Uint32Array;
  depth: Uint32Array;
  parent: Uint32Array; // the root is its own
  end: Uint32Array; // the nodes of a subtree are [i, end[i])
  self: Numbers;
  value: Numbers; // total: what the width of a node says
  start: Numbers; // where it begins, in units of value. What a frame does itself is at its right end.
  levelNodes: Uint32Array; // by level, from left to right; those of level l are [levelStart[l], levelStart[l + 1])
  levelStart: Uint32Array;
  levelSum: Numbers; // of the values of those before each in levelNodes
  sides: Sides | null;
}

const LARGEST = 2 ** 32 - 1;

function numbers(size: number, largest: number, areWhole: boolean): Numbers {
  return areWhole && largest <= LARGEST ? new Uint32Array(size) : new Float64Array(size);
}

// What each node and all below it have together.
function totals(self: Numbers, parent: Uint32Array) {
  let all = 0;
  for (let i = 0; i < self.length; i++) all += self[i];
  const total = numbers(self.length, all, true);
  total.set(self);
  for (let i = self.length - 1; i > 0; i--) total[parent[i]] += total[i];
  return total;
}

// Both sides make the width, each by its weight: what there was before is seen also where it is gone. With the larger of
// the two, callees could be wider than their caller.
function weighed(after: Numbers, before: Numbers, scales: Scales) {
  const sum = new Float64Array(after.length);
  for (let i = 0; i < sum.length; i++) sum[i] = after[i] * scales.after + before[i] * scales.before;
  return sum;
}

// Throws where a node hangs below none. Each column that a million nodes have takes 2 ms to be there at all, and each way
// through it as long again: there are two, one to count and one in which all else is found.
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
  // By level: the node that is open there, what is known of its value, where it or the next one begins, the values of
  // those that are complete, and how many were begun.
  const open = new Uint32Array(levels);
  const values = new Float64Array(levels);
  const begins = new Float64Array(levels + 1);
  const sums = new Float64Array(levels);
  const filled = levelStart.slice();
  for (let i = 0, deepest = -1; i <= size; i++) {
    const level = i < size ? depth[i] : 0;
    // What this one does not stand below is complete.
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

  constructor(
    readonly frames: Frames,
    readonly data: ModelData,
  ) {
    ({ frame: this.frame, depth: this.depth, parent: this.parent, end: this.end, self: this.self, value: this.value, start: this.start, sides: this.sides } = data);
    this.size = data.frame.length;
    this.levels = data.levelStart.length - 1;
    this.total = data.value[0];
  }

  static of(frames: Frames, nodes: NodeColumns, scales: Scales | null = null) {
    return new Model(frames, modelData(nodes, scales));
  }

  // What it was made of.
  columns(): NodeColumns {
    const { frame, depth, self, sides } = this;
    return sides === null ? { frame, depth, self } : { frame, depth, self: sides.selfAfter, selfBefore: sides.selfBefore, significant: sides.significant };
  }

  name(node: number) {
    return this.frames.name(this.frame[node]);
  }

  // Of a comparison: by how much the total of a node has changed, in shares of the whole or in CPUs.
  change(node: number) {
    const { sides } = this;
    return sides === null ? 0 : sides.after[node] * sides.scales.after - sides.before[node] * sides.scales.before;
  }

  // The index in levelNodes of the first node of a level that ends after `position`; the level's end where none does.
  firstAfter(level: number, position: number, from = this.data.levelStart[level]) {
    const { levelNodes, levelStart } = this.data;
    let low = from;
    let high = levelStart[level + 1];
    // Most often it is near: steps that double until they are past it.
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

  // The names on the way from below the root to a node: the same in every answer, so that an address can name a place.
  names(node: number) {
    return this.path(node).slice(1).map((step) => this.name(step));
  }

  // As far along these names as the tree goes. Of siblings of one name the largest.
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

  // The node that is the same place as `node` of another tree, or -1.
  counterpart(other: Model, node: number): number {
    const names = other.names(node);
    const place = this.find(names);
    return place.found === names.length ? place.node : -1;
  }

  // The child of a node that stands for what the daemon left out there, or -1.
  prunedBelow(node: number) {
    for (let i = node + 1; i < this.end[node]; i = this.end[i]) if (this.frames.isPruned(this.frame[i])) return i;
    return -1;
  }
}
