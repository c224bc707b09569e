// SPDX-License-Identifier: Apache-2.0
// The processes that used CPU in the window, and the selected ones. Only visible rows are in the document.
import { computed, signal, useComputed, useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

import "./processes.css";
import type { ThreadUsage, Threads } from "../answers";
import { addressWith } from "../api";
import { Asking } from "../asking";
import { useKeys } from "../keys";
import { isCpu } from "../measure";
import { processes, profile } from "../questions";
import { type Grouping, SELECTORS, by, look, question, select, view, windowOnly } from "../state";
import { Waiting } from "../states";
import { brief, percent, printable } from "../text";
import { activity, courses, inSight } from "./courses";
import { type Row, cpuOf, keysAround, matching, rowsOf } from "./rows";
import { Sparkline } from "./sparkline";

const ROW_PX = 30; // as in processes.css
const LEVEL_PX = 16;
const BEYOND = 6; // rows above and below the visible ones

const GROUPINGS: readonly [Grouping, string][] = [
  ["", "program"], ["unit", "unit"], ["container", "container"], ["user", "user"], ["tree", "parent"], ["pid", "nothing"],
];

const open = signal<ReadonlySet<string>>(new Set()); // keys of rows

const PROCESS = "process ";
const threads = new Asking<Threads>(() => {
  const ids = [...open.value].filter((key) => key.startsWith(PROCESS)).map((key) => key.slice(PROCESS.length));
  if (ids.length === 0) return null;
  const parameters = windowOnly(question.value);
  for (const id of ids) parameters.append("pid", id);
  return addressWith("/threads", parameters);
}, { after: profile });

const usage = computed(() => {
  const answer = processes.answer.value;
  if (answer === null) return null;
  const lines = activity.answer.value;
  const byProcess = new Map<string, ThreadUsage[]>();
  for (const thread of threads.answer.value?.threads ?? []) {
    const known = byProcess.get(thread.process.id);
    if (known === undefined) byProcess.set(thread.process.id, [thread]);
    else known.push(thread);
  }
  return {
    processes: answer.processes,
    cpuSeconds: answer.cpu_seconds,
    machineSteps: lines === null ? null : cpuOf(lines.steps),
    steps: new Map((lines?.processes ?? []).map(({ id, steps }) => [id, cpuOf(steps)])),
    courses: courses.value,
    threads: byProcess,
  };
});

// Signals of their own, since every zoom changes the view but not the list.
const filter = computed(() => view.value.filter);
const rows = computed(() => (usage.value === null ? [] : rowsOf(usage.value, { filter: filter.value, by: by.value, open: open.value })));
const found = computed(() => (usage.value === null ? 0 : matching(usage.value, filter.value).length));

function toggled(set: ReadonlySet<string>, value: string): ReadonlySet<string> {
  const next = new Set(set);
  if (!next.delete(value)) next.add(value);
  return next;
}

const toggle = ({ key }: Row) => (open.value = toggled(open.peek(), key));

// The same processes and threads as `row`, with pids with or without their start.
function isSelected(row: Row): boolean {
  const asked = question.value;
  const isIn = (wanted: readonly string[], given: readonly string[]) =>
    wanted.length === given.length && wanted.every((value) => given.includes(value) || given.includes(value.split("@")[0]));
  return SELECTORS.every((selector) => isIn(row.selects[selector] ?? [], asked[selector]));
}

const canBeSelected = (row: Row) => row.kind === "machine" || Object.keys(row.selects).length > 0;

const identity = (key: string) => `row-${key.replace(/[^\w@.-]/g, "_").slice(0, 200)}`;

interface RowProperties {
  row: Row;
  index: number;
  isActive: boolean;
}

function TreeRow({ row, index, isActive }: RowProperties) {
  const all = processes.answer.value!.cpu_seconds;
  const chosen = isSelected(row);
  const choose = (event: MouseEvent) => {
    if ((event.target as Element).closest(".twisty") !== null && row.isOpen !== null) toggle(row);
    else if (canBeSelected(row)) select(row.selects);
  };
  return (
    <div id={identity(row.key)} class={`row ${row.kind}${chosen ? " selected" : ""}${row.isEnded ? " ended" : ""}${isActive ? " active" : ""}`} role="treeitem"
      aria-level={row.level} aria-posinset={row.position} aria-setsize={row.beside} aria-selected={chosen} aria-expanded={row.isOpen ?? undefined} data-id={row.kind === "process" ? row.selects.pid![0] : row.kind === "machine" ? "" : row.key}
      title={row.title()} style={{ transform: `translateY(${index * ROW_PX}px)` }} onClick={choose}>
      <span class="share" aria-hidden="true" style={{ transform: `scaleX(${all === 0 || row.kind === "machine" ? 0 : row.cpuSeconds / all})` }} />
      <span class={`twisty${row.isOpen === null ? " none" : row.isOpen ? " open" : ""}`} aria-hidden="true" style={{ marginLeft: `${(row.level - 1) * LEVEL_PX}px` }} />
      <span class="name"><bdi>{row.name}</bdi> <small>{row.more}{row.isEnded && <> <abbr title="ended">†<span class="visually-hidden"> ended</span></abbr></>}</small></span>
      <Sparkline steps={row.steps} />
      <span class="cpu"><span>{brief(row.cpuSeconds)}</span><small>{row.kind === "machine" ? "" : percent(row.cpuSeconds, all)}</small></span>
    </div>
  );
}

export function Processes() {
  const list = useRef<HTMLDivElement>(null);
  const field = useRef<HTMLInputElement>(null);
  const height = useSignal(600);
  const top = useSignal(0); // first visible row
  const activeKey = useSignal("");
  useKeys("Processes", [
    { key: "p", what: "Find a process", act: () => field.current?.select() },
    { key: "arrows", shown: "↑ ↓ ← →", what: "Move in the tree, open and close" },
    { key: "Enter", shown: "Enter", what: "Show the row under the cursor" },
  ]);

  useLayoutEffect(() => {
    const observer = new ResizeObserver(() => (height.value = list.current!.clientHeight));
    observer.observe(list.current!);
    return () => observer.disconnect();
  }, []);
  // Scrolls to the selection when the page is opened.
  const isFilled = useComputed(() => rows.value.length > 0);
  useEffect(() => {
    const process = usage.peek()?.processes.find(({ id, pid }) => question.peek().pid.some((asked) => asked === id || asked === String(pid)));
    if (process !== undefined) open.value = new Set([...open.peek(), ...keysAround(usage.peek()!, process, by.peek())]);
    const index = rows.peek().findIndex(isSelected);
    if (index > 0) show(index);
  }, [isFilled.value]);

  const all = rows.value;
  const active = Math.max(0, all.findIndex(({ key }) => key === activeKey.value));

  function scrolled() {
    top.value = Math.floor(list.current!.scrollTop / ROW_PX);
  }
  function show(index: number) {
    const box = list.current!;
    const y = index * ROW_PX;
    if (y < box.scrollTop) box.scrollTop = y;
    else if (y + ROW_PX > box.scrollTop + box.clientHeight) box.scrollTop = y + ROW_PX - box.clientHeight;
    // The event comes a frame later, and the active row must stay in the document until then.
    scrolled();
  }
  function activate(index: number) {
    const bounded = Math.max(0, Math.min(all.length - 1, index));
    if (all[bounded] === undefined) return;
    activeKey.value = all[bounded].key;
    show(bounded);
  }
  function move(event: KeyboardEvent) {
    if (event.ctrlKey || event.metaKey || event.altKey || all.length === 0) return;
    const row = all[active];
    const page = Math.max(1, Math.floor(height.peek() / ROW_PX) - 1);
    const outer = () => all.findLastIndex(({ level }, index) => index < active && level < row.level);
    switch (event.key) {
      case "ArrowDown": activate(activeKey.peek() === "" ? 0 : active + 1); break;
      case "ArrowUp": activate(active - 1); break;
      case "PageDown": activate(active + page); break;
      case "PageUp": activate(active - page); break;
      case "Home": activate(0); break;
      case "End": activate(all.length - 1); break;
      case "ArrowRight":
        if (row.isOpen === false) toggle(row);
        else if (row.isOpen) activate(active + 1);
        break;
      case "ArrowLeft":
        if (row.isOpen) toggle(row);
        else if (outer() >= 0) activate(outer());
        break;
      case "Enter":
      case " ":
        if (canBeSelected(row)) select(row.selects);
        break;
      default: return;
    }
    event.preventDefault();
  }
  function inField(event: KeyboardEvent) {
    if (event.key === "ArrowDown") {
      event.preventDefault();
      list.current!.focus();
      activate(0);
    } else if (event.key === "Enter" && view.peek().filter.trim() !== "") {
      const first = all.find((row) => row.kind !== "thread" && canBeSelected(row));
      if (first !== undefined) select(first.selects);
    } else if (event.key === "Escape") {
      look({ filter: "" }, "replace");
      field.current!.blur();
    }
  }

  const first = Math.max(0, top.value - BEYOND);
  const last = Math.min(all.length, top.value + Math.ceil(height.value / ROW_PX) + BEYOND);
  const drawn = all.slice(first, last);
  useEffect(() => {
    inSight.value = drawn;
  });
  const known = usage.value;
  const problem = processes.problem.value;
  return (
    <section class="processes" aria-labelledby="processes-title">
      <div class="pane-head">
        <h2 id="processes-title">Processes</h2>
        <label class="choice by">by
          <select id="by" aria-label="Group by" value={by.value} onChange={(event) => look({ by: event.currentTarget.value as Grouping, zoom: [], up: [], frame: "" })}>
            {GROUPINGS.map(([value, label]) => <option key={value} value={value}>{label}</option>)}
          </select>
        </label>
        <span id="processes-count" class="count" role="status">{known === null ? "" : filter.value.trim() === "" ? found.value : `${found.value} of ${known.processes.length}`}</span>
      </div>
      <label class="filter">
        <span class="visually-hidden">Find a process</span>
        <input id="process-filter" ref={field} type="search" placeholder="Name, pid, command, unit or container" autocomplete="off" spellcheck={false} value={filter.value}
          onInput={(event) => look({ filter: event.currentTarget.value }, "replace")} onKeyDown={inField} />
        <kbd aria-hidden="true">p</kbd>
      </label>
      <div class="process-box">
        <Waiting asking={processes} what="the list of processes" />
        <div id="process-list" class="process-list" ref={list} role="tree" tabIndex={0} aria-labelledby="processes-title" aria-activedescendant={all.length > 0 ? identity(all[active].key) : undefined}
          onScroll={scrolled} onKeyDown={move}>
          <div class="process-space" role="none" style={{ height: `${all.length * ROW_PX}px` }}>
            {drawn.map((row, index) => <TreeRow key={row.key} row={row} index={first + index} isActive={row.key === activeKey.value} />)}
          </div>
        </div>
        {problem !== null && known === null && <p class="none">{printable(problem.detail ?? problem.title ?? "")}</p>}
        {known !== null && found.value === 0 && <p class="none">{filter.value.trim() === "" ? (isCpu.value ? "No process used CPU in this window." : "Nothing is known of this window.") : "No process matches."}</p>}
      </div>
    </section>
  );
}
