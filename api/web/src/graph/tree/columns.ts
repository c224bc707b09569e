// SPDX-License-Identifier: Apache-2.0
// Reads an answer with format=columns-binary: JSON, followed by columns of numbers in their memory layout
// (docs/api.md). Nothing in it is trusted: each column must be within the answer, and each index within its target.
// model.ts checks that each node has a parent when it builds the tree.

import { type FrameColumns, type FrameData, frameData } from "./frames";
import { type ModelData, type NodeColumns, type Numbers, type Scales, modelData } from "./model";
import { type TextData, checkTexts } from "./texts";

// The members beside the tree, as in docs/api.md.
export type Head = Record<string, unknown>;

// For a comparison: all functions, those with the most significant change of self samples first.
export interface FunctionColumns {
  frame: Uint32Array;
  self: Numbers;
  total: Numbers;
  self_before: Numbers;
  total_before: Numbers;
  z: Float64Array;
  significant: Uint8Array;
}

export interface Columns {
  head: Head;
  frames: FrameData;
  functions: FunctionColumns | null;
  nodes: NodeColumns;
  scales: Scales | null;
}

const MAGIC = "FLAMEDC1";
const PREFIX = 16;
const TYPES = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, f64: Float64Array };
type Column = Uint8Array | Uint16Array | Uint32Array | Float64Array;

type Members = Record<string, unknown>;

const isObject = (value: unknown): value is Members => typeof value === "object" && value !== null && !Array.isArray(value);
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

// The columns of an object in the head, by name.
class Table {
  constructor(
    private readonly members: Members,
    private readonly data: ArrayBuffer,
    private readonly start: number, // where the data start
    private readonly path: string,
  ) {}

  static of(bytes: ArrayBuffer): { head: Members; columns: Table } {
    const ascii = String.fromCharCode(...new Uint8Array(bytes, 0, Math.min(MAGIC.length, bytes.byteLength)));
    if (!MAGIC.startsWith(ascii)) throw new Error("the answer is not in columns");
    if (bytes.byteLength < PREFIX) throw new SyntaxError("the answer ends in its first bytes");
    const view = new DataView(bytes);
    const start = PREFIX + view.getUint32(8, true);
    const end = start + view.getUint32(12, true);
    if (bytes.byteLength < end) throw new SyntaxError(`the answer has ${bytes.byteLength} bytes of ${end}`);
    if (bytes.byteLength > end || start % 8 !== 0) throw new Error("the answer's lengths are wrong");
    const { columns, ...head } = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, PREFIX, start - PREFIX))) as Members;
    if (!isObject(columns)) throw new Error("the answer has no columns");
    return { head, columns: new Table(columns, bytes, start, "") };
  }

  has(name: string) {
    return this.members[name] !== undefined;
  }

  table(name: string): Table {
    const members = this.members[name];
    if (!isObject(members)) throw new Error(`the answer has no columns ${this.path}${name}`);
    return new Table(members, this.data, this.start, `${this.path}${name}.`);
  }

  list(name: string): string[] {
    const values = this.members[name];
    if (!Array.isArray(values)) throw new Error(`the answer has no list ${this.path}${name}`);
    return values.map(String);
  }

  // A view of the answer's own bytes.
  column(name: string): Column {
    const place = this.members[name];
    const what = `column ${this.path}${name}`;
    if (!isObject(place)) throw new Error(`the answer has no ${what}`);
    const { type, at, count } = place;
    if (typeof type !== "string" || !Object.hasOwn(TYPES, type) || !isCount(at) || !isCount(count)) throw new Error(`the answer's ${what} has an unknown form`);
    const Kind = TYPES[type as keyof typeof TYPES];
    const size = Kind.BYTES_PER_ELEMENT;
    if (at % size !== 0 || at + count * size > this.data.byteLength - this.start) throw new Error(`the answer's ${what} lies outside of it`);
    return new Kind(this.data, this.start + at, count);
  }

  // Copies, so that none keeps the whole answer in memory.
  numbers(name: string): Numbers {
    const column = this.column(name);
    return column instanceof Float64Array ? column.slice() : new Uint32Array(column);
  }

  // Each less than `below`. An empty column if there is none.
  indices(name: string, below = 2 ** 32): Uint32Array {
    if (!this.has(name)) return new Uint32Array(0);
    const values = this.numbers(name);
    if (!(values instanceof Uint32Array)) throw new Error(`the answer's column ${this.path}${name} has fractions`);
    // A narrow type can't exceed a large bound.
    if (below >= 2 ** (8 * this.column(name).BYTES_PER_ELEMENT)) return values;
    let largest = 0;
    for (let i = 0; i < values.length; i++) if (values[i] > largest) largest = values[i];
    if (largest >= below) throw new Error(`the answer's column ${this.path}${name} points beyond its end: ${largest} of ${below}`);
    return values;
  }

  flags(name: string): Uint8Array {
    return new Uint8Array(this.indices(name, 2));
  }

  texts(name: string): TextData {
    const table = this.table(name);
    const text = table.column("text");
    if (!(text instanceof Uint8Array)) throw new Error(`the answer's column ${this.path}${name}.text has no bytes`);
    const texts = { bytes: text.slice(), ends: table.indices("ends") };
    checkTexts(texts);
    if ((texts.ends.at(-1) ?? 0) !== text.length) throw new Error("the answer has text after its last string");
    return texts;
  }
}

function sameLength(what: string, columns: readonly ArrayLike<number>[], optional: readonly ArrayLike<number>[] = []) {
  const { length } = columns[0];
  if (columns.some((column) => column.length !== length) || optional.some((column) => column.length !== 0 && column.length !== length)) {
    throw new Error(`the answer's columns of ${what} are not of one length`);
  }
}

function framesOf(columns: Table): FrameColumns {
  const strings = columns.texts("strings");
  const kinds = columns.list("kinds");
  const table = columns.table("frames");
  const text = (name: string) => table.indices(name, strings.ends.length);
  const frames: FrameColumns = {
    strings, kinds, name: text("name"), module: text("module"), kind: table.indices("kind", kinds.length),
    fullName: text("full_name"), reason: text("reason"), buildId: text("build_id"), file: text("file"),
    line: table.indices("line"), inlined: table.flags("inlined"),
  };
  const { name, module, kind, fullName, reason, buildId, file, line, inlined } = frames;
  sameLength("frames", [name, module, kind], [fullName, reason, buildId, file, line, inlined]);
  return frames;
}

function nodesOf(columns: Table, frames: number): NodeColumns {
  const table = columns.table("nodes");
  const nodes: NodeColumns = { frame: table.indices("frame", frames), depth: table.indices("depth"), self: table.numbers("self") };
  if (table.has("self_before")) nodes.selfBefore = table.numbers("self_before");
  if (table.has("significant")) nodes.significant = table.flags("significant");
  const { frame, depth, self, selfBefore, significant } = nodes;
  sameLength("nodes", [frame, depth, self], [selfBefore ?? [], significant ?? []]);
  if (frame.length === 0 || depth[0] !== 0) throw new Error("the answer's tree has no root");
  return nodes;
}

function functionsOf(columns: Table, frames: number): FunctionColumns {
  const table = columns.table("functions");
  const functions: FunctionColumns = {
    frame: table.indices("frame", frames), self: table.numbers("self"), total: table.numbers("total"), self_before: table.numbers("self_before"),
    total_before: table.numbers("total_before"), z: new Float64Array(table.column("z")), significant: table.flags("significant"),
  };
  sameLength("functions", Object.values(functions));
  return functions;
}

interface Side {
  samples: number;
  cpu_seconds: number;
  window: { used: { from_ms: number; to_ms: number } };
}

// The weight of a sample of each side, as the daemon normalised it.
function scalesOf(head: Head): Scales | null {
  if (head.before === undefined || head.after === undefined) return null;
  const worth = ({ samples, cpu_seconds, window }: Side) => {
    if (samples === 0) return 0;
    if (head.normalise !== "time") return 1 / samples;
    const seconds = (window.used.to_ms - window.used.from_ms) / 1000;
    return seconds > 0 ? cpu_seconds / samples / seconds : 0;
  };
  return { after: worth(head.after as Side), before: worth(head.before as Side) };
}

// Throws a SyntaxError if the answer is cut off.
export function readColumns(bytes: ArrayBuffer): Columns {
  const { head, columns } = Table.of(bytes);
  const frames = frameData(framesOf(columns));
  const count = frames.name.length;
  return {
    head, frames, functions: columns.has("functions") ? functionsOf(columns, count) : null, nodes: nodesOf(columns, count), scales: scalesOf(head),
  };
}

// The data that a worker transfers.
export interface Read {
  head: Head;
  frames: FrameData;
  functions: FunctionColumns | null;
  model: ModelData;
}

export function readModel(bytes: ArrayBuffer): Read {
  const { head, frames, functions, nodes, scales } = readColumns(bytes);
  return { head, frames, functions, model: modelData(nodes, scales) };
}
