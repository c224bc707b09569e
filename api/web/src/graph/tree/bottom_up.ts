// SPDX-License-Identifier: Apache-2.0
// The tree from its leaves: at its first level the functions that ran, below each those that called it, and so on to the
// outermost; siblings with the most samples come first. A node's value is the own time of its function at the first
// level, as far as it was called in this way.
//
// Such a tree has many times the nodes of the graph, and most of them are too narrow to be seen. So branches are opened
// only if they can be seen, and more of them when they are zoomed to.

import { Model, type NodeColumns } from "./model";

// Branches of less than this part of the visible width stay closed: they are narrower than a pixel.
const LEAST = 1 / 3000;
// Without a place, branches are opened for zooms to nodes of at least this part of the tree.
export const WIDE = 1 / 2;

// Members of a node [from, to) that have the same next caller.
interface Branch {
  from: number;
  to: number;
  value: number;
  level: number;
  isOnWay: boolean; // to the place
  least: number; // branches of a smaller value stay closed
}

// Of the stacks in and below `node`. `place`: names from below the root down to the zoomed node.
export function bottomUp(model: Model, node: number, place: readonly string[] = []): Model {
  const { parent, sides, frames, frame: frameOf, self: samples } = model;
  // Each member is a node with samples of its own, and where its stack has been followed to.
  const leaf = new Uint32Array(model.end[node] - node);
  let size = 0;
  for (let i = Math.max(1, node); i < model.end[node]; i++) if (samples[i] > 0) leaf[size++] = i;
  const caller = leaf.slice();
  const sortedLeaf = new Uint32Array(size);
  const sortedCaller = new Uint32Array(size);
  const counts = new Uint32Array(frames.size); // by frame; all 0 between uses
  const values = new Float64Array(frames.size);

  const frame: number[] = [];
  const depth: number[] = [];
  const self: number[] = [];
  const selfBefore: number[] = [];
  const addTo = (at: number, of: number) => {
    if (sides === null) {
      self[at] += samples[of];
    } else {
      self[at] += sides.selfAfter[of];
      selfBefore[at] += sides.selfBefore[of];
    }
  };
  const add = (f: number, level: number) => {
    depth.push(level);
    self.push(0);
    if (sides !== null) selfBefore.push(0);
    return frame.push(f) - 1;
  };

  const waiting: Branch[] = []; // the next one last
  const isNext = (isOnWay: boolean, level: number, f: number) => isOnWay && level <= place.length && frames.name(f) === place[level - 1];
  // Divides members by their callers' frames.
  const divide = (from: number, to: number, level: number, isOnWay: boolean, least: number) => {
    const found: number[] = [];
    for (let i = from; i < to; i++) {
      const f = frameOf[caller[i]];
      if (counts[f]++ === 0) found.push(f);
      values[f] += samples[leaf[i]];
    }
    if (found.length > 1) {
      found.sort((a, b) => values[b] - values[a] || a - b);
      let begin = from;
      for (const f of found) {
        const count = counts[f];
        counts[f] = begin;
        begin += count;
      }
      for (let i = from; i < to; i++) {
        const at = counts[frameOf[caller[i]]]++;
        sortedLeaf[at] = leaf[i];
        sortedCaller[at] = caller[i];
      }
      leaf.set(sortedLeaf.subarray(from, to), from);
      caller.set(sortedCaller.subarray(from, to), from);
    } else {
      counts[found[0]] = to;
    }
    for (let k = found.length - 1; k >= 0; k--) {
      const f = found[k];
      waiting.push({
        from: k === 0 ? from : counts[found[k - 1]], to: counts[f], value: values[f], level,
        isOnWay: isNext(isOnWay, level, f), least,
      });
    }
    for (const f of found) {
      counts[f] = 0;
      values[f] = 0;
    }
  };

  add(frameOf[0], 0);
  if (node === 0) addTo(0, 0);
  if (size > 0) divide(0, size, 1, true, model.value[node] * WIDE * LEAST);
  for (let branch = waiting.pop(); branch !== undefined; branch = waiting.pop()) {
    let { from, to, value, level, isOnWay, least } = branch;
    let at = add(frameOf[caller[from]], level);
    // Most branches have one member: they are followed here.
    for (;;) {
      if (isOnWay && level === place.length) least = Math.min(least, value * LEAST);
      const next = parent[caller[from]];
      if (to - from > 1 || next === 0 || (value < least && !isOnWay)) break;
      caller[from] = next;
      isOnWay = isNext(isOnWay, ++level, frameOf[next]);
      at = add(frameOf[next], level);
    }
    const isOpen = value >= least || isOnWay;
    let last = from;
    for (let i = from; i < to; i++) {
      const next = isOpen ? parent[caller[i]] : 0;
      // The root is the whole, and no caller.
      if (next === 0) {
        addTo(at, leaf[i]);
      } else {
        leaf[last] = leaf[i];
        caller[last++] = next;
      }
    }
    if (last > from) divide(from, last, level + 1, isOnWay, least);
  }
  const nodes: NodeColumns = { frame: Uint32Array.from(frame), depth: Uint32Array.from(depth), self: Float64Array.from(self) };
  if (sides !== null) nodes.selfBefore = Float64Array.from(selfBefore);
  return Model.of(frames, nodes, sides?.scales ?? null, { isInverted: true });
}
