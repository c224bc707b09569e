// SPDX-License-Identifier: Apache-2.0
// The arithmetic of a heat map: seconds across, parts of the second up. Pure.
import type { Heatmap } from "../answers";
import type { Span } from "./span";

const SECOND = 1000;

// Columns first, first + 1, ..., last, and rows likewise.
export interface Rectangle {
  firstColumn: number;
  lastColumn: number;
  firstRow: number;
  lastRow: number;
}

export interface Place {
  column: number;
  row: number;
}

// All cells from one to a later one.
export interface Stretch {
  first: Place;
  last: Place;
}

// What can be chosen in the map: the same part of some seconds, or a time without gaps.
export type Chosen = Rectangle | Stretch;

export const isStretch = (chosen: Chosen): chosen is Stretch => "first" in chosen;

// A choice: whole seconds, and the part [offsetFrom, offsetTo) of each in milliseconds.
export interface Selected extends Span {
  offsetFrom: number;
  offsetTo: number;
}

export class HeatGrid {
  readonly columns: number;
  readonly rows: number;
  readonly startMs: number;
  // Seconds in one column: more than one if there is no room for a column each.
  readonly secondsPerColumn: number;
  // Column c, row r is at c * rows + r.
  readonly counts: Uint32Array;
  readonly #bySecond: readonly number[];
  // A hundredth of the cells that are not empty have more samples.
  readonly cap: number;

  constructor(answer: Pick<Heatmap, "columns" | "rows" | "start_ms" | "counts">, mostColumns: number) {
    this.secondsPerColumn = Math.max(1, Math.ceil(answer.columns / Math.max(1, mostColumns)));
    this.columns = Math.ceil(answer.columns / this.secondsPerColumn);
    this.rows = answer.rows;
    this.startMs = answer.start_ms;
    this.#bySecond = answer.counts;
    this.counts = new Uint32Array(this.columns * this.rows);
    for (let second = 0; second < answer.columns; second++) {
      const column = Math.floor(second / this.secondsPerColumn);
      for (let row = 0; row < this.rows; row++) this.counts[column * this.rows + row] += answer.counts[second * this.rows + row];
    }
    const sorted = this.counts.filter((count) => count > 0).sort();
    this.cap = sorted[Math.ceil(0.99 * sorted.length) - 1] ?? 0;
  }

  count(column: number, row: number) {
    return this.counts[column * this.rows + row] ?? 0;
  }

  sum(chosen: Chosen) {
    let sum = 0;
    if (isStretch(chosen)) {
      const { from, to } = this.selected(chosen);
      const at = (ms: number) => Math.round(((ms - this.startMs) * this.rows) / SECOND);
      for (let i = at(from); i < at(to); i++) sum += this.#bySecond[i] ?? 0;
      return sum;
    }
    const { firstColumn, lastColumn, firstRow, lastRow } = chosen;
    for (let column = firstColumn; column <= lastColumn; column++) {
      for (let row = firstRow; row <= lastRow; row++) sum += this.count(column, row);
    }
    return sum;
  }

  #index({ column, row }: Place) {
    return column * this.rows + row;
  }

  // From the earlier of two cells to the later one.
  stretch(a: Place, b: Place): Stretch {
    return this.#index(a) <= this.#index(b) ? { first: a, last: b } : { first: b, last: a };
  }

  between(columnA: number, rowA: number, columnB: number, rowB: number): Rectangle {
    const column = (value: number) => Math.min(Math.max(value, 0), this.columns - 1);
    const row = (value: number) => Math.min(Math.max(value, 0), this.rows - 1);
    return {
      firstColumn: column(Math.min(columnA, columnB)), lastColumn: column(Math.max(columnA, columnB)),
      firstRow: row(Math.min(rowA, rowB)), lastRow: row(Math.max(rowA, rowB)),
    };
  }

  selected(chosen: Chosen): Selected {
    const column = this.secondsPerColumn * SECOND;
    const row = SECOND / this.rows;
    if (isStretch(chosen)) {
      const { first, last } = chosen;
      // Of a column of several seconds: from the first one's part to the last one's.
      const to = this.startMs + (last.column + 1) * column - SECOND + (last.row + 1) * row;
      return { from: this.startMs + first.column * column + first.row * row, to, offsetFrom: 0, offsetTo: SECOND };
    }
    const { firstColumn, lastColumn, firstRow, lastRow } = chosen;
    return {
      from: this.startMs + firstColumn * column,
      to: this.startMs + (lastColumn + 1) * column,
      offsetFrom: firstRow * row,
      offsetTo: (lastRow + 1) * row,
    };
  }

  // The smallest choice that covers it all; null if it is not on the map.
  chosen({ from, to, offsetFrom, offsetTo }: Selected): Chosen | null {
    const column = this.secondsPerColumn * SECOND;
    const row = SECOND / this.rows;
    const isWhole = offsetFrom === 0 && offsetTo === SECOND;
    if (isWhole && ((from - this.startMs) % SECOND !== 0 || (to - this.startMs) % SECOND !== 0)) {
      const at = (ms: number): Place => ({ column: Math.floor(ms / column), row: Math.floor(((ms % SECOND) + SECOND) % SECOND / row) });
      const [first, last] = [at(from - this.startMs), at(to - this.startMs - 1)];
      return last.column < 0 || first.column >= this.columns ? null : { first: this.within(first), last: this.within(last) };
    }
    const firstColumn = Math.floor((from - this.startMs) / column);
    const lastColumn = Math.ceil((to - this.startMs) / column) - 1;
    if (lastColumn < 0 || firstColumn >= this.columns || lastColumn < firstColumn) return null;
    return this.between(firstColumn, Math.round(offsetFrom / row), lastColumn, Math.round(offsetTo / row) - 1);
  }

  // A window may be longer than the map.
  within(place: Place): Place {
    if (place.column < 0) return { column: 0, row: 0 };
    if (place.column >= this.columns) return { column: this.columns - 1, row: this.rows - 1 };
    return { column: place.column, row: Math.min(Math.max(place.row, 0), this.rows - 1) };
  }

  // The hottest lasting place: the columns and rows with the most samples, for a description in words.
  hottest() {
    let place = 0;
    for (let i = 1; i < this.counts.length; i++) if (this.counts[i] > this.counts[place]) place = i;
    return { column: Math.floor(place / this.rows), row: place % this.rows, count: this.counts[place] ?? 0 };
  }

  // Samples of each part of the second, over all columns.
  byRow() {
    const sums = new Array<number>(this.rows).fill(0);
    for (let i = 0; i < this.counts.length; i++) sums[i % this.rows] += this.counts[i];
    return sums;
  }
}

// The strength of a cell's colour, from 0 to 1: a few samples are visible beside none, and beside many. The scale ends at
// `cap`, so that a single burst does not make all else pale.
export const heat = (count: number, cap: number) => (count === 0 || cap === 0 ? 0 : 0.12 + 0.88 * Math.sqrt(Math.min(1, count / cap)));

// Which part of each second, in words.
export function offsets(offsetFrom: number, offsetTo: number) {
  const ms = (value: number) => String(Number(value.toFixed(1)));
  return `${ms(offsetFrom)} to ${ms(offsetTo)} ms`;
}
