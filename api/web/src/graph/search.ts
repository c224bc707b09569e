// SPDX-License-Identifier: Apache-2.0
// Which functions' names match, and how much of a graph they are.

import type { Model } from "./model";

// A plain text is looked for as it is, whatever its case; /text/ is a regular expression. Throws where it is none.
export function matcher(text: string): (name: string) => boolean {
  const pattern = regularExpression(text);
  if (pattern !== null) return (name) => pattern.test(name);
  const lower = text.toLowerCase();
  return (name) => name.toLowerCase().includes(lower);
}

export function regularExpression(text: string): RegExp | null {
  return text.length > 2 && text.startsWith("/") && text.endsWith("/") ? new RegExp(text.slice(1, -1), "i") : null;
}

// By index of `names`: 1 where it matches.
export function matchNames(names: readonly string[], text: string) {
  const matches = matcher(text);
  const found = new Uint8Array(names.length);
  for (let i = 0; i < names.length; i++) if (matches(names[i])) found[i] = 1;
  return found;
}

// How much stands in or below frames that match, within a node's own subtree. A match within another counts once.
export function matched(model: Model, found: Uint8Array, node: number) {
  const { end, frame, value } = model;
  let sum = 0;
  for (let i = node; i < end[node]; ) {
    if (found[frame[i]] === 1) {
      sum += value[i];
      i = end[i];
    } else {
      i++;
    }
  }
  return sum;
}
