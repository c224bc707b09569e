// SPDX-License-Identifier: Apache-2.0
// The selectors and filters, each with a button to remove it, and a form to add more.
import { useSignal } from "@preact/signals";

import { findProcess, isDiff, profile } from "../questions";
import { CROSS, FILTER } from "../icons";
import { useKeys } from "../keys";
import { Menu, closeMenu, openMenu } from "../menu";
import { NO_SELECTION, type Question, SELECTORS, type Selector, ask, base, compare, go, look, question, view } from "../state";
import { printable, span } from "../text";
import { agoName } from "../time/ago";
import { REASON_TEXTS, reasonOfFocus } from "../waits";

interface ChipProperties {
  name: string;
  value: string;
  onRemove: () => void;
}

function Chip({ name, value, onRemove }: ChipProperties) {
  return (
    <li class="chip">
      <span>{name}</span> <bdi title={value}>{value}</bdi>
      <button type="button" aria-label={`Remove ${name} ${value}`} onClick={onRemove}>{CROSS}</button>
    </li>
  );
}

export const SELECTOR_NAMES: Record<Selector, string> = {
  pid: "Process", tid: "Thread", comm: "Thread name", exe: "Program", unit: "Unit", container: "Container", cgroup: "Control group", uid: "User id",
  tree: "Process and its children",
};
const PATTERNS = { focus: "Only stacks with", ignore: "No stacks with", hide: "Without functions" } as const;
const GROUPS: Record<string, string> = {
  process: "process", thread: "thread", comm: "thread name", exe: "program", unit: "unit", container: "container", user: "user", tree: "parent", none: "nothing",
};
const SIDES = { user: "user code only", kernel: "kernel only" } as const;

function chosen(selector: Selector, value: string): string {
  if (selector !== "pid" && selector !== "tree") return printable(value, 120);
  const process = findProcess(value);
  return process === undefined ? value.split("@")[0] : `${printable(process.comm, 60)} ${process.pid}`;
}

function patternText(pattern: string): string {
  const reason = reasonOfFocus(pattern);
  return reason === null ? printable(pattern, 120) : `waits: ${REASON_TEXTS[reason].name}`;
}

const without = (values: readonly string[], value: string) => values.filter((other) => other !== value);

// For the side to compare with: only selectors that differ from the query's.
function baseline(): string {
  const compared = base.value!;
  const parts = SELECTORS.flatMap((selector) => compared[selector].map((value) => chosen(selector, value)));
  const answer = profile.answer.value;
  if (compared.ago !== "") {
    const at = answer !== null && isDiff(answer) ? `${span(answer.before.window.asked.from_ms, answer.before.window.asked.to_ms)}, ` : "";
    parts.unshift(`${at}the same time ${agoName(compared.ago)}`);
  } else if (compared.from !== "" || compared.to !== "") {
    const [from, to] = [compared.from, compared.to].map((time) => Date.parse(time));
    if (!Number.isNaN(from + to)) parts.unshift(span(from, to));
    else if (answer !== null && isDiff(answer)) parts.unshift(span(answer.before.window.asked.from_ms, answer.before.window.asked.to_ms));
    else parts.unshift(`${compared.from || "…"} – ${compared.to || "now"}`);
  }
  return parts.join(" · ") || "the same time before";
}

export function Chips() {
  const asked = question.value;
  const chips = [
    ...SELECTORS.flatMap((selector) => asked[selector].map((value) => (
      <Chip key={`${selector} ${value}`} name={SELECTOR_NAMES[selector]} value={chosen(selector, value)} onRemove={() => ask({ [selector]: without(asked[selector], value) })} />
    ))),
    ...(Object.keys(PATTERNS) as (keyof typeof PATTERNS)[]).filter((key) => asked[key] !== "").map((key) => (
      <Chip key={key} name={PATTERNS[key]} value={patternText(asked[key])} onRemove={() => ask({ [key]: "" })} />
    )),
  ];
  if (asked.side !== "") chips.push(<Chip key="side" name="Stacks" value={SIDES[asked.side]} onRemove={() => ask({ side: "" })} />);
  if (asked.group !== "") chips.push(<Chip key="group" name="By" value={GROUPS[asked.group] ?? printable(asked.group, 60)} onRemove={() => ask({ group: "" })} />);
  if (asked.lines) chips.push(<Chip key="lines" name="Functions" value="by line" onRemove={() => ask({ lines: false })} />);
  if (!asked.inlines) chips.push(<Chip key="inlines" name="Inlined functions" value="left out" onRemove={() => ask({ inlines: true })} />);
  if (asked.names !== "") chips.push(<Chip key="names" name="Names" value="in full" onRemove={() => ask({ names: "" })} />);
  if (base.value !== null) chips.push(<Chip key="base" name="Compared with" value={baseline()} onRemove={() => compare(null)} />);
  const { fold } = view.value;
  for (const module of fold) chips.push(<Chip key={`fold ${module}`} name="In one frame" value={printable(module, 120)} onRemove={() => look({ fold: without(fold, module) })} />);
  if (chips.length === 0) return null;
  const reset: Partial<Question> = { ...NO_SELECTION, group: "", focus: "", ignore: "", hide: "", lines: false, inlines: true, names: "" };
  return (
    <ul id="chips" class="chips" aria-label="What is shown">
      {chips}
      {chips.length > 1 && <li><button type="button" class="chip-reset" onClick={() => go({ question: reset, base: null, view: { fold: [] } })}>Remove all</button></li>}
    </ul>
  );
}

export function AddFilter() {
  useKeys("Bar", [
    { key: "f", what: "Filter", act: () => openMenu("filters") },
    { key: "d", what: "Compare with the time before, or stop comparing", act: () => compare(base.peek() === null ? {} : null) },
  ]);
  const key = useSignal<string>("focus");
  const value = useSignal("");
  const asked = question.value;
  const isPattern = key.value in PATTERNS;
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const written = value.value.trim();
    if (written === "") return;
    const selector = key.value as Selector;
    ask(isPattern ? { [key.value]: written } : { [selector]: [...without(asked[selector], written), written] });
    value.value = "";
    closeMenu("filters");
  };
  const entry = (label: string, isOn: boolean, act: () => void) => (
    <button type="button" class="entry" aria-pressed={isOn} onClick={act}>{label}<small>{isOn ? "on" : ""}</small></button>
  );
  const choice = (label: string, changes: Partial<Question>, isOn: boolean) => entry(label, isOn, () => ask(changes));
  const isCompared = base.value !== null;
  return (
    <Menu id="filters" label="Filter" icon={FILTER}>
      <form class="filter-form" onSubmit={submit}>
        <select aria-label="What to filter by" value={key.value} onChange={(event) => (key.value = event.currentTarget.value)}>
          {Object.entries(PATTERNS).map(([name, label]) => <option key={name} value={name}>{label} …</option>)}
          {SELECTORS.map((name) => <option key={name} value={name}>{SELECTOR_NAMES[name]} …</option>)}
        </select>
        <input type="text" aria-label="Value" autocomplete="off" spellcheck={false} placeholder={isPattern ? "function, as a regular expression" : "name or number"}
          value={value.value} onInput={(event) => (value.value = event.currentTarget.value)} />
        <button type="submit" class="primary">Add</button>
      </form>
      <hr />
      {entry("Compare with the same time before", isCompared, () => compare(isCompared ? null : {}))}
      {choice("User code only", { side: asked.side === "user" ? "" : "user" }, asked.side === "user")}
      {choice("Kernel only", { side: asked.side === "kernel" ? "" : "kernel" }, asked.side === "kernel")}
      {choice("Tell functions apart by line", { lines: !asked.lines }, asked.lines)}
      {choice("Leave out inlined functions", { inlines: !asked.inlines }, !asked.inlines)}
      {choice("Names with template arguments", { names: asked.names === "" ? "full" : "" }, asked.names === "full")}
      <hr />
      <label class="entry">
        First level
        <select value={asked.group} onChange={(event) => ask({ group: event.currentTarget.value })}>
          <option value="">as fits</option>
          {Object.entries(GROUPS).map(([name, label]) => <option key={name} value={name}>{label}</option>)}
        </select>
      </label>
    </Menu>
  );
}
