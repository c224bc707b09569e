// SPDX-License-Identifier: Apache-2.0
// Paints a view of a graph: rectangles colour by colour, since setting a colour costs more than filling with it, then
// the names. It needs only a canvas, so a screen and an exported picture are painted alike.

import { INK, type Palette } from "./colours";
import { type Labels, fitted } from "./labels";
import { ROW, type View, rectangles, topOf } from "./layout";
import type { Model } from "../tree/model";

export const GAP = 1;
const PADDING = 5;
const LEAST_LETTERS = 3;
const DIMMED = 0.38;
const FONT_SIZE = 12;

// The theme's colours of text and marks.
export interface Ink {
  text: string; // on a dimmed frame, whose background is nearly the page's
  found: string; // the background of search matches, with dark text
  font: string;
}

export interface Subject {
  model: Model;
  labels: Labels;
  palette: Palette;
  ink: Ink;
  found: Uint8Array | null;
}

// The painted part of the graph, in pixels from its top.
export interface Part {
  top: number;
  height: number;
  density: number;
}

const PLAIN = /^[\x20-\x7e]*$/;

export class Painter {
  // Each rectangle's place, and twice its colour's number, plus one if it is dimmed.
  #x = new Float32Array(4096);
  #y = new Float32Array(4096);
  #width = new Float32Array(4096);
  #key = new Uint16Array(4096);
  #order = new Uint32Array(4096);
  #count = 0;
  #font = "";
  #letter = 0;

  paint(context: CanvasRenderingContext2D, subject: Subject, view: View, { top, height, density }: Part) {
    const { model, palette, found, labels, ink } = subject;
    const { frame } = model;
    const { levelNodes } = model.data;
    const foundColour = palette.colours.length;
    const callers = model.depth[view.zoomed];
    context.font = `${FONT_SIZE}px ${ink.font}`;
    context.textBaseline = "middle";
    context.textAlign = "left";
    context.direction = "ltr";
    if (context.font !== this.#font) {
      this.#font = context.font;
      this.#letter = context.measureText("m".repeat(20)).width / 20;
    }
    const letter = this.#letter;
    const leastLabelled = LEAST_LETTERS * letter + 2 * PADDING;

    this.#count = 0;
    const texts: number[] = []; // nodes, and the index of each one's rectangle
    const rows = view.direction === "down" ? [top, top + height] : [heightFromBottom(view, top + height), heightFromBottom(view, top)];
    rectangles(view, Math.floor(rows[0] / ROW), Math.ceil(rows[1] / ROW), (node, level, x, width, from, until) => {
      if (until === from + 1 && model.frames.isIdle(frame[node])) return;
      let isFound = false;
      if (found !== null) for (let i = from; i < until && !isFound; i++) isFound = found[frame[levelNodes[i]]] === 1;
      const isDimmed = level < callers || (found !== null && !isFound);
      // On whole device pixels, so that edges are sharp.
      const left = Math.round(x * density) / density;
      const right = Math.round((x + width) * density) / density;
      const gap = right - left > 3 ? GAP : 0;
      this.#add(left, topOf(view, level) - top, Math.max(right - left - gap, 1 / density), (isFound ? foundColour : palette.of(node)) * 2 + (isDimmed ? 1 : 0));
      if (width >= leastLabelled) texts.push(node, this.#count - 1);
    });
    this.#fill(context, [...palette.colours, ink.found]);

    for (let i = 0; i < texts.length; i += 2) {
      const at = texts[i + 1];
      const isDimmed = (this.#key[at] & 1) === 1;
      // On a faint background the page's own text colour has contrast.
      context.fillStyle = isDimmed ? ink.text : INK;
      this.#write(context, labels.node(texts[i]), this.#x[at] + PADDING, this.#y[at] + (ROW - GAP) / 2 + 0.5, this.#width[at] - 2 * PADDING + GAP, letter);
    }
  }

  #add(x: number, y: number, width: number, key: number) {
    const at = this.#count++;
    if (at === this.#key.length) {
      const grown = <T extends Float32Array | Uint16Array | Uint32Array>(column: T): T => {
        const larger = new (column.constructor as new (size: number) => T)(2 * column.length);
        larger.set(column);
        return larger;
      };
      this.#x = grown(this.#x);
      this.#y = grown(this.#y);
      this.#width = grown(this.#width);
      this.#key = grown(this.#key);
      this.#order = grown(this.#order);
    }
    this.#x[at] = x;
    this.#y[at] = y;
    this.#width[at] = width;
    this.#key[at] = key;
  }

  #fill(context: CanvasRenderingContext2D, colours: readonly string[]) {
    const starts = new Uint32Array(2 * colours.length + 1);
    for (let i = 0; i < this.#count; i++) starts[this.#key[i] + 1]++;
    for (let key = 0; key < 2 * colours.length; key++) starts[key + 1] += starts[key];
    const filled = starts.slice();
    for (let i = 0; i < this.#count; i++) this.#order[filled[this.#key[i]]++] = i;
    for (let key = 0; key < 2 * colours.length; key++) {
      if (starts[key] === starts[key + 1]) continue;
      context.globalAlpha = key % 2 === 1 ? DIMMED : 1;
      context.fillStyle = colours[key >> 1];
      for (let i = starts[key]; i < starts[key + 1]; i++) {
        const at = this.#order[i];
        context.fillRect(this.#x[at], this.#y[at], this.#width[at], ROW - GAP);
      }
    }
    context.globalAlpha = 1;
  }

  #write(context: CanvasRenderingContext2D, text: string, x: number, y: number, width: number, letter: number) {
    const shown = fitted(text, Math.floor(width / letter));
    if (shown === "") return;
    if (PLAIN.test(shown) || shown.endsWith("…") && PLAIN.test(shown.slice(0, -1))) {
      context.fillText(shown, x, y);
      return;
    }
    // Letters of other scripts may be wider than the measured one.
    context.save();
    context.beginPath();
    context.rect(x, y - ROW / 2, width, ROW);
    context.clip();
    context.fillText(shown, x, y);
    context.restore();
  }
}

// For a graph that grows upwards, the distance from its bottom.
function heightFromBottom(view: View, y: number) {
  return view.levels * ROW - y;
}
