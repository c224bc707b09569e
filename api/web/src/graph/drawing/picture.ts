// SPDX-License-Identifier: Apache-2.0
// A graph as an exported picture: one self-contained file that describes what it shows.

import { INK, type LegendEntry } from "./colours";
import { fitted } from "./labels";
import { ROW, type View, heightOf, rectangles, topOf } from "./layout";
import { GAP, Painter, type Subject } from "./painter";

export const WIDTH = 1200;
const MARGIN = 16;
const TITLE_SIZE = 18;
const LINE = 17;
const LEGEND = 28;
const LETTER = 7.25; // the width in the widest common monospaced font, at 12 pixels
const MONO = "ui-monospace, 'SF Mono', 'Cascadia Mono', 'DejaVu Sans Mono', Menlo, Consolas, monospace";
const SANS = "system-ui, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif";
const LARGEST = 16_384; // pixels of a canvas, in the strictest browsers
const DENSITY = 2;

export interface Picture {
  title: string;
  lines: readonly string[]; // the window, the selection, the number of samples
  // From top to bottom. A sandwich has two.
  parts: readonly { subject: Subject; view: View; caption: string }[];
  legend: readonly LegendEntry[];
  ground: string;
  softInk: string;
}

const CAPTION = 20;
const headHeight = ({ lines }: Picture) => MARGIN + TITLE_SIZE + 10 + lines.length * LINE + 8;
const captionHeight = (caption: string) => (caption === "" ? 0 : CAPTION);

export function heightOfPicture(picture: Picture) {
  const graphs = picture.parts.reduce((sum, { view, caption }) => sum + captionHeight(caption) + heightOf(view) + 8, 0);
  return headHeight(picture) + graphs + LEGEND;
}

// Unpaired surrogates and other characters that XML forbids, even as references.
const UNSAYABLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
const ESCAPES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

export const xmlText = (text: string) => text.replace(UNSAYABLE, "\ufffd").replace(/[&<>"']/g, (c) => ESCAPES[c]);

const round = (value: number) => String(Math.round(value * 100) / 100);

export function svg(picture: Picture): string {
  const height = heightOfPicture(picture);
  const out: string[] = [];
  const text = (x: number, y: number, shown: string, more: string) => out.push(`<text x="${round(x)}" y="${round(y)}" ${more}>${xmlText(shown)}</text>`);
  out.push(
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${xmlText(picture.title)}">`,
    `<style>text{font:12px ${MONO};white-space:pre}.s{font-family:${SANS}}g:hover>rect{stroke:${INK};stroke-width:1}</style>`,
    `<rect width="100%" height="100%" fill="${picture.ground}"/>`,
  );
  const ink = picture.parts[0]?.subject.ink.text ?? INK;
  text(MARGIN, MARGIN + TITLE_SIZE - 2, picture.title, `class="s" style="font-size:${TITLE_SIZE}px;font-weight:600" fill="${ink}"`);
  picture.lines.forEach((line, i) => text(MARGIN, MARGIN + TITLE_SIZE + 12 + (i + 0.5) * LINE, line, `class="s" fill="${picture.softInk}"`));
  let top = headHeight(picture);
  for (const { subject, view, caption } of picture.parts) {
    if (caption !== "") text(MARGIN, top + 13, caption, `class="s" fill="${picture.softInk}"`);
    top += captionHeight(caption);
    const { model, labels, palette, found } = subject;
    out.push(`<g transform="translate(${MARGIN} ${top})">`);
    const { levelNodes } = model.data;
    rectangles(view, 0, view.levels, (node, level, x, width, from, until) => {
      let isFound = false;
      if (found !== null) for (let i = from; i < until && !isFound; i++) isFound = found[model.frame[levelNodes[i]]] === 1;
      const isDimmed = level < model.depth[view.zoomed] || (found !== null && !isFound);
      const fill = isFound ? subject.ink.found : palette.colours[palette.of(node)];
      const y = topOf(view, level);
      const box = `<rect x="${round(x)}" y="${y}" width="${round(Math.max(width - (width > 3 ? GAP : 0), 0.3))}" height="${ROW - GAP}" fill="${fill}"${isDimmed ? ' fill-opacity=".4"' : ""}/>`;
      if (until > from + 1) {
        out.push(box);
        return;
      }
      const label = fitted(labels.node(node), Math.floor((width - 8) / LETTER));
      out.push(`<g><title>${xmlText(labels.spoken(node))}</title>${box}`);
      if (label !== "") text(x + 4, y + 14, label, `fill="${isDimmed ? ink : INK}"`);
      out.push("</g>");
    });
    out.push("</g>");
    top += heightOf(view) + 8;
  }
  let x = MARGIN;
  for (const { label, colour } of picture.legend) {
    out.push(`<rect x="${round(x)}" y="${top + 4}" width="12" height="12" rx="3" fill="${colour}"/>`);
    text(x + 17, top + 14, label, `class="s" fill="${picture.softInk}"`);
    x += 17 + label.length * 7 + 18;
  }
  out.push("</svg>");
  return out.join("\n");
}

export async function png(picture: Picture): Promise<Blob> {
  const height = heightOfPicture(picture);
  const density = Math.min(DENSITY, LARGEST / height);
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(WIDTH * density);
  canvas.height = Math.round(height * density);
  const context = canvas.getContext("2d")!;
  context.scale(density, density);
  context.fillStyle = picture.ground;
  context.fillRect(0, 0, WIDTH, height);
  context.textBaseline = "alphabetic";
  const write = (text: string, x: number, y: number, font: string, colour: string) => {
    context.textBaseline = "alphabetic";
    context.font = font;
    context.fillStyle = colour;
    context.fillText(text, x, y, WIDTH - x - MARGIN);
  };
  const small = `12px ${SANS}`;
  write(picture.title, MARGIN, MARGIN + TITLE_SIZE - 2, `600 ${TITLE_SIZE}px ${SANS}`, picture.parts[0]?.subject.ink.text ?? INK);
  picture.lines.forEach((line, i) => write(line, MARGIN, MARGIN + TITLE_SIZE + 12 + (i + 0.5) * LINE, small, picture.softInk));
  const painter = new Painter();
  let top = headHeight(picture);
  for (const { subject, view, caption } of picture.parts) {
    if (caption !== "") write(caption, MARGIN, top + 13, small, picture.softInk);
    top += captionHeight(caption);
    context.save();
    context.translate(MARGIN, top);
    painter.paint(context, subject, view, { top: 0, height: heightOf(view), density });
    context.restore();
    top += heightOf(view) + 8;
  }
  let x = MARGIN;
  for (const { label, colour } of picture.legend) {
    context.fillStyle = colour;
    context.fillRect(x, top + 4, 12, 12);
    write(label, x + 17, top + 14, small, picture.softInk);
    x += 17 + context.measureText(label).width + 18;
  }
  return new Promise((resolve, reject) => canvas.toBlob((blob) => (blob === null ? reject(new Error("the browser makes no picture of this size")) : resolve(blob)), "image/png"));
}

// The width of a part of a picture.
export const GRAPH_WIDTH = WIDTH - 2 * MARGIN;
