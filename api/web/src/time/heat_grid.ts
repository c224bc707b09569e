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

// A rectangle of the map: whole seconds, and the part [offsetFrom, offsetTo) of each in milliseconds.
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
  readonly most: number;

  constructor(answer: Pick<Heatmap, "columns" | "rows" | "start_ms" | "counts">, mostColumns: number) {
    this.secondsPerColumn = Math.max(1, Math.ceil(answer.columns / Math.max(1, mostColumns)));
    this.columns = Math.ceil(answer.columns / this.secondsPerColumn);
    this.rows = answer.rows;
    this.startMs = answer.start_ms;
    this.counts = new Uint32Array(this.columns * this.rows);
    let most = 0;
    for (let second = 0; second < answer.columns; second++) {
      const column = Math.floor(second / this.secondsPerColumn);
      for (let row = 0; row < this.rows; row++) {
        const sum = (this.counts[column * this.rows + row] += answer.counts[second * this.rows + row]);
        if (sum > most) most = sum;
      }
    }
    this.most = most;
  }

  count(column: number, row: number) {
    return this.counts[column * this.rows + row] ?? 0;
  }

  sum({ firstColumn, lastColumn, firstRow, lastRow }: Rectangle) {
    let sum = 0;
    for (let column = firstColumn; column <= lastColumn; column++) {
      for (let row = firstRow; row <= lastRow; row++) sum += this.count(column, row);
    }
    return sum;
  }

  between(columnA: number, rowA: number, columnB: number, rowB: number): Rectangle {
    const column = (value: number) => Math.min(Math.max(value, 0), this.columns - 1);
    const row = (value: number) => Math.min(Math.max(value, 0), this.rows - 1);
    return {
      firstColumn: column(Math.min(columnA, columnB)), lastColumn: column(Math.max(columnA, columnB)),
      firstRow: row(Math.min(rowA, rowB)), lastRow: row(Math.max(rowA, rowB)),
    };
  }

  selected({ firstColumn, lastColumn, firstRow, lastRow }: Rectangle): Selected {
    const column = this.secondsPerColumn * SECOND;
    const row = SECOND / this.rows;
    return {
      from: this.startMs + firstColumn * column,
      to: this.startMs + (lastColumn + 1) * column,
      offsetFrom: firstRow * row,
      offsetTo: (lastRow + 1) * row,
    };
  }

  // The smallest rectangle that covers it all; null if it is not on the map.
  rectangle({ from, to, offsetFrom, offsetTo }: Selected): Rectangle | null {
    const column = this.secondsPerColumn * SECOND;
    const row = SECOND / this.rows;
    const firstColumn = Math.floor((from - this.startMs) / column);
    const lastColumn = Math.ceil((to - this.startMs) / column) - 1;
    if (lastColumn < 0 || firstColumn >= this.columns || lastColumn < firstColumn) return null;
    return this.between(firstColumn, Math.round(offsetFrom / row), lastColumn, Math.round(offsetTo / row) - 1);
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

// The strength of a cell's colour, from 0 to 1: a few samples are visible beside none, and beside many.
export const heat = (count: number, most: number) => (count === 0 || most === 0 ? 0 : 0.12 + 0.88 * Math.sqrt(count / most));

// Which part of each second, in words.
export function offsets(offsetFrom: number, offsetTo: number) {
  const ms = (value: number) => String(Number(value.toFixed(1)));
  return `${ms(offsetFrom)} to ${ms(offsetTo)} ms`;
}
