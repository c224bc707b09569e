// SPDX-License-Identifier: Apache-2.0
// The length of a window, if its query shows it without the daemon. Pure.

const UNITS: Record<string, number> = { s: 1000, m: 60000, h: 3600000, d: 86400000 };
const DEFAULT_MS = 900000;

// Milliseconds since the Unix epoch, or before now for relative times; null for times of day.
function moment(text: string): { before?: number; at?: number } | null {
  const written = text.trim();
  if (/^(now)?$/.test(written)) return { before: 0 };
  const relative = /^now-((?:\d+(?:\.\d+)?[smhd])+)$/.exec(written);
  if (relative !== null) {
    let before = 0;
    for (const [, number, unit] of relative[1].matchAll(/(\d+(?:\.\d+)?)([smhd])/g)) before += Number(number) * UNITS[unit];
    return { before };
  }
  const at = /^\d{4}-\d{2}-\d{2}T.*(Z|[+-]\d{2}:\d{2})$/.test(written) ? Date.parse(written) : NaN;
  return Number.isNaN(at) ? null : { at };
}

export function lengthOf({ from, to }: { from: string; to: string }): number | null {
  if (from.trim() === "") return DEFAULT_MS;
  const start = moment(from);
  const end = moment(to);
  if (start === null || end === null) return null;
  if (start.before !== undefined && end.before !== undefined) return start.before - end.before;
  if (start.at !== undefined && end.at !== undefined) return end.at - start.at;
  return null;
}
