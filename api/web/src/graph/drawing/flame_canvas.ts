// SPDX-License-Identifier: Apache-2.0
// A graph on a canvas, with its input handling. The canvas is as large as its visible part and is repainted as its box
// scrolls: one as tall as the deepest stack would be too large for browsers. Callers are above their callees, or below.

import type { Palette } from "./colours";
import type { Labels } from "./labels";
import { type Direction, NARROW, ROW, type View, heightOf, nodeAt, placeOf, topOf, viewOf } from "./layout";
import { Mirror } from "./mirror";
import type { Model } from "../tree/model";
import { type Ink, Painter } from "./painter";

const ZOOM_MS = 160;
const MOST_STEPS = 30; // the most animation frames of a zoom, whatever the clock says
const LONG_PRESS_MS = 500;
const STILL = 8; // pixels that a finger may move in a long press

// For observers; only the latest is kept.
function measure(name: string, start: number) {
  performance.clearMeasures(name);
  performance.measure(name, { start, end: performance.now() });
}

export interface Hands {
  onZoom: (node: number) => void;
  // With -1 for none.
  onHover: (node: number, x: number, y: number) => void;
  // With a key, or by the first touch.
  onSelect: (node: number) => void;
  onMenu: (node: number, x: number, y: number) => void;
  say: (text: string) => void;
}

export interface Shown {
  model: Model;
  labels: Labels;
  palette: Palette;
  ink: Ink;
  direction: Direction;
  zoomed: number;
  // By frame, 1 if it matches; null without a search.
  found: Uint8Array | null;
  // The node that was chosen elsewhere; -1 for none.
  chosen: number;
  // performance.now() when the whole answer of this graph had arrived; null if more went into it.
  since: number | null;
}

export class FlameCanvas {
  readonly #box: HTMLElement;
  readonly #hands: Hands;
  readonly #space: HTMLElement;
  readonly #canvas: HTMLCanvasElement;
  readonly #hoverMark: HTMLElement;
  readonly #focusMark: HTMLElement;
  readonly #mirror: Mirror;
  readonly #painter = new Painter();
  readonly #endings: (() => void)[] = [];
  #shown: Shown | null = null;
  #view: View | null = null; // the view after the zoom
  #from: View | null = null; // the view before the zoom
  #zoomedAt = 0;
  #steps = 0;
  #frameRequest = 0;
  #laidOut = { width: 0, height: 0 }; // the box's size when its content was last fitted
  #mirrorTimer = 0;
  #isMirrorOld = false;
  #painted: Model | null = null;
  #hovered = -1;
  #focused = -1;
  #touched = false;
  #longPress = 0;
  #pressed: { x: number; y: number } | null = null;

  // `box` scrolls and has the keyboard's focus.
  constructor(box: HTMLElement, hands: Hands) {
    this.#box = box;
    this.#hands = hands;
    const part = (name: string, tag = "div") => {
      const made = document.createElement(tag);
      made.className = name;
      return made;
    };
    this.#space = part("flame-space");
    this.#canvas = part("flame-canvas", "canvas") as HTMLCanvasElement;
    this.#canvas.setAttribute("aria-hidden", "true");
    this.#hoverMark = part("flame-mark");
    this.#focusMark = part("flame-mark flame-focus");
    this.#space.append(this.#canvas, this.#hoverMark, this.#focusMark);
    box.append(this.#space);
    box.setAttribute("role", "tree");
    box.tabIndex = 0;
    this.#mirror = new Mirror(box, this.#space);
    this.#mark(this.#hoverMark, -1);
    this.#mark(this.#focusMark, -1);

    const observer = new ResizeObserver(() => this.#resize());
    observer.observe(box);
    this.#endings.push(() => observer.disconnect(), () => cancelAnimationFrame(this.#frameRequest), () => clearTimeout(this.#mirrorTimer), () => clearTimeout(this.#longPress));
    this.#on(box, "scroll", () => this.#repaint());
    this.#on(box, "keydown", (event) => this.#key(event));
    this.#on(box, "blur", () => this.#focus(-1));
    this.#on(this.#canvas, "pointermove", (event) => this.#move(event));
    this.#on(this.#canvas, "pointerleave", () => this.#hover(-1, 0, 0));
    this.#on(this.#canvas, "pointerdown", (event) => this.#press(event));
    for (const end of ["pointerup", "pointercancel"] as const) this.#on(this.#canvas, end, () => clearTimeout(this.#longPress));
    this.#on(this.#canvas, "click", (event) => this.#click(event));
    this.#on(box, "contextmenu", (event) => this.#contextMenu(event));
    this.#followDensity();
  }

  end() {
    for (const end of this.#endings) end();
    this.#space.remove();
  }

  get focused() {
    return this.#focused;
  }

  show(shown: Shown) {
    const before = this.#shown;
    const isOther = before === null || before.model !== shown.model || before.direction !== shown.direction;
    const previous = this.#seen();
    this.#shown = shown;
    if (isOther) {
      this.#hover(-1, 0, 0);
      // While the page is live a new answer comes every few seconds. The focus stays at its place.
      if (before !== null && this.#focused !== -1) this.#focused = shown.model.counterpart(before.model, this.#focused);
    }
    if (isOther || before.zoomed !== shown.zoomed) {
      const anchor = this.#anchor();
      this.#view = viewOf(shown.model, shown.zoomed, shown.direction, this.#box.clientWidth);
      const moves = !isOther && previous !== null && !matchMedia("(prefers-reduced-motion: reduce)").matches;
      this.#from = moves ? previous : null;
      this.#zoomedAt = performance.now();
      this.#steps = 0;
      this.#layOut(before === null || before.direction !== shown.direction ? null : anchor);
      this.#reveal(shown.zoomed);
    }
    this.#isMirrorOld = true;
    if (shown.chosen !== -1 && (before === null || before.chosen !== shown.chosen) && !(isOther && before !== null && this.#focused !== -1)) {
      this.#focus(shown.chosen);
      this.#hands.onSelect(shown.chosen);
    }
    this.#repaint();
  }

  // A node's place on the screen; null if it is not visible.
  boxOf(node: number): DOMRect | null {
    if (this.#view === null) return null;
    const place = placeOf(this.#view, node);
    if (place === null) return null;
    const { left, top } = this.#canvas.getBoundingClientRect();
    const y = this.#offset() + topOf(this.#view, this.#view.model.depth[node]) - this.#box.scrollTop;
    return new DOMRect(left + place.x, top + y, place.width, ROW);
  }

  // ---- Geometry ----

  // A flame graph that is lower than its box is at the box's bottom.
  #offset() {
    const view = this.#view;
    return view === null || view.direction === "down" ? 0 : Math.max(0, this.#box.clientHeight - heightOf(view));
  }

  // The scroll distance from the graph's root.
  #anchor() {
    return this.#shown?.direction === "up" ? this.#box.scrollHeight - this.#box.clientHeight - this.#box.scrollTop : this.#box.scrollTop;
  }

  #layOut(anchor: number | null) {
    const view = this.#view;
    if (view === null) return;
    const height = Math.max(heightOf(view), 0);
    this.#laidOut = { width: this.#box.clientWidth, height: this.#box.clientHeight };
    this.#space.style.height = `${height}px`;
    const fromRoot = anchor ?? 0;
    this.#box.scrollTop = view.direction === "up" ? height - this.#box.clientHeight - fromRoot : fromRoot;
  }

  // Fits the content to the box if the box's size changed, and returns whether it did.
  #fit() {
    const { clientWidth: width, clientHeight: height } = this.#box;
    if (this.#view === null || (width === this.#laidOut.width && height === this.#laidOut.height)) return false;
    const anchor = this.#anchor();
    this.#view = { ...this.#view, width };
    this.#from = null;
    this.#layOut(anchor);
    this.#isMirrorOld = true;
    return true;
  }

  #resize() {
    if (!this.#fit()) return;
    // At once: the box has its new size in this very frame.
    this.#paint();
    this.#mirrorSoon();
  }

  #reveal(node: number) {
    const view = this.#view!;
    const y = topOf(view, view.model.depth[node]);
    const { scrollTop, clientHeight } = this.#box;
    if (y < scrollTop) this.#box.scrollTop = y;
    else if (y + ROW > scrollTop + clientHeight) this.#box.scrollTop = y + ROW - clientHeight;
  }

  #nodeAt(event: MouseEvent) {
    if (this.#view === null) return -1;
    const { left, top } = this.#canvas.getBoundingClientRect();
    return nodeAt(this.#view, event.clientX - left, event.clientY - top + this.#box.scrollTop - this.#offset());
  }

  // ---- Painting ----

  #repaint() {
    if (this.#frameRequest !== 0) return;
    this.#frameRequest = requestAnimationFrame(() => {
      this.#frameRequest = 0;
      // Other parts of the same answer may have moved the box's edges. Two paints would take twice as long.
      this.#fit();
      this.#paint();
      this.#mirrorSoon();
    });
  }

  // The view during a zoom.
  #seen(): View | null {
    const view = this.#view;
    if (view === null || this.#from === null) return view;
    const passed = (performance.now() - this.#zoomedAt) / ZOOM_MS;
    if (passed >= 1 || this.#steps > MOST_STEPS) return view;
    const done = 1 - (1 - passed) ** 3;
    return { ...view, left: this.#from.left + (view.left - this.#from.left) * done, right: this.#from.right + (view.right - this.#from.right) * done };
  }

  #paint() {
    const { clientWidth: width, clientHeight: height } = this.#box;
    const canvas = this.#canvas;
    const density = window.devicePixelRatio || 1;
    const [wide, high] = [Math.round(width * density), Math.round(height * density)];
    if (canvas.width !== wide || canvas.height !== high) {
      canvas.width = wide;
      canvas.height = high;
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
    const context = canvas.getContext("2d")!;
    context.setTransform(density, 0, 0, density, 0, 0);
    context.clearRect(0, 0, width, height);
    const view = this.#seen();
    if (view === this.#view) this.#from = null;
    if (this.#shown === null || view === null || this.#shown.model.total === 0) return;
    const start = performance.now();
    this.#painter.paint(context, this.#shown, view, { top: this.#box.scrollTop - this.#offset(), height, density });
    measure("flamed:paint", start);
    if (this.#painted !== this.#shown.model) {
      this.#painted = this.#shown.model;
      if (this.#shown.since !== null) measure("flamed:first-paint", this.#shown.since);
    }
    this.#mark(this.#hoverMark, this.#hovered);
    this.#mark(this.#focusMark, this.#focused);
    if (view !== this.#view) {
      this.#steps++;
      this.#repaint();
    }
  }

  #mark(mark: HTMLElement, node: number) {
    const place = node === -1 || this.#view === null || this.#from !== null ? null : placeOf(this.#view, node);
    mark.hidden = place === null;
    if (place === null) return;
    const least = 3; // narrower frames are marked with this width
    const wide = Math.max(place.width, least);
    const x = Math.min(place.x, this.#view!.width - wide);
    mark.style.width = `${wide}px`;
    mark.style.transform = `translate(${x}px, ${this.#offset() + topOf(this.#view!, this.#view!.model.depth[node])}px)`;
  }

  // After the visible part has been painted, since no one sees the mirror. By the next frame at the latest.
  #mirrorSoon() {
    if (!this.#isMirrorOld) return;
    if (this.#mirrorTimer !== 0) this.#mirrorAnew();
    else this.#mirrorTimer = setTimeout(() => this.#mirrorAnew());
  }

  #mirrorAnew() {
    clearTimeout(this.#mirrorTimer);
    this.#mirrorTimer = 0;
    this.#isMirrorOld = false;
    if (this.#shown !== null && this.#view !== null) this.#mirror.show(this.#view, this.#shown.labels, this.#focused, this.#offset());
  }

  #followDensity() {
    const density = matchMedia(`(resolution: ${window.devicePixelRatio}dppx)`);
    const change = () => {
      this.#repaint();
      this.#followDensity();
    };
    density.addEventListener("change", change, { once: true });
    this.#endings.push(() => density.removeEventListener("change", change));
  }

  // ---- Input ----

  #on<K extends keyof HTMLElementEventMap>(target: HTMLElement, type: K, listener: (event: HTMLElementEventMap[K]) => void) {
    target.addEventListener(type, listener);
    this.#endings.push(() => target.removeEventListener(type, listener));
  }

  #hover(node: number, x: number, y: number) {
    if (node !== this.#hovered) {
      this.#hovered = node;
      this.#canvas.style.cursor = node === -1 ? "default" : "pointer";
      this.#mark(this.#hoverMark, node);
    }
    this.#hands.onHover(node, x, y);
  }

  #move(event: PointerEvent) {
    if (this.#pressed !== null && Math.hypot(event.clientX - this.#pressed.x, event.clientY - this.#pressed.y) > STILL) clearTimeout(this.#longPress);
    if (event.pointerType === "touch") return;
    const start = performance.now();
    this.#hover(this.#nodeAt(event), event.clientX, event.clientY);
    measure("flamed:hover", start);
  }

  #press(event: PointerEvent) {
    clearTimeout(this.#longPress);
    this.#touched = event.pointerType === "touch";
    this.#pressed = { x: event.clientX, y: event.clientY };
    if (!this.#touched) return;
    const node = this.#nodeAt(event);
    if (node === -1) return;
    const { clientX, clientY } = event;
    this.#longPress = setTimeout(() => {
      this.#touched = false;
      this.#pressed = null; // ignore the click that follows
      this.#hands.onMenu(node, clientX, clientY);
    }, LONG_PRESS_MS);
  }

  #click(event: MouseEvent) {
    if (this.#pressed === null) return;
    const node = this.#nodeAt(event);
    if (node === -1) return;
    // A finger can't hover: the first touch selects a frame, the second zooms to it.
    if (this.#touched && node !== this.#focused) {
      this.#focus(node);
      this.#hands.onSelect(node);
      return;
    }
    const { model } = this.#shown!;
    this.#hover(-1, 0, 0);
    this.#hands.onSelect(node);
    this.#hands.onZoom(node);
    this.#focus(this.#nowOf(model, node));
  }

  #contextMenu(event: MouseEvent) {
    event.preventDefault();
    if (this.#touched) return; // from the long press
    const node = event.target === this.#canvas ? this.#nodeAt(event) : this.#focused;
    if (node === -1) return;
    this.#hover(-1, 0, 0);
    this.#hands.onMenu(node, event.clientX, event.clientY);
  }

  // A node of a model that has been shown: a zoom may have led to another one.
  #nowOf(model: Model, node: number) {
    const now = this.#shown!.model;
    return now === model ? node : now.counterpart(model, node);
  }

  #focus(node: number) {
    if (node === this.#focused) return;
    this.#focused = node;
    if (node !== -1 && this.#shown !== null) {
      this.#reveal(node);
      this.#hands.say(this.#shown.labels.spoken(node));
      // After a zoom it follows with the next frame, as everything has moved.
      if (!this.#isMirrorOld) this.#mirrorAnew();
    }
    this.#mark(this.#focusMark, node);
  }

  // The next node on the same level, preferably one that is wide enough to be visible.
  #beside(node: number, step: 1 | -1) {
    const view = this.#view!;
    const { levelNodes, levelStart } = view.model.data;
    const level = view.model.depth[node];
    const index = view.model.firstAfter(level, view.model.start[node]);
    const seen = (NARROW / view.width) * (view.right - view.left);
    let nearest = -1;
    for (let i = index + step; i >= levelStart[level] && i < levelStart[level + 1]; i += step) {
      const other = levelNodes[i];
      if (!view.model.contains(view.zoomed, other) || other === node) break;
      if (nearest === -1) nearest = other;
      if (view.model.value[other] >= seen) return other;
    }
    return nearest === -1 ? node : nearest;
  }

  #key(event: KeyboardEvent) {
    if (this.#shown === null || this.#view === null || event.target !== this.#box) return;
    const { model, zoomed, direction } = this.#shown;
    const at = this.#focused === -1 ? zoomed : this.#focused;
    const inwards = direction === "down" ? "ArrowDown" : "ArrowUp";
    const outwards = direction === "down" ? "ArrowUp" : "ArrowDown";
    const isMenu = event.key === "ContextMenu" || (event.key === "F10" && event.shiftKey);
    if ((event.ctrlKey || event.metaKey || event.altKey) && !isMenu) return;
    let next = at;
    switch (event.key) {
      case inwards: {
        const below = model.children(at).filter((node) => model.value[node] > 0);
        next = this.#focused === -1 ? at : below.reduce((best, node) => (model.value[node] > model.value[best] ? node : best), below[0] ?? at);
        break;
      }
      case outwards:
        next = model.parent[at];
        break;
      case "ArrowLeft":
        next = this.#beside(at, -1);
        break;
      case "ArrowRight":
        next = this.#beside(at, 1);
        break;
      case "Home":
        next = zoomed;
        break;
      case "Enter":
      case " ":
        this.#hands.onSelect(at);
        this.#hands.onZoom(at);
        break;
      case "Backspace":
        next = model.parent[zoomed];
        this.#hands.onZoom(next);
        break;
      case "Escape":
        if (zoomed === 0) return;
        next = 0;
        this.#hands.onZoom(0);
        break;
      case "ContextMenu":
      case "F10": {
        if (!isMenu) return;
        const box = this.boxOf(at);
        this.#focus(at);
        if (box !== null) this.#hands.onMenu(at, box.left + Math.min(box.width / 2, 120), box.bottom);
        break;
      }
      default:
        return;
    }
    event.preventDefault();
    if (next !== at || this.#focused === -1) {
      if (this.#shown.model === model && !model.contains(this.#shown.zoomed, next)) this.#hands.onZoom(next);
      const now = this.#nowOf(model, next);
      this.#focus(now);
      if (now !== -1) this.#hands.onSelect(now);
    }
  }
}
