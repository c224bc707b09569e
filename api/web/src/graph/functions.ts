// SPDX-License-Identifier: Apache-2.0
// The functions of a graph as rows of a table.

import type { FunctionColumns } from "./columns";
import type { Model, Numbers } from "./model";

export interface FunctionRow {
  frame: number;
  self: number; // samples; in a comparison those of the side after
  total: number;
  selfBefore: number;
  totalBefore: number;
  changeSelf: number; // in a comparison: in shares of the whole or in CPUs
  changeTotal: number;
  z: number;
  isSignificant: boolean;
}

function sums(model: Model, self: Numbers, value: Numbers, node: number) {
  const { frame, end } = model;
  const own = new Float64Array(model.frames.size);
  const total = new Float64Array(model.frames.size);
  // Within a frame's subtree the function is not counted again: a stack counts once, however often it has the function.
  const countedUntil = new Uint32Array(model.frames.size);
  for (let i = node; i < end[node]; i++) {
    const f = frame[i];
    own[f] += self[i];
    if (i >= countedUntil[f]) {
      total[f] += value[i];
      countedUntil[f] = end[i];
    }
  }
  return { own, total };
}

// The functions in and below a node. `told` is the daemon's list of all functions: it is more complete than the graph,
// which may be pruned, and has the significance of changes.
export function functionRows(model: Model, node: number, told: FunctionColumns | null): FunctionRow[] {
  const { frames, sides } = model;
  const rows: FunctionRow[] = [];
  if (sides === null) {
    const { own, total } = sums(model, model.self, model.value, node);
    for (let f = 0; f < frames.size; f++) {
      if (total[f] === 0 || !frames.isCode(f)) continue;
      rows.push({ frame: f, self: own[f], total: total[f], selfBefore: 0, totalBefore: 0, changeSelf: 0, changeTotal: 0, z: 0, isSignificant: false });
    }
    return rows;
  }
  const { scales } = sides;
  const row = (frame: number, self: number, total: number, selfBefore: number, totalBefore: number, z: number, isSignificant: boolean) =>
    rows.push({
      frame, self, total, selfBefore, totalBefore, z, isSignificant,
      changeSelf: self * scales.after - selfBefore * scales.before, changeTotal: total * scales.after - totalBefore * scales.before,
    });
  if (node === 0 && told !== null) {
    for (let i = 0; i < told.frame.length; i++) {
      row(told.frame[i], told.self[i], told.total[i], told.self_before[i], told.total_before[i], told.z[i], told.significant[i] === 1);
    }
    return rows;
  }
  const zs = new Float64Array(frames.size);
  const marks = new Uint8Array(frames.size);
  told?.frame.forEach((f, i) => {
    zs[f] = told.z[i];
    marks[f] = told.significant[i];
  });
  const after = sums(model, sides.selfAfter, sides.after, node);
  const before = sums(model, sides.selfBefore, sides.before, node);
  for (let f = 0; f < frames.size; f++) {
    if (after.total[f] + before.total[f] === 0 || !frames.isCode(f)) continue;
    row(f, after.own[f], after.total[f], before.own[f], before.total[f], zs[f], marks[f] === 1);
  }
  return rows;
}

export type SortKey = "name" | "self" | "total" | "change" | "change-total";

export function sortRows(model: Model, rows: FunctionRow[], key: SortKey, isDescending: boolean): FunctionRow[] {
  const ranks = model.frames.ranks();
  const sign = isDescending ? -1 : 1;
  const measure = (row: FunctionRow) => {
    if (key === "name") return sign * ranks[row.frame];
    // Significant changes come first, however small.
    if (key === "change") return sign * (Math.abs(row.changeSelf) + (row.isSignificant ? 1e9 : 0));
    if (key === "change-total") return sign * Math.abs(row.changeTotal);
    return sign * row[key];
  };
  const measures = new Float64Array(model.frames.size);
  for (const row of rows) measures[row.frame] = measure(row);
  return rows.sort((a, b) => measures[a.frame] - measures[b.frame] || ranks[a.frame] - ranks[b.frame]);
}
