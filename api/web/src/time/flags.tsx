// SPDX-License-Identifier: Apache-2.0
// Marks on the timeline: restarts, and notes that people set. A click on a flag compares the time after it with the time
// before.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import "./flags.css";
import type { Marks } from "../answers";
import { addressWith, post } from "../api";
import { Asking } from "../asking";
import { FLAG } from "../icons";
import { useKeys } from "../keys";
import { Menu, closeMenu, openMenu } from "../menu";
import { about, askedWindow, profile } from "../questions";
import { NO_SELECTION, go, isLive, question } from "../state";
import { dateTime, printable } from "../text";
import { type Flag, around, flagsOf } from "./marks";
import type { Span } from "./span";
import { moment } from "./ticks";

const LONGEST = 200; // characters of a note
const MOST_LINES = 8;

const SELECTORS = ["pid", "exe", "unit", "container", "cgroup", "uid", "tree"] as const;

// Restarts of what is selected, and all notes.
const marks = new Asking<Marks>(() => {
  const parameters = new URLSearchParams({ from: "0" });
  for (const selector of SELECTORS) for (const value of question.value[selector]) parameters.append(selector, value);
  return addressWith("/marks", parameters);
}, { after: profile });

// The texts of a flag. On a busy host hundreds of restarts can share one.
function linesOf({ marks: all }: Flag): string[] {
  const lines = all.slice(0, MOST_LINES).map(({ time_ms, text }) => `${moment(time_ms)} ${printable(text, LONGEST)}`);
  return all.length > MOST_LINES ? [...lines, `and ${all.length - MOST_LINES} more`] : lines;
}

const at = (ms: number) => new Date(ms).toISOString();

function compareAround({ marks: [mark] }: Flag, now: number) {
  const window = askedWindow.peek();
  const sides = window === null ? null : around(mark, { from: window.from_ms, to: window.to_ms }, now);
  if (sides === null) return;
  const { before, after } = sides;
  go({
    question: { from: at(after.from), to: at(after.to), offset_from: "", offset_to: "" },
    base: { ...NO_SELECTION, from: at(before.from), to: at(before.to) }, view: { around: "" },
  });
}

// `view` is what the timeline shows from edge to edge.
export function Flags({ view }: { view: Span }) {
  const box = useRef<HTMLUListElement>(null);
  const width = useSignal(0);
  useEffect(() => {
    const list = box.current!;
    const resizes = new ResizeObserver(() => (width.value = list.clientWidth));
    resizes.observe(list);
    return () => resizes.disconnect();
  }, []);
  const flags = marks.answer.value === null || marks.problem.value !== null ? [] : flagsOf(marks.answer.value.marks, view, width.value);
  return (
    <ul class="flags" ref={box} aria-label="Marks" hidden={marks.answer.value === null}>
      {flags.map((flag) => {
        const lines = linesOf(flag);
        const isNote = flag.marks.some(({ kind }) => kind === "note");
        return (
          <li key={flag.marks[0].time_ms} style={{ left: `${100 * flag.place}%` }}>
            <button type="button" class={`flag${isNote ? "" : " restart"}${flag.place > 0.5 ? " late" : ""}`} aria-label={`${lines.join(", ")}. Compare after with before`}
              onClick={() => compareAround(flag, view.to)}>
              <span class="flag-text" aria-hidden="true">{lines.map((line) => <span key={line}>{line}</span>)}<small>click: compare after with before</small></span>
            </button>
          </li>
        );
      })}
    </ul>
  );
}

type Moment = "now" | "from" | "to";

// Those who see everything may set marks. The daemon decides, and its reason is shown.
export function AddMark() {
  useKeys("Timeline", [{ key: "m", what: "Add a mark", act: () => openMenu("add-mark") }]);
  const text = useSignal("");
  const when = useSignal<Moment | null>(null);
  const problem = useSignal("");
  const window = askedWindow.value;
  if (marks.answer.value === null || marks.problem.value !== null || window === null || about.value?.visible_uid !== null) return null;
  const chosen = when.value ?? (isLive.value ? "now" : "from");
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const written = text.value.trim();
    if (written === "") return;
    try {
      // Without a time it is the daemon's now: this clock may be ahead.
      await post("/marks", chosen === "now" ? { text: written } : { text: written, time_ms: chosen === "from" ? window.from_ms : window.to_ms });
    } catch (error) {
      problem.value = error instanceof Error ? error.message : String(error);
      return;
    }
    text.value = problem.value = "";
    closeMenu("add-mark");
    marks.again();
  };
  return (
    <Menu id="add-mark" label="Add a mark" icon={FLAG}>
      <form class="mark-form" onSubmit={submit}>
        <input type="text" aria-label="What happened" placeholder="What happened: a deploy, a change" maxLength={LONGEST} autocomplete="off" value={text.value}
          onInput={(event) => (text.value = event.currentTarget.value)} />
        <select aria-label="When" value={chosen} onChange={(event) => (when.value = event.currentTarget.value as Moment)}>
          <option value="now">now</option>
          <option value="from">at the window's start, {dateTime(window.from_ms)}</option>
          <option value="to">at the window's end, {dateTime(window.to_ms)}</option>
        </select>
        <button type="submit" class="primary">Add</button>
        {problem.value !== "" && <p role="alert">{printable(problem.value)}</p>}
      </form>
    </Menu>
  );
}
