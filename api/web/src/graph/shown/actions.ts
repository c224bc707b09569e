// SPDX-License-Identifier: Apache-2.0
// Actions on a frame.
import { type Selector, ask, groupOf, look, question, select, view } from "../../state";
import { printable } from "../../text";
import { copy } from "./copy";
import type { Groups } from "./groups";
import type { Model } from "../tree/model";
import { type Entry, openMenu } from "./menu";
import { bare } from "./bare";
import { foldModule, showCode, showSandwich } from "./shown";

const LONGEST = 1000; // bytes of an expression; the daemon takes 1024

// An RE2 expression that matches exactly this name.
export function exactly(name: string) {
  const quoted = name.replace(/[\\.+*?()|[\]{}^$]/g, "\\$&");
  if (new TextEncoder().encode(quoted).length + 2 <= LONGEST) return `^${quoted}$`;
  // For such a long name its beginning has to be enough.
  let start = name.slice(0, 240);
  if (/[\ud800-\udbff]$/.test(start)) start = start.slice(0, -1);
  return `^${start.replace(/[\\.+*?()|[\]{}^$]/g, "\\$&")}`;
}

// An expression that matches either; only the latter if both together are too long.
export function either(first: string, second: string) {
  if (first === "" || first === second) return second;
  const both = `${first}|${second}`;
  return new TextEncoder().encode(both).length <= LONGEST ? both : second;
}

function filtersFor(name: string): Entry[] {
  const expression = exactly(bare(name));
  const { ignore, hide } = question.peek();
  return [
    { label: "Focus", hint: "only stacks with it", act: () => ask({ focus: expression }) },
    { label: "Ignore", hint: "no stacks with it", act: () => ask({ ignore: either(ignore, expression) }) },
    { label: "Hide", hint: "callees go to its caller", act: () => ask({ hide: either(hide, expression) }) },
  ];
}

// By the grouping: what a node of the first level is, and what selects it.
const ONLY: Record<string, { what: string; selector: Selector }> = {
  exe: { what: "program", selector: "exe" }, unit: { what: "unit", selector: "unit" }, container: { what: "container", selector: "container" },
};
const PROCESS = /\((\d+)(?:\/\d+)?\)$/;

export function openFrameMenu(model: Model, node: number, x: number, y: number, returnTo: HTMLElement, zoom?: (node: number) => void) {
  const name = model.name(node);
  const { frames, frame } = model;
  const f = frame[node];
  const isCode = frames.isCode(f);
  const around: Entry[] = [];
  if (zoom !== undefined && node !== 0) around.push({ label: "Zoom in", hint: "Enter", act: () => zoom(node) });
  if (zoom !== undefined) around.push({ label: "Show all", hint: "Esc", act: () => zoom(0) });
  if (isCode) {
    around.push({ label: "Callers and callees", hint: "sandwich", act: () => showSandwich(name) });
    if (!frames.isFolded(f)) around.push({ label: "Lines and instructions", hint: "which line", act: () => showCode(name) });
    around.push({ label: "Show in the table", act: () => look({ mode: "table", rows: "", frame: name }) });
    around.push({ label: "Search for it", act: () => look({ search: name }) });
  }
  const pid = frames.kind(f) === "root" ? PROCESS.exec(name)?.[1] : undefined;
  const by = groupOf(question.peek(), view.peek().by);
  const only = ONLY[by];
  if (only !== undefined && node !== 0 && frames.kind(f) === "root" && !name.startsWith("[")) around.push({ label: `Only this ${only.what}`, act: () => ask({ [only.selector]: [name] }) });
  if (pid !== undefined) around.push({ label: "Only this process", hint: `pid ${pid}`, act: () => select({ pid: [pid] }) });

  const filters = isCode && !frames.isFolded(f) ? filtersFor(name) : [];
  const module = frames.module(f);
  const isInTime = model.startMs !== null;
  if (isCode && module !== "" && !isInTime) {
    const isFolded = frames.isFolded(f);
    filters.push({ label: `${isFolded ? "Unfold" : "Fold"} ${printable(module, 40)}`, hint: isFolded ? "show its functions" : "into one frame", act: () => foldModule(module, !isFolded) });
  }
  const { collapse } = view.peek();
  if (!isInTime) filters.push({ label: collapse ? "Unfold recursion" : "Fold recursion", act: () => look({ collapse: !collapse }) });

  const path = model.names(node);
  if (model.isInverted) path.reverse();
  const copies: Entry[] = [
    { label: "Copy name", act: () => void copy(name) },
    { label: "Copy stack", hint: "outermost first", act: () => void copy(path.join("\n")) },
  ];
  return openMenu(printable(name, 120), [around, filters, copies], x, y, returnTo);
}

// For a row of the table: a function in all places, or what functions are in.
export function openNameMenu(groups: Groups, group: number, x: number, y: number, returnTo: HTMLElement) {
  const name = groups.name(group);
  if (groups.by !== "") {
    const entries: Entry[] = [
      { label: "Show in the graph", act: () => look({ mode: "icicle", beside: true, part: name }) },
    ];
    return openMenu(printable(name, 120), [entries, [{ label: "Copy name", act: () => void copy(name) }]], x, y, returnTo);
  }
  const inGraph = (mode: "icicle" | "flame") => look({ mode, search: name });
  const around: Entry[] = [
    { label: "Callers and callees", hint: "Enter", act: () => showSandwich(name) },
    { label: "Lines and instructions", act: () => showCode(name) },
    { label: "Find in the graph", act: () => inGraph("icicle") },
  ];
  return openMenu(printable(name, 120), [around, filtersFor(name), [{ label: "Copy name", act: () => void copy(name) }]], x, y, returnTo);
}
