// SPDX-License-Identifier: Apache-2.0
// A band over a chart that marks a span of time. Its edges and its grip are sliders, for pointers and keys.
import { element } from "../text";
import { type Limits, type Part, type Span, keyed, moved } from "./span";

export interface BrushOptions {
  className: string;
  // "the window": used in the sliders' names.
  name: string;
  // A moment in words.
  describe: (ms: number) => string;
  // The moment at a place on the screen.
  timeAt: (clientX: number) => number;
  // Called with every move of a pointer. The last call is final.
  onChange: (span: Span, isFinal: boolean) => void;
}

const PARTS: [Part, string][] = [["from", "Start of"], ["to", "End of"], ["all", "Move"]];
// Keys come in bursts: after a pause of this length the last one is final.
const LAST_KEY_MS = 350;

export class Brush {
  readonly band: HTMLElement;
  readonly #sliders = new Map<Part, HTMLElement>();
  #span: Span | null = null;
  #view: Span = { from: 0, to: 1 };
  #limits: Limits = { from: 0, to: 1, step: 1 };
  #lastKey = 0;
  #drag: { part: Part; before: Span; grabbedAt: number } | null = null;

  constructor(parent: HTMLElement, private readonly options: BrushOptions) {
    this.band = element("div", `brush ${options.className}`);
    for (const [part, what] of PARTS) {
      const slider = element("div", `brush-${part}`);
      slider.tabIndex = 0;
      slider.setAttribute("role", "slider");
      slider.setAttribute("aria-label", `${what} ${options.name}`);
      slider.setAttribute("aria-orientation", "horizontal");
      slider.addEventListener("keydown", (event) => this.#onKey(event, part));
      slider.addEventListener("pointerdown", (event) => this.#onGrab(event, part));
      slider.addEventListener("pointermove", (event) => this.#onMove(event));
      slider.addEventListener("pointerup", (event) => this.#onRelease(event));
      slider.addEventListener("pointercancel", () => this.#giveUp());
      this.#sliders.set(part, slider);
      this.band.append(slider);
    }
    this.band.hidden = true;
    parent.append(this.band);
  }

  get span() {
    return this.#span;
  }

  // The user is moving the span, so it must not be set from elsewhere.
  get isHeld() {
    return this.#drag !== null || this.#lastKey !== 0;
  }

  set(span: Span | null) {
    this.#span = span;
    this.#place();
  }

  // `view` is what the chart shows from edge to edge.
  fit(view: Span, limits: Limits) {
    this.#view = view;
    this.#limits = limits;
    this.#place();
  }

  #place() {
    const span = this.#span;
    const { from, to } = this.#view;
    this.band.hidden = span === null || span.to < from || span.from > to;
    if (span === null) return;
    const share = (ms: number) => (100 * (Math.min(Math.max(ms, from), to) - from)) / (to - from);
    this.band.style.left = `${share(span.from)}%`;
    this.band.style.width = `${share(span.to) - share(span.from)}%`;
    const { describe } = this.options;
    for (const [part, slider] of this.#sliders) {
      const at = part === "to" ? span.to : span.from;
      slider.setAttribute("aria-valuemin", String(Math.floor(Math.min(this.#limits.from, at) / 1000)));
      slider.setAttribute("aria-valuemax", String(Math.ceil(Math.max(this.#limits.to, at) / 1000)));
      slider.setAttribute("aria-valuenow", String(Math.round(at / 1000)));
      slider.setAttribute("aria-valuetext", part === "all" ? `${describe(span.from)} to ${describe(span.to)}` : describe(at));
    }
  }

  #change(span: Span, isFinal: boolean) {
    this.set(span);
    this.options.onChange(span, isFinal);
  }

  #onKey(event: KeyboardEvent, part: Part) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.#span === null) return;
    if (event.key === "Escape" && this.#drag !== null) return this.#giveUp();
    const next = keyed(this.#span, part, event.key, this.#limits);
    if (next === null) return;
    event.preventDefault();
    event.stopPropagation();
    this.#change(next, false);
    clearTimeout(this.#lastKey);
    this.#lastKey = setTimeout(() => {
      this.#lastKey = 0;
      this.#change(this.#span ?? next, true);
    }, LAST_KEY_MS);
  }

  #onGrab(event: PointerEvent, part: Part) {
    if (event.button !== 0 || this.#span === null) return;
    event.stopPropagation();
    event.preventDefault();
    const slider = event.currentTarget as HTMLElement;
    slider.setPointerCapture(event.pointerId);
    slider.focus({ preventScroll: true });
    const at = part === "to" ? this.#span.to : this.#span.from;
    this.#drag = { part, before: this.#span, grabbedAt: this.options.timeAt(event.clientX) - at };
  }

  #onMove(event: PointerEvent) {
    if (this.#drag === null) return;
    const { part, before, grabbedAt } = this.#drag;
    this.#change(moved(before, part, this.options.timeAt(event.clientX) - grabbedAt, this.#limits), false);
  }

  #onRelease(event: PointerEvent) {
    if (this.#drag === null) return;
    event.stopPropagation();
    this.#drag = null;
    if (this.#span !== null) this.#change(this.#span, true);
  }

  #giveUp() {
    if (this.#drag === null) return;
    const { before } = this.#drag;
    this.#drag = null;
    this.#change(before, true);
  }
}
