// SPDX-License-Identifier: Apache-2.0
// The heat map's drawing, and what the pointer or keys mark on it. Independent of the daemon.
import { type Chosen, HeatGrid, type Place, heat, isStretch } from "./heat_grid";

export interface HeatCanvasOptions {
  // Called with every move; null if it is cancelled.
  onMark: (marked: Chosen | null) => void;
  // The flame graph of it is requested.
  onChoose: (chosen: Chosen) => void;
  onHover: (place: { column: number; row: number } | null) => void;
}

const CLICK_PX = 3;

export class HeatCanvas {
  readonly #resizes: ResizeObserver;
  #grid: HeatGrid | null = null;
  // What the flame graph shows.
  #chosen: Chosen | null = null;
  #marked: Chosen | null = null;
  #marksTime = false; // a stretch of time; otherwise a rectangle
  // The keyboard's place, and the start of what it marks.
  #cursor: Place | null = null;
  #anchor: Place | null = null;
  #drag: { place: Place; x: number; y: number } | null = null;
  #painting = 0;

  constructor(private readonly canvas: HTMLCanvasElement, private readonly options: HeatCanvasOptions) {
    this.#resizes = new ResizeObserver(() => this.#paintSoon());
    this.#resizes.observe(canvas);
    canvas.addEventListener("pointerdown", (event) => this.#onDown(event));
    canvas.addEventListener("pointermove", (event) => this.#onMove(event));
    canvas.addEventListener("pointerup", (event) => this.#onUp(event));
    canvas.addEventListener("pointercancel", () => this.#giveUp());
    canvas.addEventListener("pointerleave", () => options.onHover(null));
    canvas.addEventListener("keydown", (event) => this.#onKey(event));
    canvas.addEventListener("focus", () => this.#paintSoon());
    canvas.addEventListener("blur", () => this.#paintSoon());
  }

  destroy() {
    this.#resizes.disconnect();
    cancelAnimationFrame(this.#painting);
  }

  show(grid: HeatGrid, chosen: Chosen | null, marksTime: boolean) {
    this.#grid = grid;
    this.#chosen = chosen;
    this.#marksTime = marksTime;
    if (this.#cursor !== null) this.#cursor = this.#within(this.#cursor);
    this.#paintSoon();
  }

  restyle() {
    this.#paintSoon();
  }

  #within({ column, row }: Place): Place {
    const grid = this.#grid!;
    return { column: Math.min(Math.max(column, 0), grid.columns - 1), row: Math.min(Math.max(row, 0), grid.rows - 1) };
  }

  #placeAt(event: PointerEvent): Place | null {
    if (this.#grid === null || this.#grid.columns === 0) return null;
    const box = this.canvas.getBoundingClientRect();
    return this.#within({
      column: Math.floor(((event.clientX - box.left) / box.width) * this.#grid.columns),
      // Up means later in the second.
      row: Math.floor(((box.bottom - event.clientY) / box.height) * this.#grid.rows),
    });
  }

  #mark(a: Place, b: Place) {
    this.#marked = this.#marksTime ? this.#grid!.stretch(a, b) : this.#grid!.between(a.column, a.row, b.column, b.row);
    this.options.onMark(this.#marked);
    this.#paintSoon();
  }

  #giveUp() {
    this.#drag = null;
    this.#anchor = null;
    this.#marked = null;
    this.options.onMark(null);
    this.#paintSoon();
  }

  #choose() {
    const marked = this.#marked;
    this.#drag = null;
    this.#anchor = null;
    this.#marked = null;
    if (marked === null) return;
    this.#chosen = marked;
    this.#paintSoon();
    this.options.onMark(null);
    this.options.onChoose(marked);
  }

  #onDown(event: PointerEvent) {
    const place = this.#placeAt(event);
    if (event.button !== 0 || place === null) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.#drag = { place, x: event.clientX, y: event.clientY };
  }

  #onMove(event: PointerEvent) {
    const place = this.#placeAt(event);
    this.options.onHover(place);
    if (this.#drag === null || place === null) return;
    if (this.#marked === null && Math.hypot(event.clientX - this.#drag.x, event.clientY - this.#drag.y) < CLICK_PX) return;
    this.#mark(this.#drag.place, place);
  }

  #onUp(event: PointerEvent) {
    if (this.#drag === null) return;
    this.#onMove(event);
    if (this.#marked === null) this.#giveUp();
    else this.#choose();
  }

  #onKey(event: KeyboardEvent) {
    const grid = this.#grid;
    if (grid === null || grid.columns === 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    const hottest = grid.hottest();
    const at = this.#cursor ?? { column: hottest.column, row: hottest.row };
    const large = { column: Math.max(1, Math.round(grid.columns / 20)), row: Math.max(1, Math.round(grid.rows / 10)) };
    const moves: Record<string, Place> = {
      ArrowLeft: { column: at.column - 1, row: at.row },
      ArrowRight: { column: at.column + 1, row: at.row },
      ArrowUp: { column: at.column, row: at.row + 1 },
      ArrowDown: { column: at.column, row: at.row - 1 },
      Home: { column: 0, row: at.row },
      End: { column: grid.columns - 1, row: at.row },
      PageUp: { column: at.column + large.column, row: at.row },
      PageDown: { column: at.column - large.column, row: at.row },
    };
    const next = moves[event.key];
    if (next !== undefined) {
      this.#cursor = this.#cursor === null && !event.shiftKey ? at : this.#within(next);
      if (event.shiftKey) this.#mark((this.#anchor ??= at), this.#cursor);
      else if (this.#marked !== null) this.#giveUp();
      this.options.onHover(this.#cursor);
      this.#paintSoon();
    } else if (event.key === "Enter" || event.key === " ") {
      if (this.#marked === null) this.#mark(at, at);
      this.#choose();
    } else if (event.key === "Escape" && this.#marked !== null) {
      this.#giveUp();
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  #paintSoon() {
    cancelAnimationFrame(this.#painting);
    this.#painting = requestAnimationFrame(() => this.#paint());
  }

  #paint() {
    const { canvas } = this;
    const grid = this.#grid;
    const density = devicePixelRatio || 1;
    const width = Math.max(1, Math.round(canvas.clientWidth * density));
    const height = Math.max(1, Math.round(canvas.clientHeight * density));
    if (canvas.width !== width) canvas.width = width;
    if (canvas.height !== height) canvas.height = height;
    const context = canvas.getContext("2d")!;
    context.clearRect(0, 0, width, height);
    if (grid === null || grid.columns === 0) return;
    const style = getComputedStyle(canvas);
    const colour = (name: string) => style.getPropertyValue(name).trim();
    const ramp = Array.from({ length: 5 }, (_, index) => colour(`--heat-${index + 1}`));
    const x = (column: number) => Math.round((column * width) / grid.columns);
    const y = (row: number) => Math.round(height - (row * height) / grid.rows);
    // Colour by colour, since setting one costs more than a rectangle.
    const cells: number[][] = ramp.map(() => []);
    for (let i = 0; i < grid.counts.length; i++) {
      if (grid.counts[i] === 0) continue;
      cells[Math.min(ramp.length - 1, Math.floor(heat(grid.counts[i], grid.cap) * ramp.length))].push(i);
    }
    cells.forEach((places, index) => {
      context.fillStyle = ramp[index];
      for (const place of places) {
        const column = Math.floor(place / grid.rows);
        const row = place % grid.rows;
        context.fillRect(x(column), y(row + 1), Math.max(1, x(column + 1) - x(column)), Math.max(1, y(row) - y(row + 1)));
      }
    });
    const outline = (chosen: Chosen): [number, number][] => {
      const [first, last] = isStretch(chosen)
        ? [chosen.first, chosen.last]
        : [{ column: chosen.firstColumn, row: chosen.firstRow }, { column: chosen.lastColumn, row: chosen.lastRow }];
      const [left, right, low, high] = [x(first.column), x(last.column + 1), y(first.row), y(last.row + 1)];
      if (!isStretch(chosen) || first.column === last.column) return [[left, low], [left, high], [right, high], [right, low]];
      // The first column from its row up, the last one up to its row, and those between them.
      return [[left, low], [left, 0], [x(last.column), 0], [x(last.column), high], [right, high], [right, height], [x(first.column + 1), height], [x(first.column + 1), low]];
    };
    const frame = (chosen: Chosen, line: string, dash: number[]) => {
      context.beginPath();
      for (const [left, top] of outline(chosen)) context.lineTo(left, top);
      context.closePath();
      context.setLineDash([]);
      context.lineWidth = 4 * density;
      context.strokeStyle = colour("--panel");
      context.stroke();
      context.setLineDash(dash.map((length) => length * density));
      context.lineWidth = 2 * density;
      context.strokeStyle = line;
      context.stroke();
    };
    if (this.#chosen !== null && this.#marked === null) frame(this.#chosen, colour("--accent"), []);
    if (this.#marked !== null) frame(this.#marked, colour("--accent"), [5, 3]);
    if (this.#cursor !== null && document.activeElement === canvas) {
      const { column, row } = this.#cursor;
      frame({ firstColumn: column, lastColumn: column, firstRow: row, lastRow: row }, colour("--ink"), []);
    }
  }
}
