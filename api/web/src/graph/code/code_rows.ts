// SPDX-License-Identifier: Apache-2.0
// The lines of a function by file, and its instructions as far as they fit on the page.
import type { CodePart, SourceLine } from "../../answers";

export interface FileLines {
  file: string; // empty: not known
  module: string;
  self: number;
  lines: SourceLine[];
}

// Files in the order of their own samples, lines in that of the text.
export function byFile(lines: readonly SourceLine[]): FileLines[] {
  const files = new Map<string, FileLines>();
  for (const line of lines) {
    const key = `${line.module}\0${line.file ?? ""}`;
    let known = files.get(key);
    if (known === undefined) files.set(key, (known = { file: line.file ?? "", module: line.module, self: 0, lines: [] }));
    known.self += line.self;
    known.lines.push(line);
  }
  const all = [...files.values()];
  for (const { lines: own } of all) own.sort((a, b) => (a.line ?? 0) - (b.line ?? 0));
  return all.sort((a, b) => b.self - a.self);
}

// Rows beyond these make a page slow.
export const MOST_ROWS = 4000;

// A row of instructions: `isAfterGap` if those before it are left out.
export interface InstructionRow {
  instruction: CodePart["instructions"][number];
  isAfterGap: boolean;
}

const endOf = ({ address, bytes }: CodePart["instructions"][number]) => (address === null || bytes === null ? -1 : Number(address) + (bytes.length + 1) / 3);

// Those with samples, and of the others as many as there is room for, from the first on.
export function rowsOf({ instructions }: CodePart, room: number): InstructionRow[] {
  const isHot = (i: number) => instructions[i].self > 0 || instructions[i].callees > 0;
  let spare = Math.max(0, room - instructions.filter((_, i) => isHot(i)).length);
  const rows: InstructionRow[] = [];
  let previous = -1;
  instructions.forEach((instruction, i) => {
    if (!isHot(i) && spare-- <= 0) return;
    const end = previous === -1 ? -1 : endOf(instructions[previous]);
    rows.push({ instruction, isAfterGap: previous !== -1 && end !== -1 && Number(instruction.address) !== end });
    previous = i;
  });
  return rows;
}
