// SPDX-License-Identifier: Apache-2.0
// The timeline's drawing: stacked layers of CPU use (uPlot), hatching for unknown time, and two brushes over it, one
// for the window and one for the baseline. Independent of the daemon.
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

import { Brush } from "./brush";
import { type History, busyCpus, stacked } from "./history";
import { type Limits, type Span, between, length, zoomed } from "./span";
import { moment, stepFor, ticks } from "./ticks";

export interface Layer {
  name: string;
  // A custom property of the style sheet: "--user".
  colour: string;
  cpuMs: readonly number[];
}

export interface ChartOptions {
  onWindow: (span: Span) => void;
  onBaseline: (span: Span) => void;
  // null: all of the history.
  onView: (view: Span | null) => void;
  onHover: (ms: number | null) => void;
}

const TICK_PX = 84;
const SIDE_PX = 38;
const CLICK_PX = 4;
const SHORTEST_VIEW_MS = 10_000;

// The shown part of a history without a zoom.
export const viewOf = ({ from, to }: Span): Span => ({ from, to: Math.max(to, from + SHORTEST_VIEW_MS) });

export class Chart {
  // Whether the next drawn span is the baseline. With Shift it always is.
  isPinning = false;

  readonly #window: Brush;
  readonly #baseline: Brush;
  readonly #resizes: ResizeObserver;
  #plot: uPlot;
  #shape = "";
  #history: History | null = null;
  #background: History | null = null;
  #retained: Span | null = null;
  #layers: readonly Layer[] = [];
  #view: Span = { from: 0, to: 1 };
  #most = 0; // busy CPUs of the layers in it
  #drag: { from: number; x: number; brush: Brush; before: Span | null } | null = null;

  constructor(private readonly box: HTMLElement, private readonly options: ChartOptions) {
    this.#plot = this.#make([]);
    const brush = (className: string, name: string, tell: (span: Span) => void) =>
      new Brush(this.#plot.over, {
        className,
        name,
        describe: moment,
        timeAt: (x) => this.#timeAt(x),
        onChange: (span, isFinal) => {
          if (isFinal) tell(span);
        },
      });
    this.#baseline = brush("baseline", "the baseline", options.onBaseline);
    this.#window = brush("window", "the window", options.onWindow);
    this.#resizes = new ResizeObserver(() => this.#resize());
    this.#resizes.observe(box);
    this.#listen(this.#plot.over);
  }

  destroy() {
    this.#resizes.disconnect();
    this.#plot.destroy();
  }

  // `background` is drawn behind the layers: the whole machine, if the layers are a part of it. `view` is the shown
  // part of the history, null for all; `retained` is the whole history, null if it is not known.
  show(history: History, layers: readonly Layer[], background: History | null, view: Span | null, retained: Span | null) {
    this.#history = history;
    this.#retained = retained;
    this.#layers = layers;
    this.#background = background;
    this.#view = view ?? viewOf(history);
    this.#draw();
  }

  setWindow(span: Span | null) {
    if (!this.#isHeld(this.#window)) this.#window.set(span);
  }

  setBaseline(span: Span | null) {
    if (!this.#isHeld(this.#baseline)) this.#baseline.set(span);
  }

  // Call it after colours have changed.
  restyle() {
    this.#shape = "";
    this.#draw();
  }

  zoom(factor: number, around: number | null = null) {
    if (this.#history === null) return;
    if (this.#retained === null && factor > 1) return this.options.onView(null);
    const limits = { ...(this.#retained ?? this.#view), step: 1 };
    const window = this.#window.span;
    const middle = around ?? (window === null ? (this.#view.from + this.#view.to) / 2 : (window.from + window.to) / 2);
    const view = zoomed(this.#view, middle, factor, limits, SHORTEST_VIEW_MS);
    this.options.onView(this.#retained !== null && length(view) >= length(this.#retained) ? null : view);
  }

  #isHeld(brush: Brush) {
    return brush.isHeld || this.#drag?.brush === brush;
  }

  #limits(): Limits {
    const step = stepFor(this.#view.from, this.#view.to, Math.max(200, this.box.clientWidth));
    return { ...(this.#retained ?? this.#view), step };
  }

  #timeAt(clientX: number) {
    const { left, width } = this.#plot.over.getBoundingClientRect();
    return this.#view.from + ((clientX - left) / Math.max(1, width)) * length(this.#view);
  }

  #colour(name: string) {
    return getComputedStyle(this.box).getPropertyValue(name).trim() || "#888";
  }

  // uPlot's series are fixed after construction.
  #make(layers: readonly Layer[]): uPlot {
    const stepped = uPlot.paths.stepped!({ align: 1 });
    const area = (colour: string, width: number): uPlot.Series => ({
      fill: () => this.#colour(colour), stroke: () => this.#colour(colour), width, paths: stepped, points: { show: false }, spanGaps: false,
    });
    // A whole number: uPlot multiplies it by the screen's density, and misreads fractions.
    const font = () => `12px ${getComputedStyle(this.box).fontFamily}`;
    const options: uPlot.Options = {
      width: Math.max(100, this.box.clientWidth),
      height: Math.max(60, this.box.clientHeight),
      legend: { show: false },
      cursor: { drag: { x: false, y: false, setScale: false }, y: false, points: { show: false } },
      padding: [14, 10, 0, 0],
      scales: {
        x: { time: false, range: () => [this.#view.from / 1000, this.#view.to / 1000] },
        // Scaled to the selection. The whole machine behind it may exceed the scale.
        y: { range: () => [0, Math.max(0.1, this.#most * 1.08)] },
      },
      axes: [
        {
          stroke: () => this.#colour("--ink-soft"), font: font(), size: 26, gap: 4,
          grid: { stroke: () => this.#colour("--line"), width: 1 }, ticks: { show: false },
          splits: () => this.#ticks().map(({ ms }) => ms / 1000),
          values: () => this.#ticks().map(({ label }) => label),
        },
        {
          stroke: () => this.#colour("--ink-soft"), font: font(), size: SIDE_PX, gap: 4,
          grid: { stroke: () => this.#colour("--line"), width: 1 }, ticks: { show: false }, space: 26,
        },
      ],
      // The topmost layer is the sum of all. It is drawn first, and the lower ones over it.
      series: [{}, area("--machine", 0), ...[...layers].reverse().map(({ colour }) => area(colour, 0))],
      hooks: {
        draw: [(plot) => this.#hatch(plot)],
        setCursor: [(plot) => this.options.onHover((plot.cursor.left ?? -1) < 0 ? null : this.#view.from + ((plot.cursor.left ?? 0) / plot.over.clientWidth) * length(this.#view))],
      },
    };
    return new uPlot(options, options.series.map(() => []) as unknown as uPlot.AlignedData, this.box);
  }

  #ticks() {
    return ticks(this.#view.from, this.#view.to, Math.max(2, (this.box.clientWidth - SIDE_PX) / TICK_PX));
  }

  #draw() {
    const history = this.#history;
    if (history === null) return;
    const shape = this.#layers.map(({ colour }) => colour).join();
    if (shape !== this.#shape) {
      this.#shape = shape;
      this.#remake();
    }
    const starts = history.userMs.map((_, index) => Math.max(history.startMs + index * history.stepMs, history.from) / 1000);
    const sums = stacked(this.#layers.map(({ cpuMs }) => busyCpus(history, cpuMs))).reverse();
    this.#most = Math.max(0, ...sums[0].map((value, index) => (starts[index] < this.#view.to / 1000 && starts[index] + history.stepMs / 1000 > this.#view.from / 1000 ? (value ?? 0) : 0)));
    const behind = this.#background;
    const machine = behind === null || behind.stepMs !== history.stepMs || behind.startMs !== history.startMs
      ? history.userMs.map(() => 0)
      : busyCpus(behind, behind.userMs.map((user, index) => user + behind.kernelMs[index])).slice(0, history.userMs.length);
    // The last step reaches to the end. Unknown time is drawn as zero and hatched: with gaps, uPlot would leave out the
    // step before too.
    const columns = [[...starts, history.to / 1000], ...[machine, ...sums].map((values) => [...values, values.at(-1)].map((value) => value ?? 0))];
    this.#plot.setData(columns as uPlot.AlignedData);
    this.#fit();
  }

  #remake() {
    const bands = [this.#baseline.band, this.#window.band];
    const focused = document.activeElement;
    this.#plot.destroy();
    this.#plot = this.#make(this.#layers);
    this.#plot.over.append(...bands);
    if (focused instanceof HTMLElement && bands.some((band) => band.contains(focused))) focused.focus({ preventScroll: true });
    this.#listen(this.#plot.over);
  }

  #fit() {
    const limits = this.#limits();
    this.#window.fit(this.#view, limits);
    this.#baseline.fit(this.#view, limits);
  }

  #resize() {
    this.#plot.setSize({ width: Math.max(100, this.box.clientWidth), height: Math.max(60, this.box.clientHeight) });
    this.#fit();
  }

  // Unknown time is hatched over the whole height, wider and fainter if only one CPU is unknown. Minutes with lost
  // samples are marked along the top.
  #hatch(plot: uPlot) {
    const history = this.#history;
    if (history === null) return;
    const { ctx, bbox } = plot;
    const density = devicePixelRatio || 1;
    const fill = (span: Span, colour: string, height: number, { apart = 7, alpha = 1 } = {}) => {
      const left = Math.max(bbox.left, plot.valToPos(span.from / 1000, "x", true));
      const right = Math.min(bbox.left + bbox.width, plot.valToPos(span.to / 1000, "x", true));
      if (right <= left) return;
      ctx.save();
      ctx.beginPath();
      ctx.rect(left, bbox.top, Math.max(right - left, 2 * density), height);
      ctx.clip();
      ctx.strokeStyle = colour;
      ctx.globalAlpha = alpha;
      ctx.lineWidth = 1.5 * density;
      ctx.beginPath();
      const gap = apart * density;
      for (let x = Math.floor((left - height) / gap) * gap; x < right; x += gap) {
        ctx.moveTo(x, bbox.top + height);
        ctx.lineTo(x + height, bbox.top);
      }
      ctx.stroke();
      ctx.restore();
    };
    for (const missing of history.missing) fill(missing, this.#colour("--ink-soft"), bbox.height, { apart: 14, alpha: 0.4 });
    for (const gap of history.gaps) fill(gap, this.#colour("--ink-soft"), bbox.height);
    for (const lost of history.lost) fill(lost, this.#colour("--bad"), Math.min(bbox.height, 14 * density));
  }

  #listen(over: HTMLElement) {
    over.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || this.#history === null) return;
      const brush = this.isPinning || event.shiftKey ? this.#baseline : this.#window;
      this.#drag = { from: this.#timeAt(event.clientX), x: event.clientX, brush, before: brush.span };
      over.setPointerCapture(event.pointerId);
    });
    over.addEventListener("pointermove", (event) => {
      if (this.#drag === null || Math.abs(event.clientX - this.#drag.x) < CLICK_PX) return;
      this.#drag.brush.set(between(this.#drag.from, this.#timeAt(event.clientX), this.#limits()));
    });
    const end = (event: PointerEvent) => {
      if (this.#drag === null) return;
      const { brush, x, before } = this.#drag;
      this.#drag = null;
      if (event.type === "pointercancel" || Math.abs(event.clientX - x) < CLICK_PX || brush.span === null) return brush.set(before);
      (brush === this.#window ? this.options.onWindow : this.options.onBaseline)(brush.span);
    };
    over.addEventListener("pointerup", end);
    over.addEventListener("pointercancel", end);
    over.addEventListener("wheel", (event) => {
      // A pinch on a trackpad arrives like this. A plain wheel scrolls the page.
      if (!event.ctrlKey) return;
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.#timeAt(event.clientX));
    }, { passive: false });
    over.addEventListener("dblclick", () => {
      const window = this.#window.span;
      if (window !== null) this.options.onView(window);
    });
  }
}
