// SPDX-License-Identifier: Apache-2.0
// The lines of a function by file, and its instructions as far as they fit on the page.
import type { CodePart, SourceLine, SourceText } from "../../answers";

// A line with samples, or one near it: those have text. `isAfterGap` if lines before it are left out.
export interface LineRow {
  line: number | null;
  self: number;
  total: number;
  text: string | null; // null: not known
  isAfterGap: boolean;
}

export interface FileLines {
  file: string; // empty: not known
  module: string;
  self: number;
  rows: LineRow[];
  text: SourceText | null;
}

function addText(rows: LineRow[], { lines }: SourceText): void {
  const known = new Map(rows.map((row) => [row.line, row]));
  for (const { line, text } of lines) {
    const row = known.get(line);
    if (row !== undefined) row.text = text;
    else rows.push({ line, self: 0, total: 0, text, isAfterGap: false });
  }
}

// Files in the order of their own samples, lines in that of the text.
export function byFile(lines: readonly SourceLine[], texts: readonly SourceText[] = []): FileLines[] {
  const keyOf = (module: string, file: string | null) => `${module}\0${file ?? ""}`;
  const textOf = new Map(texts.map((text) => [keyOf(text.module, text.file), text]));
  const files = new Map<string, FileLines>();
  for (const { module, file, line, self, total } of lines) {
    const key = keyOf(module, file);
    let known = files.get(key);
    if (known === undefined) files.set(key, (known = { file: file ?? "", module, self: 0, rows: [], text: textOf.get(key) ?? null }));
    known.self += self;
    known.rows.push({ line, self, total, text: null, isAfterGap: false });
  }
  const all = [...files.values()];
  for (const { rows, text } of all) {
    if (text !== null) addText(rows, text);
    rows.sort((a, b) => (a.line ?? 0) - (b.line ?? 0));
    if (text !== null) rows.forEach((row, i) => { row.isAfterGap = i > 0 && row.line !== (rows[i - 1].line ?? 0) + 1; });
  }
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
