// SPDX-License-Identifier: Apache-2.0
// The daemon's answers as in docs/api.md, with only the members that the page uses.

import type { GraphAnswer } from "./graph/tree/graph_answer";
import type { Reason } from "./waits";

export interface Window {
  from: string;
  to: string;
  from_ms: number;
  to_ms: number;
}

export type Counts = Record<string, number>;

export interface Quality {
  whole: number;
  guessed: number;
  truncated: Counts;
  lost: Counts;
  frequencies: { hz: number; share: number }[];
}

export interface Coverage {
  cpu_seconds_accounted: number | null;
  thread_seconds?: number | null; // of waiting time: for how long threads existed
  thread_seconds_error?: number | null;
  share: number | null;
}

// The common part of answers about a window.
export interface About {
  measure: "cpu" | "wait" | "wall"; // of `samples` and `cpu_seconds`
  disk_account?: "none" | "some" | "all"; // threads whose waits for block devices the kernel counts; none of CPU time
  window: { asked: Window; used: Window };
  resolution_ms: number;
  period_ns: number;
  frequency_hz: number;
  samples: number;
  cpu_seconds: number;
  quality: Quality;
  missing: { from_ms: number; to_ms: number; reason: string; cpu: number | null }[]; // cpu null: of all, or not known
  visible_uid: number | null; // null: all users' processes; otherwise only this user's, the only ones that the viewer
                              // may see
  matched_ever: boolean | null; // whether the selection has samples at any time; null: not known
  warnings: string[];
}

export interface Process {
  id: string; // pid@start_ticks
  pid: number;
  comm: string;
  executable: string | null;
  started: string | null;
  ended: string | null;
  command_line: string | null;
  uid: number | null;
  unit: string | null;
  container: string | null;
  cgroup: string | null;
  parent: string | null;
}

export interface ProcessUsage extends Process {
  samples: number;
  cpu_seconds: number;
}

export interface Processes extends About {
  processes: ProcessUsage[];
}

export interface ThreadUsage {
  tid: number;
  comm: string;
  process: Process;
  samples: number;
  cpu_seconds: number;
  waits?: Partial<Record<Reason, number>>; // seconds; none of CPU time
  holders?: LockHolder[]; // of the locks for which it waited, as far as known
}

export interface LockHolder {
  tid: number;
  comm: string | null;
  seconds: number;
}

export interface Threads extends About {
  threads: ThreadUsage[];
}

// The places of one function, with its samples. null: not known.
interface OfFunction extends About {
  function: { name: string; module?: string } | null; // null: it is in no stack
  self: number;
  total: number;
}

export interface SourceLine {
  module: string;
  file: string | null;
  line: number | null;
  self: number;
  total: number;
}

// Text near the lines of a file.
export interface SourceText {
  module: string;
  file: string;
  reason: string | null; // why lines are missing
  newer: boolean; // than the program, so that lines may have moved
  lines: { line: number; text: string }[];
}

export interface FunctionLines extends OfFunction {
  lines: SourceLine[];
  texts?: SourceText[];
}

export interface CodePart {
  module: string | null;
  around: string | null; // the function that it is compiled into, if that is another one
  reason: string | null; // why there are addresses alone
  self: number;
  instructions: { address: string | null; bytes: string | null; text: string | null; file?: string; line?: number; self: number; callees: number }[];
}

export interface FunctionInstructions extends OfFunction {
  parts: CodePart[];
}

// A module with functions that have no name.
export interface UnnamedModule {
  module: string;
  samples: number;
  reason: string;
}

export interface Profile extends About {
  processes: Process[];
  symbolised_share: number;
  unnamed: UnnamedModule[];
  coverage: Coverage;
  graph: GraphAnswer;
}

// One side of a comparison.
export interface Side extends About {
  coverage: Coverage;
}

export interface Diff {
  normalise: "samples" | "time";
  before: Side;
  after: Side;
  warnings: string[];
  graph: GraphAnswer;
}

export interface Steps {
  user_samples: number[];
  kernel_samples: number[];
  user_cpu_ms: number[];
  kernel_cpu_ms: number[];
}

export interface Timeline extends About {
  step_ms: number;
  start_ms: number;
  steps: Steps;
  waits?: Partial<Record<Reason, number[]>>; // milliseconds of each step; none of CPU time
  lost: { from_ms: number; to_ms: number; samples: number }[];
  gaps: { from_ms: number; to_ms: number }[];
  processes: (Process & { steps: Steps })[];
}

export interface Heatmap extends About {
  start_ms: number;
  columns: number;
  rows: number;
  most: number;
  counts: number[]; // of second c, part r at counts[c * rows + r]
}

// "restart": of a program, or of flamed itself. "note": set by a user. "pressure": a minute in which threads waited for
// much of the time.
export interface Mark {
  time_ms: number;
  kind: "note" | "restart" | "pressure";
  text: string;
  to_ms?: number; // end of the minute, as the next ones with "pressure" only
  pressure?: Record<string, number>; // shares of the minute, by resource
  waits?: { id: string; comm: string; reason: Reason; seconds: number }[] | null; // worst first; null: not known
}

export interface Marks {
  marks: Mark[];
}

// A file with minutes, in the place of the host.
export interface HistoryFile {
  name: string;
  host: string | null;
  window: Window;
}

export interface Health {
  status: string;
  file?: HistoryFile;
  oldest_ms?: number; // start of the oldest minute that answers may have
  components: { name: string; ok: boolean; detail: string }[];
  measures?: string[];
}

// application/problem+json
export interface Problem {
  type?: string;
  status?: number;
  title?: string;
  detail?: string;
  parameter?: string;
}
