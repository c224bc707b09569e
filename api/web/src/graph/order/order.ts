// SPDX-License-Identifier: Apache-2.0
// What a thread did from one moment to the next: single samples as a tree whose siblings stand in the order of time.
// Values are microseconds. A sample stands for the period before it.

import { type FrameColumns, Frames, frameData } from "../tree/frames";
import { Model } from "../tree/model";
import { textData } from "../tree/texts";

// A nominal limit of the rectangles that are drawn. What is shorter than the rest is left to its caller.
export const MOST_CALLS = 20_000;
// Parts of the shown time that are too short to be seen.
const LEAST = 1 / 4000;

// format=samples in docs/api.md.
export interface SamplesAnswer {
  window: { used: { from_ms: number; to_ms: number } };
  warnings: string[];
  columns: {
    strings: string[];
    kinds: string[];
    frames: { name: number[]; module: number[]; kind: number[]; full_name?: number[]; reason?: number[]; build_id?: number[]; file?: number[]; inlined?: number[] };
    nodes: { frame: number[]; caller: number[] };
    samples: { time_us: number[]; node: number[]; period_ns: number[] };
  };
}

export interface Samples {
  frames: Frames;
  idle: number; // the frame of time in which the thread was not sampled
  stacks: (node: number) => readonly number[]; // frames, outermost first
  time: readonly number[]; // microseconds since `startMs`
  node: readonly number[];
  period: readonly number[]; // microseconds
  startMs: number;
  endMs: number;
}

export const IDLE = "not sampled";

export function samplesOf({ window: { used }, columns }: SamplesAnswer): Samples {
  const { frames, nodes, samples } = columns;
  const strings = [...columns.strings, "", IDLE];
  const kinds = [...columns.kinds, "idle"];
  const text = strings.length - 1;
  const none = text - 1;
  const kind = kinds.length - 1;
  const column = (values: number[] | undefined, idle: number) => (values === undefined ? new Uint32Array(0) : Uint32Array.from([...values, idle]));
  const table: FrameColumns = {
    strings: textData(strings), kinds, name: column(frames.name, text), module: column(frames.module, none), kind: column(frames.kind, kind),
    fullName: column(frames.full_name, none), reason: column(frames.reason, none), buildId: column(frames.build_id, none), file: column(frames.file, none),
    line: new Uint32Array(0), inlined: Uint8Array.from(frames.inlined === undefined ? [] : [...frames.inlined, 0]),
  };
  const known = new Map<number, readonly number[]>([[0, []]]);
  const stacks = (node: number): readonly number[] => {
    let stack = known.get(node);
    if (stack === undefined) known.set(node, (stack = [...stacks(nodes.caller[node]), nodes.frame[node]]));
    return stack;
  };
  return {
    frames: new Frames(frameData(table)), idle: frames.name.length, stacks, time: samples.time_us, node: samples.node,
    period: samples.period_ns.map((ns) => ns / 1000), startMs: used.from_ms, endMs: used.to_ms,
  };
}

export interface Order {
  model: Model;
  merged: number; // calls that are drawn as a part of their caller
  leastUs: number; // those that are shorter than this
}

interface Call {
  frame: number;
  level: number; // from 1 on
  begin: number;
  end: number;
}

// The calls in [from, to), microseconds since the samples' start.
export function orderOf({ frames, idle, stacks, time, node, period, startMs }: Samples, from: number, to: number): Order {
  const seen = (to - from) * LEAST;
  const calls: Call[] = [];
  let merged = 0;
  // The calls that have not ended, outermost first.
  const open: number[] = [];
  const begins: number[] = [];
  const close = (level: number, end: number) => {
    while (open.length > level) {
      const call = { frame: open.pop()!, level: open.length + 1, begin: begins.pop()!, end };
      // Short ones remain at the first level, or nothing would be seen of a thread that seldom runs.
      if (end - call.begin >= (call.level === 1 ? Number.MIN_VALUE : seen)) calls.push(call);
      else merged++;
    }
  };
  let last = from; // where the sample before ended
  for (let i = 0; i < time.length; i++) {
    const until = Math.min(time[i], to);
    let since = Math.max(time[i] - period[i], from);
    if (until <= from || since >= to) continue;
    // A thread that goes on has its next sample a period later, or a little more on another CPU.
    if (since - last > Math.max(period[i], seen)) close(0, last);
    else since = last;
    const stack = stacks(node[i]);
    let same = 0;
    while (same < open.length && same < stack.length && open[same] === stack[same]) same++;
    close(same, since);
    for (let level = same; level < stack.length; level++) {
      open.push(stack[level]);
      begins.push(since);
    }
    last = until;
  }
  close(0, last);

  let leastUs = seen;
  let shown = calls;
  if (calls.length > MOST_CALLS) {
    leastUs = calls.map(({ begin, end }) => end - begin).sort((a, b) => b - a)[MOST_CALLS];
    shown = calls.filter(({ level, begin, end }) => level === 1 || end - begin > leastUs);
    merged += calls.length - shown.length;
  }
  shown.sort((a, b) => a.begin - b.begin || a.level - b.level);
  return { model: treeOf(), merged, leastUs };

  function treeOf() {
    const nodes = { frame: [0], depth: [0], self: [to - from] };
    // By level: the latest node, and how far the nodes below it go.
    const at = [0];
    const reached = [from];
    const add = (f: number, level: number, length: number) => {
      nodes.self[at[level - 1]] -= length;
      reached[level - 1] += length;
      nodes.depth.push(level);
      nodes.self.push(length);
      return nodes.frame.push(f) - 1;
    };
    for (const { frame, level, begin, end } of shown) {
      if (begin > reached[level - 1]) add(idle, level, begin - reached[level - 1]);
      at[level] = add(frame, level, end - begin);
      reached[level] = begin;
    }
    if (reached[0] < to) add(idle, 1, to - reached[0]);
    const columns = { frame: Uint32Array.from(nodes.frame), depth: Uint32Array.from(nodes.depth), self: Float64Array.from(nodes.self, (us) => Math.max(0, us)) };
    return Model.of(frames, columns, null, { startMs: startMs + from / 1000 });
  }
}
