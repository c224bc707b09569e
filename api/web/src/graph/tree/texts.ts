// SPDX-License-Identifier: Apache-2.0
// A list of texts as the daemon sends it: all of them joined, in UTF-8. A screen shows only some hundred of a hundred
// thousand names, so each is decoded when it is first used.

export interface TextData {
  bytes: Uint8Array;
  ends: Uint32Array; // where each text ends in the bytes
}

// From here on it is cheaper to decode all at once than one by one.
const MANY = 2000;

// A text that begins with a byte order mark keeps it.
const decoder = () => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export function checkTexts({ bytes, ends }: TextData) {
  try {
    decoder().decode(bytes);
  } catch {
    throw new Error("the answer's texts are not UTF-8");
  }
  for (let i = 0, end = 0; i < ends.length; i++) {
    if (ends[i] < end || ends[i] > bytes.length) throw new Error("the answer's texts overlap or are out of order");
    end = ends[i];
    // Is it within a character?
    if ((bytes[end] & 0xc0) === 0x80) throw new Error("the answer's texts are cut within a character");
  }
}

export function textData(texts: readonly string[]): TextData {
  const encoder = new TextEncoder();
  const ends = new Uint32Array(texts.length);
  let end = 0;
  const parts = texts.map((text, i) => {
    const part = encoder.encode(text);
    ends[i] = end += part.length;
    return part;
  });
  const bytes = new Uint8Array(end);
  parts.forEach((part, i) => bytes.set(part, ends[i] - part.length));
  return { bytes, ends };
}

export class Texts {
  readonly size: number;
  readonly #bytes: Uint8Array;
  readonly #ends: Uint32Array;
  readonly #decoder = decoder();
  readonly #known: (string | undefined)[];
  #decoded = 0;

  constructor({ bytes, ends }: TextData) {
    this.#bytes = bytes;
    this.#ends = ends;
    this.size = ends.length;
    this.#known = new Array<string | undefined>(this.size);
  }

  at(i: number): string {
    const known = this.#known[i];
    if (known !== undefined) return known;
    if (++this.#decoded >= MANY) return this.all()[i];
    return (this.#known[i] = this.#decoder.decode(this.#bytes.subarray(i === 0 ? 0 : this.#ends[i - 1], this.#ends[i])));
  }

  all(): readonly string[] {
    const known = this.#known;
    if (this.#decoded !== Infinity) {
      this.#decoded = Infinity;
      const whole = this.#decoder.decode(this.#bytes);
      // Counts UTF-16 units before each end: none for a continuation byte, two for the first byte of four.
      for (let i = 0, at = 0, letter = 0; i < this.size; i++) {
        const begin = letter;
        for (; at < this.#ends[i]; at++) {
          const byte = this.#bytes[at];
          if ((byte & 0xc0) !== 0x80) letter += byte >= 0xf0 ? 2 : 1;
        }
        known[i] ??= whole.slice(begin, letter);
      }
    }
    return known as string[];
  }
}
