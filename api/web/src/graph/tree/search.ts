// SPDX-License-Identifier: Apache-2.0
// Which functions' names match, and their share of a graph.

import type { Model } from "./model";

// Plain text is searched ignoring case; /text/ is a regular expression. Throws if it is invalid.
export function regularExpression(text: string): RegExp | null {
  return text.length > 2 && text.startsWith("/") && text.endsWith("/") ? new RegExp(text.slice(1, -1), "i") : null;
}

const BETWEEN = "\n";

// Names for searches of plain text. They are joined to one text, which browsers search many times faster than many
// short ones.
export class NameIndex {
  readonly #text: string;
  readonly #ends: Uint32Array; // where each name ends in the text

  constructor(names: readonly string[]) {
    // Line breaks in a name are replaced, or it would be taken for two names.
    const joined = names.map((name) => (name.includes(BETWEEN) ? name.replaceAll(BETWEEN, " ") : name)).join(BETWEEN);
    this.#text = joined.toLowerCase();
    this.#ends = new Uint32Array(names.length);
    for (let i = 0, at = 0; i < names.length; i++) {
      at = this.#text.indexOf(BETWEEN, at);
      if (at === -1) at = this.#text.length;
      this.#ends[i] = at++;
    }
  }

  // By index of the names: 1 if it contains `text`.
  find(text: string): Uint8Array {
    const found = new Uint8Array(this.#ends.length);
    const wanted = text.toLowerCase().replaceAll(BETWEEN, " ");
    for (let i = 0, at = 0; i < found.length; i++) {
      at = this.#text.indexOf(wanted, at);
      if (at === -1) break;
      // Binary search for the name at this place.
      let low = i;
      let high = found.length - 1;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (this.#ends[middle] < at + wanted.length) low = middle + 1;
        else high = middle;
      }
      i = low;
      found[i] = 1;
      at = this.#ends[i] + 1;
    }
    return found;
  }
}

// By index of `names`: 1 if it matches.
export function matchNames(names: readonly string[], text: string): Uint8Array {
  const expression = regularExpression(text);
  if (expression === null) return new NameIndex(names).find(text);
  const found = new Uint8Array(names.length);
  for (let i = 0; i < names.length; i++) if (expression.test(names[i])) found[i] = 1;
  return found;
}

// The samples in or below matching frames, within a node's subtree. A match within another counts once.
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
