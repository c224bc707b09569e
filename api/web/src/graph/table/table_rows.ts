// SPDX-License-Identifier: Apache-2.0
// The functions of a graph, or groups of them, as rows of a table.

import type { FunctionColumns } from "../tree/columns";
import { type Groups, NO_GROUP } from "../shown/groups";
import type { Model, Numbers } from "../tree/model";

export interface TableRow {
  group: number;
  self: number; // samples; in a comparison those of the side after
  total: number;
  selfBefore: number;
  totalBefore: number;
  changeSelf: number; // in a comparison: in shares of the whole or in CPUs
  changeTotal: number;
  z: number;
  isSignificant: boolean;
}

function sums({ frame, end }: Model, groups: Groups, self: Numbers, value: Numbers, node: number) {
  const own = new Float64Array(groups.size);
  const total = new Float64Array(groups.size);
  // Within a frame's subtree its group is not counted again: a stack counts once, however often it has the group.
  const countedUntil = new Uint32Array(groups.size);
  for (let i = node; i < end[node]; i++) {
    const group = groups.of[frame[i]];
    if (group === NO_GROUP) continue;
    own[group] += self[i];
    if (i >= countedUntil[group]) {
      total[group] += value[i];
      countedUntil[group] = end[i];
    }
  }
  return { own, total };
}

// The rows of what is in and below a node. `told` is the daemon's list of all functions, if it is of the same ones: it
// is more complete than the graph, which may be pruned, and has the significance of changes.
export function tableRows(model: Model, node: number, groups: Groups, told: FunctionColumns | null): TableRow[] {
  const { sides } = model;
  const rows: TableRow[] = [];
  if (sides === null) {
    const { own, total } = sums(model, groups, model.self, model.value, node);
    for (let group = 0; group < groups.size; group++) {
      if (total[group] === 0) continue;
      rows.push({ group, self: own[group], total: total[group], selfBefore: 0, totalBefore: 0, changeSelf: 0, changeTotal: 0, z: 0, isSignificant: false });
    }
    return rows;
  }
  const { scales } = sides;
  const row = (group: number, self: number, total: number, selfBefore: number, totalBefore: number, z: number, isSignificant: boolean) =>
    rows.push({
      group, self, total, selfBefore, totalBefore, z, isSignificant,
      changeSelf: self * scales.after - selfBefore * scales.before, changeTotal: total * scales.after - totalBefore * scales.before,
    });
  if (node === 0 && told !== null && !model.frames.hasFolded) {
    for (let i = 0; i < told.frame.length; i++) {
      const group = groups.of[told.frame[i]];
      if (group !== NO_GROUP) row(group, told.self[i], told.total[i], told.self_before[i], told.total_before[i], told.z[i], told.significant[i] === 1);
    }
    return rows;
  }
  const zs = new Float64Array(groups.size);
  const marks = new Uint8Array(groups.size);
  told?.frame.forEach((f, i) => {
    const group = groups.of[f];
    if (group === NO_GROUP) return;
    zs[group] = told.z[i];
    marks[group] = told.significant[i];
  });
  const after = sums(model, groups, sides.selfAfter, sides.after, node);
  const before = sums(model, groups, sides.selfBefore, sides.before, node);
  for (let group = 0; group < groups.size; group++) {
    if (after.total[group] + before.total[group] === 0) continue;
    row(group, after.own[group], after.total[group], before.own[group], before.total[group], zs[group], marks[group] === 1);
  }
  return rows;
}

export type SortKey = "name" | "self" | "total" | "change" | "change-total";

export function sortRows(groups: Groups, rows: TableRow[], key: SortKey, isDescending: boolean): TableRow[] {
  const ranks = groups.ranks();
  const sign = isDescending ? -1 : 1;
  const measure = (row: TableRow) => {
    if (key === "name") return sign * ranks[row.group];
    // Significant changes come first, however small.
    if (key === "change") return sign * (Math.abs(row.changeSelf) + (row.isSignificant ? 1e9 : 0));
    if (key === "change-total") return sign * Math.abs(row.changeTotal);
    return sign * row[key];
  };
  const measures = new Float64Array(groups.size);
  for (const row of rows) measures[row.group] = measure(row);
  return rows.sort((a, b) => measures[a.group] - measures[b.group] || ranks[a.group] - ranks[b.group]);
}
