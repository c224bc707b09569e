// SPDX-License-Identifier: Apache-2.0
// The profile: the functions that ran, and their callers.
import { computed, signal } from "@preact/signals";

import "./graph.css";
import "./save";
import type { About, Problem } from "../answers";
import { CANCELLED } from "../asking";
import { isCpu } from "../measure";
import { isDiff, profile } from "../questions";
import { type Key, useKeys } from "../keys";
import { NO_SELECTION, ask, isMachine, look, view } from "../state";
import { type Action, Notice, Waiting } from "../states";
import { printable } from "../text";
import { heading } from "../title";
import { Code } from "./code/code_view";
import { Details } from "./details";
import { FlameBox } from "./shown/flame_box";
import type { Model } from "./tree/model";
import { type Half, fetching, halves, isBeside, isMiddleMissing, middle, mode, selectNode, showSandwich, shown, zoomDrawn, zoomHalf } from "./shown/shown";
import { Reasons } from "./reasons";
import { TimeOrder } from "./order/order_view";
import { Summary } from "./summary";
import { FunctionTable } from "./table/table";
import { Crumbs, Legend, SearchResult, Toolbar } from "./toolbar";

function describe(problem: Problem) {
  const actions: Action[] = [{ label: "Try again", act: () => profile.again() }];
  if (problem.parameter === "pid" || problem.parameter === "tree") actions.unshift({ label: "Whole machine", act: () => ask(NO_SELECTION) });
  if (problem.parameter === "from" || problem.parameter === "to") actions.unshift({ label: "Last 15 minutes", act: () => ask({ from: "", to: "" }) });
  return <Notice title={problem.title ?? "Refused"} sentences={[printable(problem.detail ?? "")]} actions={actions} isBad={problem !== CANCELLED} />;
}

const NOTHING: Record<About["measure"], string> = {
  cpu: "No CPU was used in this window.",
  wait: "No thread is known to have waited in this window, unless for work: that is under Idle.",
  wall: "No CPU was used in this window, and no thread is known to have waited.",
};

function describeEmpty({ measure, warnings, matched_ever }: About) {
  // Another window helps only if it has samples.
  const isNever = matched_ever === false;
  const actions: Action[] = isNever ? [] : [{ label: "Last hour", act: () => ask({ from: "now-1h", to: "" }) }];
  if (!isMachine.value) actions.unshift({ label: "Whole machine", act: () => ask(NO_SELECTION) });
  const sentences = warnings.length > 0 ? warnings.map((warning) => printable(warning)) : [NOTHING[measure]];
  return <Notice title={isNever ? "Never sampled" : "No samples here"} sentences={sentences} actions={actions} />;
}

// Not the progress itself, which changes with each piece of the answer.
const isAsked = computed(() => profile.progress.value !== null);

// The latest text for screen readers.
const said = signal("");
const say = (text: string) => (said.value = text);

function Sandwich() {
  const name = middle.value;
  const half = (which: Half, label: string, caption: string) => (
    <div class="half">
      <h3>{caption}</h3>
      <div class="half-graph">
        <FlameBox id={`graph-${which}`} label={label} shown={halves[which]} say={say} select={() => {}}
          zoom={(of: Model, node: number) => zoomHalf(which, of, node)} />
      </div>
    </div>
  );
  return (
    <div class="sandwich">
      <FunctionTable choose={showSandwich} isNarrow />
      <div class="halves">
        <p class="middle" id="middle">{name === null ? "No function here" : <><bdi>{printable(name, 300)}</bdi>{isMiddleMissing.value && " is not in this profile"}</>}</p>
        {half("callers", "What called it", "Called by")}
        {half("callees", "What it called", "Calls")}
      </div>
    </div>
  );
}

function Stage({ isInert }: { isInert: boolean }) {
  if (mode.value === "table") return <FunctionTable />;
  if (mode.value === "sandwich") return <Sandwich />;
  if (mode.value === "code") return <Code />;
  if (mode.value === "time") return <TimeOrder say={say} />;
  const graph = <FlameBox id="graph" label={mode.value === "bottom-up" ? "Bottom-up graph" : "Flame graph"} shown={shown} isInert={isInert} zoom={(_, node) => zoomDrawn(node)} select={selectNode} say={say} />;
  if (!isBeside.value) return graph;
  return (
    <div class="sandwich">
      <FunctionTable isNarrow />
      <div class="half-graph">{graph}</div>
    </div>
  );
}

// The functions left out of the answer: while they are fetched, and if that failed.
function Fetching() {
  if (fetching.value === null) return null;
  const { text, action } = fetching.value;
  return (
    <p class="fetching" role="status">
      {printable(text)}
      {action !== undefined && <button type="button" class="quiet" onClick={action.act}>{action.label}</button>}
    </p>
  );
}

const HINTS = {
  sandwich: "Choose a function on the left; click zooms a half",
  table: "Enter shows callers and callees, or a module in the graph · right click for more",
  code: "Choose a function on the left",
  time: "Choose a thread on the left; click zooms to a call, Escape out",
};

const KEYS: readonly Key[] = [
  { key: "arrows", shown: "← → ↑ ↓", what: "To callers, callees, neighbours" },
  { key: "Enter", what: "Zoom into the frame; in the table, its callers and callees" },
  { key: "Backspace", what: "Zoom out by one caller" },
  { key: "Escape", what: "Show all" },
  { key: "menu", shown: "Menu Shift+F10", what: "Open the frame's menu" },
  { key: "g", what: "Next view: icicle, flame, bottom-up, sandwich, table, lines, over time", act: () => look({ mode: NEXT[view.peek().mode] }) },
  { key: "b", what: "The table beside the graph", act: () => look({ beside: !view.peek().beside }) },
];
const NEXT = { icicle: "flame", flame: "bottom-up", "bottom-up": "sandwich", sandwich: "table", table: "code", code: "time", time: "icicle" } as const;

// A component of its own, since each key changes it.
const Announcer = () => <p id="announcer" class="visually-hidden" aria-live="polite">{said.value}</p>;

export function Graph() {
  useKeys("Graph", KEYS);
  const answer = profile.answer.value;
  const problem = profile.problem.value;
  const facts = answer === null ? null : isDiff(answer) ? answer.after : answer;
  const isEmpty = facts !== null && facts.samples === 0 && !(answer !== null && isDiff(answer) && answer.before.samples > 0);
  const { name, more } = heading.value;
  const notice = problem !== null ? describe(problem) : isEmpty ? describeEmpty(facts) : null;
  return (
    <section class="profile" aria-labelledby="profile-title">
      <div class="pane-head">
        <h2 id="profile-title"><bdi>{name}</bdi>{more && <small>{more}</small>}</h2>
        <Toolbar />
      </div>
      <div class="place">
        <Crumbs />
        <SearchResult />
        {notice === null && <Summary />}
        {notice === null && <Reasons />}
      </div>
      <div class={isAsked.value ? "stage busy" : "stage"} id="stage" tabIndex={-1}>
        <Waiting asking={profile} what="the profile" />
        <Fetching />
        <Stage isInert={notice !== null} />
        {notice}
      </div>
      <p id="graph-help" class="visually-hidden">
        Arrow keys move between frames: {mode.value === "bottom-up" ? "to the largest caller, to the callee" : "to the largest callee, to the caller"}, to neighbours. Enter zooms into a frame, Backspace out of
        it, Escape shows all, the menu key or Shift F10 opens its menu.
      </p>
      <Announcer />
      <div class="under">
        {notice !== null ? <span /> : mode.value in HINTS ? <p class="hint">{mode.value === "time" && !isCpu.value ? "Choose a thread on the left" : HINTS[mode.value as keyof typeof HINTS]}</p> : <Details />}
        {notice === null && <Legend />}
      </div>
    </section>
  );
}
