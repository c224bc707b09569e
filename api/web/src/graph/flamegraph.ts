// SPDX-License-Identifier: Apache-2.0
// The flame graph on a canvas. Callers stand above what they call. The canvas is as large as what is seen of it, and
// is painted anew as its container scrolls: a canvas as tall as the deepest stack would be too large for browsers.

import { effect } from "@preact/signals";

import { FOUND, INK, colour } from "./palette";
import { isDark } from "../theme";
import { count, percent, printable } from "../text";
import type { Tree } from "./tree";

const ROW = 21;
const GAP = 1;
const SMALLEST = 0.5; // pixels; narrower frames are painted in runs, and nothing below them
const PADDING = 5;
const MIRRORED = 250; // frames in the list for those who can't see the canvas

interface Parts {
  container: HTMLElement; // scrolls
  space: HTMLElement; // as tall as the whole graph
  canvas: HTMLCanvasElement;
  mirror: HTMLElement; // a list
  announcer: HTMLElement;
  // After every change of what is shown whole.
  onZoom: (node: number) => void;
  // With -1 for none.
  onHover: (node: number, x: number, y: number) => void;
}

export class FlameGraph {
  tree: Tree | null = null;
  zoomed = 0;
  private focused = -1;
  private hovered = -1;
  private found: Uint8Array | null = null;
  private painting = false;
  private fills: string[] = [];
  private labels: string[] = [];
  private accent = "";
  private ink = "";
  private readonly container: HTMLElement;
  private readonly space: HTMLElement;
  private readonly canvas: HTMLCanvasElement;
  private readonly list: HTMLElement;
  private readonly announcer: HTMLElement;
  private readonly onZoom: Parts["onZoom"];
  private readonly onHover: Parts["onHover"];

  constructor({ container, space, canvas, mirror, announcer, onZoom, onHover }: Parts) {
    this.container = container;
    this.space = space;
    this.canvas = canvas;
    this.list = mirror;
    this.announcer = announcer;
    this.onZoom = onZoom;
    this.onHover = onHover;
    effect(() => {
      isDark.value;
      this.#colour();
      this.repaint();
    });
    new ResizeObserver(() => this.repaint()).observe(container);
    container.addEventListener("scroll", () => this.repaint());
    canvas.addEventListener("pointermove", (event) => this.#hover(event));
    canvas.addEventListener("pointerleave", () => this.#unhover());
    canvas.addEventListener("click", (event) => this.#click(event));
    container.addEventListener("keydown", (event) => this.#key(event));
    container.addEventListener("blur", () => {
      this.focused = -1;
      this.repaint();
    });
  }

  show(tree: Tree) {
    const keep = this.tree === null ? 0 : Math.max(0, tree.counterpart(this.tree, this.zoomed));
    this.tree = tree;
    this.focused = -1;
    this.hovered = -1;
    this.found = null;
    this.#colour();
    this.zoom(keep);
  }

  zoom(node: number) {
    this.zoomed = node;
    if (this.tree === null) return;
    this.space.style.height = `${this.#rows(this.tree) * ROW + 2}px`;
    this.container.scrollTop = 0;
    this.#mirror(this.tree);
    this.onZoom(node);
    this.repaint();
  }

  // `found` by frame, as Tree.search() gives it, or null.
  highlight(found: Uint8Array | null) {
    this.found = found;
    this.repaint();
  }

  repaint() {
    if (this.painting) return;
    this.painting = true;
    requestAnimationFrame(() => {
      this.painting = false;
      this.#paint();
    });
  }

  // ---- What is where ----

  #rows(tree: Tree) {
    let deepest = 0;
    const { zoomed } = this;
    for (let i = zoomed; i < tree.end[zoomed]; i++) deepest = Math.max(deepest, tree.depth[i]);
    return deepest + 1;
  }

  #width() {
    return this.container.clientWidth;
  }

  #nodeAt(event: MouseEvent) {
    if (this.tree === null) return -1;
    const box = this.canvas.getBoundingClientRect();
    const level = Math.floor((event.clientY - box.top + this.container.scrollTop) / ROW);
    if (level <= this.tree.depth[this.zoomed]) return this.tree.path(this.zoomed)[level] ?? -1;
    const { start, value } = this.tree;
    const position = start[this.zoomed] + ((event.clientX - box.left) / this.#width()) * value[this.zoomed];
    const node = this.tree.at(level, position);
    return node !== -1 && this.tree.contains(this.zoomed, node) ? node : -1;
  }

  // ---- Painting ----

  #colour() {
    if (this.tree === null) return;
    this.fills = this.tree.frames.map((frame) => colour(frame.kind, frame.name, isDark.peek()));
    this.labels = this.tree.frames.map((frame) => printable(frame.name, 400));
  }

  #paint() {
    const { canvas, container, tree } = this;
    const width = this.#width();
    const height = container.clientHeight;
    const scale = window.devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
    const paint = canvas.getContext("2d")!;
    paint.setTransform(scale, 0, 0, scale, 0, 0);
    paint.clearRect(0, 0, width, height);
    if (tree === null || tree.total === 0) return;

    const style = getComputedStyle(document.documentElement);
    this.accent = style.getPropertyValue("--accent");
    this.ink = style.getPropertyValue("--ink");
    paint.font = `12px ${style.getPropertyValue("--mono")}`;
    paint.textBaseline = "middle";
    paint.direction = "ltr";
    const letter = paint.measureText("m").width;
    const top = container.scrollTop;

    const draw = (node: number, x: number, w: number, isCaller: boolean) => {
      const y = tree.depth[node] * ROW - top;
      if (y > height || y + ROW < 0) return;
      const frame = tree.frame[node];
      const found = this.found !== null && this.found[frame] === 1;
      paint.globalAlpha = isCaller || (this.found !== null && !found) ? FOUND.dimmed : 1;
      paint.fillStyle = found ? FOUND.fill : this.fills[frame];
      paint.fillRect(x, y, w - (w > 3 ? GAP : 0), ROW - GAP);
      if (w > 3 * letter + 2 * PADDING) {
        // Where the fill is faint the page's own ink is what contrasts.
        paint.fillStyle = paint.globalAlpha < 1 ? this.ink : INK;
        paint.globalAlpha = 1;
        this.#label(paint, this.labels[frame], x + PADDING, y + ROW / 2, w - 2 * PADDING, letter);
      }
      paint.globalAlpha = 1;
      if (node === this.focused || node === this.hovered) {
        paint.lineWidth = node === this.focused ? 2 : 1.5;
        paint.strokeStyle = node === this.focused ? this.accent : this.ink;
        paint.strokeRect(x + 1, y + 1, Math.max(w - GAP - 2, 1), ROW - GAP - 2);
      }
    };

    const { zoomed } = this;
    for (let node = zoomed; node !== 0; ) {
      node = tree.parent[node];
      draw(node, 0, width, true);
    }
    const factor = width / tree.value[zoomed];
    const origin = tree.start[zoomed];
    const last = (top + height) / ROW;
    const runs: { from: number; to: number }[] = []; // by level: narrow frames side by side that are not painted yet
    for (let node = zoomed; node < tree.end[zoomed]; ) {
      const w = tree.value[node] * factor;
      const x = (tree.start[node] - origin) * factor;
      if (w < SMALLEST) {
        const level = tree.depth[node];
        const run = (runs[level] ??= { from: x, to: x });
        if (x > run.to + 0.01) run.from = x;
        run.to = x + w;
        if (run.to - run.from >= SMALLEST) {
          const found = this.found !== null && this.found[tree.frame[node]] === 1;
          paint.globalAlpha = this.found === null || found ? 1 : FOUND.dimmed;
          paint.fillStyle = found ? FOUND.fill : this.fills[tree.frame[node]];
          paint.fillRect(run.from, level * ROW - top, run.to - run.from, ROW - GAP);
          paint.globalAlpha = 1;
          run.from = run.to;
        }
        node = tree.end[node];
        continue;
      }
      draw(node, x, w, false);
      node = tree.depth[node] + 1 > last ? tree.end[node] : node + 1;
    }
  }

  #label(paint: CanvasRenderingContext2D, text: string, x: number, y: number, width: number, letter: number) {
    const fits = Math.floor(width / letter);
    // Letters of other scripts may be wider than those that were measured.
    const isPlain = /^[\x20-\x7e]*$/.test(text);
    const shown = text.length <= fits ? text : `${text.slice(0, Math.max(fits - 1, 1))}…`;
    if (isPlain) {
      paint.fillText(shown, x, y);
    } else {
      paint.save();
      paint.beginPath();
      paint.rect(x, y - ROW / 2, width, ROW);
      paint.clip();
      paint.fillText(shown, x, y);
      paint.restore();
    }
  }

  // ---- For those who can't see it ----

  #describe(tree: Tree, node: number) {
    return `${printable(tree.of(node).name, 200)}, ${percent(tree.value[node], tree.total)}, ${count(tree.value[node])} samples`;
  }

  #mirror(tree: Tree) {
    const { zoomed } = this;
    // The frames that weigh most, in the order in which they are nested.
    let nodes: number[] = [];
    const least = tree.value[zoomed] * 0.002;
    for (let i = zoomed; i < tree.end[zoomed]; ) {
      if (tree.value[i] >= least && tree.value[i] > 0) nodes.push(i++);
      else i = tree.end[i];
    }
    if (nodes.length > MIRRORED) {
      nodes.sort((a, b) => tree.value[b] - tree.value[a] || a - b);
      nodes = nodes.slice(0, MIRRORED).sort((a, b) => a - b);
    }
    this.list.replaceChildren(
      ...nodes.map((node) => {
        const item = document.createElement("li");
        item.textContent = this.#describe(tree, node);
        item.dataset.name = tree.of(node).name;
        item.dataset.kind = tree.of(node).kind;
        item.dataset.value = String(tree.value[node]);
        item.dataset.depth = String(tree.depth[node]);
        return item;
      }),
    );
  }

  // ---- Hands ----

  #hover(event: PointerEvent) {
    const node = this.#nodeAt(event);
    this.canvas.style.cursor = node === -1 ? "default" : "pointer";
    if (node !== this.hovered) {
      this.hovered = node;
      this.repaint();
    }
    this.onHover(node, event.clientX, event.clientY);
  }

  #unhover() {
    this.hovered = -1;
    this.onHover(-1, 0, 0);
    this.repaint();
  }

  #click(event: MouseEvent) {
    const node = this.#nodeAt(event);
    if (node !== -1) this.zoom(node);
    this.#unhover();
  }

  #key(event: KeyboardEvent) {
    if (this.tree === null || event.ctrlKey || event.metaKey || event.altKey) return;
    const { tree } = this;
    const at = this.focused === -1 ? this.zoomed : this.focused;
    let next = at;
    switch (event.key) {
      case "ArrowDown": {
        const below = tree.children(at);
        next = below.reduce((best, node) => (tree.value[node] > tree.value[best] ? node : best), below[0] ?? at);
        if (this.focused === -1) next = at;
        break;
      }
      case "ArrowUp":
        next = tree.parent[at];
        break;
      case "ArrowLeft":
      case "ArrowRight": {
        if (at === 0) break;
        const beside = tree.children(tree.parent[at]);
        const index = beside.indexOf(at) + (event.key === "ArrowLeft" ? -1 : 1);
        next = beside[index] ?? at;
        break;
      }
      case "Enter":
      case " ":
        this.zoom(at);
        break;
      case "Escape":
        next = -1;
        this.zoom(0);
        break;
      default:
        return;
    }
    event.preventDefault();
    if (next !== -1 && !tree.contains(this.zoomed, next)) this.zoom(next);
    this.focused = next;
    if (next !== -1) {
      this.announcer.textContent = this.#describe(tree, next);
      const y = tree.depth[next] * ROW;
      const { scrollTop, clientHeight } = this.container;
      if (y < scrollTop) this.container.scrollTop = y;
      else if (y + ROW > scrollTop + clientHeight) this.container.scrollTop = y + ROW - clientHeight;
    }
    this.repaint();
  }
}
