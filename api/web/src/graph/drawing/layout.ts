// SPDX-License-Identifier: Apache-2.0
// The layout of a graph: the rows and rectangles of a view, and the node at a place. Pure; shared by the canvas, the
// SVG and the pointer. Only the visible part of each level is read, so the cost grows with the pixels, not with the
// nodes.

import type { Model } from "../tree/model";

export const ROW = 20;
// In pixels. Narrower frames are painted in runs of this width.
export const NARROW = 0.75;

// "up": the root at the bottom (a flame graph). "down": at the top (an icicle graph).
export type Direction = "up" | "down";

export interface View {
  model: Model;
  direction: Direction;
  zoomed: number; // this node has the whole width
  left: number; // the visible range, in units of model.value: the zoomed node's, except during a zoom
  right: number;
  levels: number; // of the zoomed node's subtree, including its callers
  width: number; // pixels
}

export function viewOf(model: Model, zoomed: number, direction: Direction, width: number): View {
  const left = model.start[zoomed];
  return { model, direction, zoomed, left, right: left + model.value[zoomed], levels: zoomed === 0 ? model.levels : model.deepest(zoomed) + 1, width };
}

export const heightOf = (view: View) => view.levels * ROW;

// A level's row, from the top of the graph.
export function topOf(view: View, level: number) {
  return (view.direction === "down" ? level : view.levels - 1 - level) * ROW;
}

export function levelAt(view: View, y: number) {
  const row = Math.floor(y / ROW);
  const level = view.direction === "down" ? row : view.levels - 1 - row;
  return level >= 0 && level < view.levels ? level : -1;
}

// The pixels of a node, clipped to the view; null if it is outside.
export function placeOf(view: View, node: number): { x: number; width: number } | null {
  const { model, left, right, width } = view;
  const factor = width / (right - left);
  const from = Math.max(0, (model.start[node] - left) * factor);
  const to = Math.min(width, (model.start[node] + model.value[node] - left) * factor);
  return to > from ? { x: from, width: to - from } : null;
}

export function nodeAt(view: View, x: number, y: number) {
  const level = levelAt(view, y);
  if (level === -1 || x < 0 || x >= view.width) return -1;
  return view.model.at(level, view.left + (x / view.width) * (view.right - view.left));
}

// Visits each rectangle of the levels [first, last]: one node, or a run of nodes too narrow to be distinguished. A run
// goes from `node`'s index in levelNodes up to (not including) `until`; for a single node that is the next index.
export type Emit = (node: number, level: number, x: number, width: number, from: number, until: number) => void;

export function rectangles(view: View, first: number, last: number, emit: Emit) {
  const { model, left, right, width } = view;
  const { start, value, data } = model;
  const { levelNodes, levelStart, levelSum } = data;
  const factor = width / (right - left);
  if (!Number.isFinite(factor)) return;
  for (let level = Math.max(0, first); level <= Math.min(last, view.levels - 1, model.levels - 1); level++) {
    const end = levelStart[level + 1];
    for (let i = model.firstAfter(level, left); i < end; ) {
      const node = levelNodes[i];
      const x = (start[node] - left) * factor;
      if (x >= width) break;
      const w = value[node] * factor;
      if (w >= NARROW) {
        const from = Math.max(0, x);
        emit(node, level, from, Math.min(width, x + w) - from, i, i + 1);
        i++;
        continue;
      }
      const until = Math.max(i + 1, model.firstAfter(level, left + (x + NARROW) / factor, i));
      // A node that reaches beyond the run may be wide.
      const sum = (until < end ? levelSum[until] : levelSum[end - 1] + value[levelNodes[end - 1]]) - levelSum[i];
      // A run that fills less than a third of its pixels would look larger than it is.
      if (sum * factor >= NARROW / 3) emit(node, level, x, NARROW, i, until);
      i = until;
    }
  }
}
