// SPDX-License-Identifier: Apache-2.0
// Reads an answer with format=columns. Its long part, the numbers of the nodes, becomes typed arrays without a detour
// through JSON's: of a million nodes that would be three lists of a million values, twice the memory and time.

import { type FrameColumns, type FrameData, frameData } from "./frames";
import { type ModelData, type NodeColumns, type Numbers, type Scales, modelData } from "./model";

// What stands beside the tree. The members are those of docs/api.md.
export type Head = Record<string, unknown>;

// Of a comparison: all functions, those whose own samples changed most beyond chance first.
export interface FunctionColumns {
  frame: number[];
  self: number[];
  total: number[];
  self_before: number[];
  total_before: number[];
  z: number[];
  significant: number[];
}

export interface Columns {
  head: Head;
  frames: FrameData;
  functions: FunctionColumns | null;
  nodes: NodeColumns;
  scales: Scales | null;
}

// Quotation marks within texts are escaped, so this can only stand where the columns do.
const NODES = '"nodes":{"frame":[';
const COLUMN = /"(\w+)":\[/y;

const LARGEST = 2 ** 32 - 1;
const COMMA = 0x2c;
const CLOSED = 0x5d;
const ZERO = 0x30;

// The numbers from `at` up to the closing bracket, and where that is. Null when they are not all whole and positive.
function wholeNumbers(bytes: Uint8Array, at: number, expected: number): { values: Numbers; end: number } | null {
  let values: Numbers = new Uint32Array(expected);
  let count = 0;
  let value = 0;
  let digits = 0;
  for (let i = at; i < bytes.length; i++) {
    const byte = bytes[i];
    if (byte >= ZERO && byte <= ZERO + 9) {
      value = value * 10 + (byte - ZERO);
      digits++;
    } else if (byte === COMMA || byte === CLOSED) {
      if (digits > 0) {
        if (count === values.length) {
          const larger: Numbers = new (values.constructor as new (size: number) => Numbers)(2 * count + 16);
          larger.set(values);
          values = larger;
        }
        if (value > LARGEST && values instanceof Uint32Array) values = new Float64Array(values);
        values[count++] = value;
        value = 0;
        digits = 0;
      }
      if (byte === CLOSED) return { values: count === values.length ? values : values.slice(0, count), end: i };
    } else {
      return null;
    }
  }
  return null;
}

const compact = (values: number[]): Numbers => (values.some((value) => value > LARGEST) ? new Float64Array(values) : new Uint32Array(values));

interface Split {
  text: string; // the answer as JSON, its nodes left out
  nodes: Record<string, Numbers>;
}

function indexOf(bytes: Uint8Array, text: string) {
  const wanted = new TextEncoder().encode(text);
  for (let i = bytes.indexOf(wanted[0]); i !== -1; i = bytes.indexOf(wanted[0], i + 1)) {
    let same = 1;
    while (same < wanted.length && bytes[i + same] === wanted[same]) same++;
    if (same === wanted.length) return i;
  }
  return -1;
}

// Null where the answer is not laid out as the daemon does it: then it has to be read the long way.
function split(bytes: Uint8Array): Split | null {
  const from = indexOf(bytes, NODES);
  if (from === -1) return null;
  const decoder = new TextDecoder();
  const nodes: Record<string, Numbers> = {};
  let at = from + '"nodes":{'.length;
  let expected = Math.ceil((bytes.length - from) / 8);
  for (;;) {
    const name = decoder.decode(bytes.subarray(at, at + 40));
    COLUMN.lastIndex = 0;
    const match = COLUMN.exec(name);
    if (match === null) return null;
    const column = wholeNumbers(bytes, at + match[0].length, expected);
    if (column === null) return null;
    expected = column.values.length;
    nodes[match[1]] = column.values;
    at = column.end + 1;
    if (bytes[at] !== COMMA) break;
    at++;
  }
  return { text: `${decoder.decode(bytes.subarray(0, from))}"nodes":{${decoder.decode(bytes.subarray(at))}`, nodes };
}

interface Side {
  samples: number;
  cpu_seconds: number;
  window: { used: { from_ms: number; to_ms: number } };
}

// What a sample of each side is worth, as the daemon has normalised.
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

export function readColumns(bytes: Uint8Array): Columns {
  const parts = split(bytes);
  const answer = JSON.parse(parts?.text ?? new TextDecoder().decode(bytes)) as Head & {
    columns: FrameColumns & { nodes: Record<string, number[]>; functions?: FunctionColumns };
  };
  const { columns, ...head } = answer;
  const column = (name: string): Numbers | undefined => {
    const values = parts?.nodes[name] ?? columns.nodes[name];
    return Array.isArray(values) ? compact(values) : values;
  };
  const indices = (name: string) => {
    const values = column(name);
    if (values === undefined) throw new Error(`the answer has no column ${name}`);
    return values as Uint32Array;
  };
  const frame = indices("frame");
  const significant = column("significant");
  const nodes: NodeColumns = {
    frame, depth: indices("depth"), self: indices("self"),
    selfBefore: column("self_before"), significant: significant && new Uint8Array(significant),
  };
  if (frame.length === 0 || nodes.depth.length !== frame.length || nodes.self.length !== frame.length) throw new Error("the answer's columns are not of one length");
  return { head, frames: frameData(columns), functions: columns.functions ?? null, nodes, scales: scalesOf(head) };
}

// What a worker hands over.
export interface Read {
  head: Head;
  frames: FrameData;
  functions: FunctionColumns | null;
  model: ModelData;
}

export function readModel(bytes: Uint8Array): Read {
  const { head, frames, functions, nodes, scales } = readColumns(bytes);
  return { head, frames, functions, model: modelData(nodes, scales) };
}
