// SPDX-License-Identifier: Apache-2.0
// Marks on the timeline: restarts, notes that people set, and minutes under pressure. A click on a flag compares the time
// after it with the time before; of a minute under pressure it shows what threads waited for.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import "./flags.css";
import type { Marks } from "../answers";
import { addressWith, post } from "../api";
import { Asking } from "../asking";
import { FLAG } from "../icons";
import { useKeys } from "../keys";
import { hasChoice } from "../measure";
import { Menu, closeMenu, openMenu } from "../menu";
import { about, askedWindow, profile } from "../questions";
import { NO_SELECTION, go, isLive, question } from "../state";
import { dateTime, printable, seconds } from "../text";
import { REASON_TEXTS } from "../waits";
import { type Flag, around, flagsOf, isPressure, worstOf } from "./marks";
import type { Span } from "./span";
import { moment } from "./ticks";

const LONGEST = 200; // characters of a note
const MOST_LINES = 8;
const LONGEST_NAME = 30;

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

// One minute of a flag, and what threads waited for in it.
function linesOfPressure({ marks: all }: Flag): string[] {
  const mark = worstOf(all);
  const waits = (mark.waits ?? []).map(({ comm, id, reason, seconds: long }) =>
    `${printable(comm, LONGEST_NAME)} (${id.split("@")[0]}): ${REASON_TEXTS[reason].name.toLowerCase()} ${seconds(long)}`);
  const others = all.length > 1 ? [`the worst of ${all.length} minutes`] : [];
  return [`${moment(mark.time_ms)} ${printable(mark.text, LONGEST)}`, ...others, ...waits];
}

const at = (ms: number) => new Date(ms).toISOString();

function showMinute({ marks: all }: Flag) {
  const { time_ms, to_ms } = worstOf(all);
  go({
    question: { from: at(time_ms), to: at(to_ms ?? time_ms + 60_000), offset_from: "", offset_to: "", measure: hasChoice.peek() ? "wait" : "" },
    base: null, view: { around: "" },
  });
}

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
  const all = marks.answer.value === null || marks.problem.value !== null ? [] : marks.answer.value.marks;
  const flags = flagsOf(all.filter((mark) => !isPressure(mark)), view, width.value);
  const pressed = flagsOf(all.filter(isPressure), view, width.value);
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
      {pressed.map((flag) => {
        const lines = linesOfPressure(flag);
        const does = hasChoice.value ? "show what waited" : "show that minute";
        return (
          <li key={`pressure ${flag.marks[0].time_ms}`} class="pressed" style={{ left: `${100 * flag.place}%` }}>
            <button type="button" class={`flag pressure${flag.place > 0.5 ? " late" : ""}`} aria-label={`${lines.join(", ")}. ${does[0].toUpperCase()}${does.slice(1)}`}
              onClick={() => showMinute(flag)}>
              <span class="flag-text" aria-hidden="true">{lines.map((line) => <span key={line}>{line}</span>)}<small>click: {does}</small></span>
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
