// SPDX-License-Identifier: Apache-2.0
// What the daemon answers, as docs/api.md has it; only the members that the page uses.

export interface Window {
  from: string;
  to: string;
  from_ms: number;
  to_ms: number;
}

export type Counts = Record<string, number>;

export interface Quality {
  whole: number;
  truncated: Counts;
  lost: Counts;
}

export interface Process {
  id: string;
  pid: number;
  comm: string;
  executable: string | null;
  ended: string | null;
}

export interface ProcessUsage extends Process {
  samples: number;
  cpu_seconds: number;
}

export interface Processes {
  cpu_seconds: number;
  processes: ProcessUsage[];
}

export interface FrameNode {
  name: string;
  kind?: string;
  module?: string;
  reason?: string;
  value: number;
  self?: number;
  children?: FrameNode[];
}

export interface Profile extends FrameNode {
  window: { asked: Window; used: Window };
  resolution_ms: number;
  frequency_hz: number;
  samples: number;
  cpu_seconds: number;
  quality: Quality;
  processes: Process[];
  warnings: string[];
}

export interface Health {
  status: string;
  components: { name: string; ok: boolean; detail: string }[];
}

// application/problem+json
export interface Problem {
  status?: number;
  title?: string;
  detail?: string;
  parameter?: string;
}
