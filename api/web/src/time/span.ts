// SPDX-License-Identifier: Apache-2.0
// A span of time on an axis, and how pointers and keys change it. Pure.

// [from, to) in milliseconds since 1970.
export interface Span {
  from: number;
  to: number;
}

// The range of a span, its shortest length, and the unit of its edges.
export interface Limits extends Span {
  step: number;
}

export type Part = "from" | "to" | "all";

export const length = ({ from, to }: Span) => to - from;
export const contains = ({ from, to }: Span, ms: number) => from <= ms && ms < to;
export const overlaps = (a: Span, b: Span) => a.from < b.to && b.from < a.to;
export const same = (a: Span | null, b: Span | null) => a?.from === b?.from && a?.to === b?.to;

const clamp = (value: number, least: number, most: number) => Math.min(Math.max(value, least), Math.max(least, most));
const rounded = (ms: number, step: number) => Math.round(ms / step) * step;

// The span between two moments in any order: at least one step long, within the limits.
export function between(a: number, b: number, limits: Limits): Span {
  const { step } = limits;
  let from = clamp(Math.floor(Math.min(a, b) / step) * step, limits.from, limits.to);
  let to = clamp(Math.ceil(Math.max(a, b) / step) * step, limits.from, limits.to);
  if (to - from < step) {
    to = clamp(from + step, limits.from, limits.to);
    from = clamp(to - step, limits.from, limits.to);
  }
  return { from, to };
}

// Moves an edge, or the whole span. Edges do not pass each other. The whole span keeps its length.
export function moved(span: Span, part: Part, to: number, limits: Limits): Span {
  const { step } = limits;
  if (part === "from") return { from: clamp(rounded(to, step), limits.from, span.to - step), to: span.to };
  if (part === "to") return { from: span.from, to: clamp(rounded(to, step), span.from + step, limits.to) };
  const long = Math.min(length(span), length(limits));
  const from = clamp(rounded(to, step), limits.from, limits.to - long);
  return { from, to: from + long };
}

// The effect of a key on an edge or the whole span; null if it has none.
export function keyed(span: Span, part: Part, key: string, limits: Limits): Span | null {
  const at = part === "to" ? span.to : span.from;
  const { step } = limits;
  switch (key) {
    case "ArrowLeft":
    case "ArrowDown":
      return moved(span, part, at - step, limits);
    case "ArrowRight":
    case "ArrowUp":
      return moved(span, part, at + step, limits);
    case "PageDown":
      return moved(span, part, at - 10 * step, limits);
    case "PageUp":
      return moved(span, part, at + 10 * step, limits);
    case "Home":
      return moved(span, part, limits.from, limits);
    case "End":
      return moved(span, part, limits.to, limits);
    default:
      return null;
  }
}

// Zooms around a fixed moment: factor 0.5 shows half as much.
export function zoomed(view: Span, around: number, factor: number, limits: Limits, shortest: number): Span {
  const long = clamp(length(view) * factor, shortest, length(limits));
  const share = length(view) > 0 ? (around - view.from) / length(view) : 0.5;
  const from = clamp(around - share * long, limits.from, limits.to - long);
  return { from, to: from + long };
}

// A span of the same length just before it: the default baseline of a window.
export function before(span: Span, limits: Span): Span {
  const from = Math.max(limits.from, span.from - length(span));
  return { from, to: Math.max(from, span.from) };
}

// "1769868000000-1769868900000", as in the address.
export const asText = ({ from, to }: Span) => `${Math.round(from)}-${Math.round(to)}`;

export function fromText(text: string): Span | null {
  const found = /^(\d{1,15}(?:\.\d{1,3})?)-(\d{1,15}(?:\.\d{1,3})?)$/.exec(text);
  if (found === null) return null;
  const span = { from: Number(found[1]), to: Number(found[2]) };
  return span.from < span.to ? span : null;
}
