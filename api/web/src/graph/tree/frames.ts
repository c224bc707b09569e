// SPDX-License-Identifier: Apache-2.0
// The distinct frames of an answer, as columns. A node refers to a frame f.

import { REASONS, type Reason, frameOf, reasonIn } from "../../waits";
import { type TextData, Texts, textData } from "./texts";

// The API's kinds, and those that the page distinguishes besides. A wait is the innermost frame of a stack that waits,
// and says why.
const CODE_KINDS = ["native", "inlined", "go", "python", "javascript", "java", "jit", "kernel", "vdso", "unnamed", "unknown", "folded", "idle", "marker", "root"] as const;
export type WaitKind = `wait ${Reason}`;
export type Kind = (typeof CODE_KINDS)[number] | WaitKind;
const waitKind = (reason: Reason): WaitKind => `wait ${reason}`;
export const KINDS: readonly Kind[] = [...CODE_KINDS, ...REASONS.map(waitKind)];
export const reasonOf = (kind: Kind): Reason | null => (kind.startsWith("wait ") ? (kind.slice("wait ".length) as Reason) : null);

// As in an answer. The column of a member that no frame has is empty.
export interface FrameColumns {
  strings: TextData;
  kinds: readonly string[];
  name: Uint32Array; // these are indices into strings
  module: Uint32Array;
  fullName: Uint32Array;
  reason: Uint32Array;
  buildId: Uint32Array;
  file: Uint32Array;
  kind: Uint32Array; // index into kinds
  line: Uint32Array;
  inlined: Uint8Array;
}

export interface FrameData {
  strings: TextData;
  name: Uint32Array;
  module: Uint32Array;
  kind: Uint8Array; // index into KINDS
  // Few frames have the other members. The column of a member that no frame has is empty.
  fullName: Uint32Array;
  reason: Uint32Array;
  buildId: Uint32Array;
  file: Uint32Array;
  line: Uint32Array;
}

// FNV-1a with its bits mixed once more, so that neighbours in the alphabet differ in colour.
function hashOfBytes(bytes: Uint8Array, from: number, to: number) {
  let value = 2166136261;
  for (let i = from; i < to; i++) value = Math.imul(value ^ bytes[i], 16777619);
  return (value ^ (value >>> 15)) >>> 0;
}

export function hashOf(text: string) {
  const bytes = new TextEncoder().encode(text);
  return hashOfBytes(bytes, 0, bytes.length);
}

const UNKNOWN = KINDS.indexOf("unknown");
const KERNEL = KINDS.indexOf("kernel");
const LONGEST_WAIT = Math.max(...REASONS.map((reason) => frameOf(reason).length));
const BRACKET = "[".charCodeAt(0);
const INLINED = KINDS.indexOf("inlined");
const FOLDED = KINDS.indexOf("folded");
const IDLE = KINDS.indexOf("idle");
const PRUNED = /^\(pruned: \d+ functions?\)$/;

export function frameData({ kinds, kind: given, inlined, ...columns }: FrameColumns): FrameData {
  const known = kinds.map((kind) => {
    const index = (KINDS as readonly string[]).indexOf(kind);
    return index === -1 ? UNKNOWN : index;
  });
  const kind = new Uint8Array(given.length);
  for (let f = 0; f < kind.length; f++) kind[f] = known[given[f]];
  // Inlined code of the kernel counts as the kernel's.
  inlined.forEach((isInlined, f) => {
    if (isInlined && (KINDS[kind[f]] === "native" || KINDS[kind[f]] === "go")) kind[f] = INLINED;
  });
  markWaits(columns, kind);
  return { ...columns, kind };
}

// The daemon calls them frames of the kernel. Only short texts with a bracket are decoded.
function markWaits({ name, strings: { bytes, ends } }: Pick<FrameColumns, "name" | "strings">, kind: Uint8Array) {
  const decoder = new TextDecoder();
  for (let f = 0; f < kind.length; f++) {
    if (kind[f] !== KERNEL) continue;
    const from = name[f] === 0 ? 0 : ends[name[f] - 1];
    const to = ends[name[f]];
    if (bytes[from] !== BRACKET || to - from > LONGEST_WAIT) continue;
    const reason = reasonIn(decoder.decode(bytes.subarray(from, to)));
    if (reason !== null) kind[f] = KINDS.indexOf(waitKind(reason));
  }
}

export class Frames {
  readonly size: number;
  readonly texts: Texts;
  readonly #hashes: Uint32Array; // 0: not known yet, except for one name in 2^32
  #ranks: Uint32Array | null = null;

  constructor(
    readonly data: FrameData,
    texts?: Texts, // those of data.strings, if they are decoded already
  ) {
    this.size = data.name.length;
    this.texts = texts ?? new Texts(data.strings);
    this.#hashes = new Uint32Array(this.size);
  }

  name(f: number) {
    return this.texts.at(this.data.name[f]);
  }
  module(f: number) {
    return this.texts.at(this.data.module[f]);
  }
  kind(f: number): Kind {
    return KINDS[this.data.kind[f]];
  }
  // The name's hash, equal in every answer, for colours. Computed on first use, since a screen shows some hundred of
  // twenty thousand names.
  hash(f: number) {
    const known = this.#hashes[f];
    if (known !== 0) return known;
    const { name, strings: { bytes, ends } } = this.data;
    const text = name[f];
    return (this.#hashes[f] = hashOfBytes(bytes, text === 0 ? 0 : ends[text - 1], ends[text]));
  }
  fullName(f: number) {
    return this.#text(this.data.fullName, f) || this.name(f);
  }
  reason(f: number) {
    return this.#text(this.data.reason, f);
  }
  buildId(f: number) {
    return this.#text(this.data.buildId, f);
  }
  file(f: number) {
    return this.#text(this.data.file, f);
  }
  // "file:line", "" if it is not known.
  source(f: number) {
    const file = this.file(f);
    const line = this.data.line[f] ?? 0;
    return file !== "" && line > 0 ? `${file}:${line}` : file;
  }
  // Replaces the functions that the daemon left out below its caller.
  isPruned(f: number) {
    return this.kind(f) === "marker" && PRUNED.test(this.name(f));
  }
  get hasFolded() {
    return this.data.kind.includes(FOLDED);
  }
  hasPruned() {
    for (let f = 0; f < this.size; f++) if (this.isPruned(f)) return true;
    return false;
  }
  // Time in which a thread was not sampled: nothing is drawn.
  isIdle(f: number) {
    return this.data.kind[f] === IDLE;
  }
  // Whether it stands for all functions of its module.
  isFolded(f: number) {
    return this.data.kind[f] === FOLDED;
  }
  // Whether it is a function, and not another kind of node.
  isCode(f: number) {
    const kind = this.kind(f);
    return kind !== "marker" && kind !== "root" && kind !== "idle";
  }

  // The rank of each frame by name. Frames with the same name are ordered by their number.
  ranks(): Uint32Array {
    if (this.#ranks !== null) return this.#ranks;
    const order = Array.from({ length: this.size }, (_, f) => f);
    const names = order.map((f) => this.name(f));
    order.sort((a, b) => (names[a] < names[b] ? -1 : names[a] > names[b] ? 1 : a - b));
    this.#ranks = new Uint32Array(this.size);
    for (let rank = 0; rank < order.length; rank++) this.#ranks[order[rank]] = rank;
    return this.#ranks;
  }

  #text(column: Uint32Array, f: number) {
    return column.length === 0 ? "" : this.texts.at(column[f]);
  }

  // These frames followed by one for each of these modules, and by frame the one in its place.
  withFolded(modules: readonly string[]) {
    const { name, module, kind, strings: { ends } } = this.data;
    const numbers = Uint32Array.from({ length: this.size }, (_, f) => f);
    const texts: number[] = []; // of the folded modules
    const known = new Map<number, number>(); // by the text of a module: the frame in the place of its functions, or -1
    for (let f = 0; f < this.size; f++) {
      const text = module[f];
      let folded = known.get(text);
      if (folded === undefined) {
        folded = this.module(f) !== "" && modules.includes(this.module(f)) ? this.size + texts.push(text) - 1 : -1;
        known.set(text, folded);
      }
      if (folded !== -1 && this.isCode(f)) numbers[f] = folded;
    }
    const none = Math.max(0, ends.findIndex((end, i) => end === (i === 0 ? 0 : ends[i - 1])));
    const extended = <Column extends Uint32Array | Uint8Array>(column: Column, added: ArrayLike<number>): Column => {
      const longer = new (column.constructor as new (size: number) => Column)(this.size + added.length);
      longer.set(column);
      longer.set(added, this.size);
      return longer;
    };
    const optional = (column: Uint32Array, value: number) => (column.length === 0 ? column : extended(column, texts.map(() => value)));
    const { fullName, reason, buildId, file, line, strings } = this.data;
    const folded = new Frames({
      strings, name: extended(name, texts), module: extended(module, texts), kind: extended(kind, texts.map(() => FOLDED)),
      fullName: optional(fullName, none), reason: optional(reason, none), buildId: optional(buildId, none), file: optional(file, none), line: optional(line, 0),
    }, this.texts);
    return { folded, numbers };
  }

  // These frames followed by those of `other`, and the new numbers of the latter. Equal frames become one.
  joined(other: Frames) {
    const strings = [...this.texts.all()];
    const indices = new Map(strings.map((text, index) => [text, index]));
    const index = (text: string) => {
      let found = indices.get(text);
      if (found === undefined) indices.set(text, (found = strings.push(text) - 1));
      return found;
    };
    const key = (frames: Frames, f: number) => `${frames.data.kind[f]}\0${frames.name(f)}\0${frames.module(f)}\0${frames.source(f)}`;
    const known = new Map<string, number>();
    for (let f = 0; f < this.size; f++) known.set(key(this, f), f);
    const numbers = new Uint32Array(other.size);
    const added: number[] = [];
    for (let f = 0; f < other.size; f++) {
      const same = known.get(key(other, f));
      numbers[f] = same ?? this.size + added.push(f) - 1;
    }
    const extended = (own: Uint32Array, of: (f: number) => number) => {
      const column = new Uint32Array(this.size + added.length);
      column.set(own);
      added.forEach((f, i) => (column[this.size + i] = of(f)));
      return column;
    };
    const none = index("");
    const texts = (own: Uint32Array, column: Uint32Array) =>
      extended(own.length > 0 ? own : new Uint32Array(this.size).fill(none), (f) => index(other.#text(column, f)));
    const from = other.data;
    const kind = new Uint8Array(this.size + added.length);
    kind.set(this.data.kind);
    added.forEach((f, i) => (kind[this.size + i] = from.kind[f]));
    const joined = new Frames({
      kind,
      name: texts(this.data.name, from.name), module: texts(this.data.module, from.module), fullName: texts(this.data.fullName, from.fullName),
      reason: texts(this.data.reason, from.reason), buildId: texts(this.data.buildId, from.buildId), file: texts(this.data.file, from.file),
      line: extended(this.data.line, (f) => from.line[f] ?? 0),
      strings: textData(strings), // last: the columns before it add theirs
    });
    return { joined, numbers };
  }
}
