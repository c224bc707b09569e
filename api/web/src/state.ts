// SPDX-License-Identifier: Apache-2.0
// The page's state. It is in the address, so that back, reload and a sent link show the same: the query under the API's
// names (docs/api.md), and how its answer is shown.
import { batch, computed, signal } from "@preact/signals";

export const SELECTORS = ["pid", "tid", "comm", "exe", "unit", "container", "cgroup", "uid", "tree"] as const;
export type Selector = (typeof SELECTORS)[number];

// Values of one selector are alternatives.
export type Selection = Record<Selector, readonly string[]> & { side: "" | "user" | "kernel" };

// "": time on a CPU.
export type Measure = "" | "wait" | "wall";

// Times as entered ("now-15m", "14:05"); "" is the daemon's default: the last 15 minutes.
export interface Question extends Selection {
  from: string;
  to: string;
  measure: Measure;
  idle: "" | "show"; // threads that wait for work
  // Milliseconds: only that part of each second; "" is the whole.
  offset_from: string;
  offset_to: string;
  group: string;
  focus: string;
  ignore: string;
  hide: string;
  names: "" | "full";
  lines: boolean;
  inlines: boolean;
}

// The baseline of a comparison: another window, another selection (if given), or both.
export interface Baseline extends Selection {
  from: string;
  to: string;
  ago: string; // "1h": the window's own time so long ago; then from and to are ""
  normalise: "" | "time";
}

export type Mode = "icicle" | "flame" | "bottom-up" | "sandwich" | "table" | "code" | "time";
export type ColourBy = "kind" | "module" | "name";
// Of processes: "" is by program.
export type Grouping = "" | "unit" | "container" | "user" | "tree" | "pid";

export interface View {
  mode: Mode;
  colour: ColourBy;
  palette: "" | "blind"; // blind: colours of differences that colour-blind users can distinguish too
  search: string;
  filter: string; // of the processes
  by: Grouping; // what the list has at its first level, and the graph of many processes
  collapse: boolean; // recursion as one frame
  fold: readonly string[]; // modules, each as one frame
  heat: boolean; // the heat map is open
  pick: "" | "time"; // what a drag over the heat map chooses: a part of each second, or a stretch of time
  track: string; // the thread in the order of time, as "pid@start/tid"; "" is the one with the most samples
  at: string; // "FROM-TO" in milliseconds: the shown part of the thread's window
  around: string; // "FROM-TO" in milliseconds: the heat map's range, while the window is a part of it
  line: string; // likewise the timeline's range; "" is the retained history
  top: number; // the number of processes with lines of their own in the timeline
  beside: boolean; // the table is beside the graph
  rows: "" | "module" | "file"; // of the table: functions, or what they are in
  sort: string; // of the table: a column, with "-" before it for the largest first
  zoom: readonly string[]; // names from below the root down to the zoomed frame
  up: readonly string[]; // likewise in the bottom-up graph, from a function that ran to its zoomed caller
  code: "" | "instructions"; // what the chosen function's samples are shown by: source lines, or instructions
  frame: string; // the selected function: the sandwich's middle, the table's row, the code
  part: string; // the selected row of a table of modules or files
  callers: readonly string[]; // like `zoom`, for the sandwich's halves
  callees: readonly string[];
}

export const NO_SELECTION: Selection = {
  pid: [], tid: [], comm: [], exe: [], unit: [], container: [], cgroup: [], uid: [], tree: [], side: "",
};
const FIRST_QUESTION: Question = {
  ...NO_SELECTION, from: "", to: "", measure: "", idle: "", offset_from: "", offset_to: "", group: "", focus: "", ignore: "", hide: "", names: "", lines: false, inlines: true,
};
const FIRST_BASELINE: Baseline = { ...NO_SELECTION, from: "", to: "", ago: "", normalise: "" };
const FIRST_VIEW: View = {
  mode: "icicle", colour: "kind", palette: "", search: "", filter: "", by: "", collapse: false, fold: [], heat: false, pick: "", around: "", track: "", at: "", line: "", top: 0, beside: false, rows: "", sort: "", code: "", zoom: [], up: [], frame: "",
  part: "", callers: [], callees: [],
};

// The view's names in the address. The query's are the API's, the baseline's have the prefix base_.
const VIEW_KEYS: Record<keyof View, string> = {
  mode: "view", colour: "colour", palette: "palette", search: "search", filter: "processes", by: "by", collapse: "collapse", fold: "fold", heat: "heat", pick: "pick", around: "around", track: "track", at: "at", line: "line", top: "top", beside: "beside", rows: "rows", sort: "sort", code: "code",
  zoom: "zoom", up: "up", frame: "frame", part: "part", callers: "callers", callees: "callees",
};
// Names of functions can be of any length, and the daemon refuses addresses of more than 8 KiB. The part after the "#"
// is not sent to it.
const IN_FRAGMENT = new Set(["fold", "zoom", "up", "frame", "part", "callers", "callees"]);
const CHOICES: Record<string, readonly string[]> = {
  side: ["user", "kernel"], measure: ["wait", "wall"], idle: ["show"], names: ["full"], normalise: ["time"], mode: ["icicle", "flame", "bottom-up", "sandwich", "table", "code", "time"], code: ["instructions"],
  colour: ["kind", "module", "name"], palette: ["blind"], pick: ["time"], rows: ["module", "file"], by: ["unit", "container", "user", "tree", "pid"],
};

type Value = string | number | boolean | readonly string[];

const equal = (a: Value, b: Value) => (Array.isArray(a) ? a.join("\0") === (b as readonly string[]).join("\0") : a === b);

function write<T extends object>(parameters: URLSearchParams, values: T, first: T, name: (key: string) => string) {
  for (const [key, value] of Object.entries(values) as [string, Value][]) {
    if (equal(value, (first as Record<string, Value>)[key])) continue;
    if (Array.isArray(value)) for (const each of value) parameters.append(name(key), each);
    else parameters.set(name(key), typeof value === "boolean" ? String(Number(value)) : String(value));
  }
}

function read<T extends object>(parameters: URLSearchParams, first: T, name: (key: string) => string): T {
  const values = { ...first } as Record<string, Value>;
  for (const [key, initial] of Object.entries(first) as [string, Value][]) {
    const texts = parameters.getAll(name(key)).filter((text) => text !== "");
    if (texts.length === 0) continue;
    if (Array.isArray(initial)) values[key] = texts;
    else if (typeof initial === "boolean") values[key] = texts[0] !== "0";
    else if (typeof initial === "number") values[key] = Math.max(0, Math.min(64, Math.trunc(Number(texts[0])) || 0));
    else if (!(key in CHOICES) || CHOICES[key].includes(texts[0])) values[key] = texts[0];
  }
  return values as T;
}

const plain = (key: string) => key;
const based = (key: string) => (key === "normalise" ? key : `base_${key}`);
const viewed = (key: string) => VIEW_KEYS[key as keyof View];

interface State {
  question: Question;
  base: Baseline | null;
  view: View;
}

function fromAddress(address: URL): State {
  const { searchParams } = address;
  const all = new URLSearchParams([...searchParams, ...new URLSearchParams(address.hash.slice(1))]);
  const isCompared = searchParams.has("diff") || [...searchParams.keys()].some((key) => key.startsWith("base_"));
  return {
    question: read(searchParams, FIRST_QUESTION, plain),
    base: isCompared ? read(searchParams, FIRST_BASELINE, based) : null,
    view: read(all, FIRST_VIEW, viewed),
  };
}

// The page's address that shows `state`, without the origin.
export function addressOf({ question, base, view }: State): string {
  const query = new URLSearchParams();
  write(query, question, FIRST_QUESTION, plain);
  if (base !== null) {
    write(query, base, FIRST_BASELINE, based);
    if (![...query.keys()].some((key) => key.startsWith("base_"))) query.set("diff", "1");
  }
  const shown = new URLSearchParams();
  write(shown, view, FIRST_VIEW, viewed);
  const fragment = new URLSearchParams([...shown].filter(([key]) => IN_FRAGMENT.has(key)));
  for (const [key, value] of shown) if (!IN_FRAGMENT.has(key)) query.append(key, value);
  return `${location.pathname}${query.size > 0 ? `?${query}` : ""}${fragment.size > 0 ? `#${fragment}` : ""}`;
}

const first = fromAddress(new URL(location.href));

// Read them anywhere. Write them only by go() and the functions below, so that the address follows.
export const question = signal(first.question);
export const base = signal(first.base);
export const view = signal(first.view);

export const by = computed(() => view.value.by);

// Whether the window ends now.
export const isLive = computed(() => /^(now)?$/.test(question.value.to.trim()));

export const isMachine = computed(() => SELECTORS.every((selector) => question.value[selector].length === 0));

const same = (a: object | null, b: object | null) => JSON.stringify(a) === JSON.stringify(b);

// Signals change only with their content, so that a change of the view sends no query.
function take(next: State) {
  batch(() => {
    if (!same(question.peek(), next.question)) question.value = next.question;
    if (!same(base.peek(), next.base)) base.value = next.base;
    if (!same(view.peek(), next.view)) view.value = next.view;
  });
}

export interface Changes {
  question?: Partial<Question>;
  base?: Partial<Baseline> | null;
  view?: Partial<View>;
}

export function changed({ question: asked, base: compared, view: shown }: Changes): State {
  return {
    question: { ...question.peek(), ...asked },
    base: compared === null ? null : compared === undefined ? base.peek() : { ...(base.peek() ?? FIRST_BASELINE), ...compared },
    view: { ...view.peek(), ...shown },
  };
}

// "push" is a step that "back" undoes; "replace" is for smaller changes, such as typing.
export function go(changes: Changes, how: "push" | "replace" = "push") {
  const next = changed(changes);
  // A place in one process's graph does not exist in another's.
  const asked = changes.question;
  if (asked !== undefined && changes.view?.zoom === undefined && [...SELECTORS, "group" as const].some((key) => key in asked)) {
    next.view = { ...next.view, zoom: [], up: [], frame: "", part: "", track: "" };
  }
  // Another part of the graph has other functions at its bottom.
  if (changes.view?.up === undefined && next.view.zoom.join("\0") !== view.peek().zoom.join("\0")) next.view = { ...next.view, up: [] };
  // A place among a function's callers does not exist among another's.
  if (next.view.frame !== view.peek().frame) next.view = { ...next.view, callers: [], callees: [] };
  const address = addressOf(next);
  if (address !== location.pathname + location.search + location.hash) {
    if (how === "push") history.pushState(null, "", address);
    else history.replaceState(null, "", address);
  }
  take(next);
}

export const ask = (changes: Partial<Question>, how?: "push" | "replace") => go({ question: changes }, how);
export const look = (changes: Partial<View>, how?: "push" | "replace") => go({ view: changes }, how);
// null ends the comparison.
export const compare = (changes: Partial<Baseline> | null, how?: "push" | "replace") => go({ base: changes }, how);
// Selects other processes and threads in the same window.
export const select = (selection: Partial<Selection>) => ask({ ...NO_SELECTION, side: question.peek().side, ...selection });

addEventListener("popstate", () => take(fromAddress(new URL(location.href))));

// ---- Queries of the daemon ----

function put(parameters: URLSearchParams, key: string, value: Value) {
  if (Array.isArray(value)) for (const each of value) parameters.append(key, each);
  else if (value !== "") parameters.set(key, String(value));
}

const SHAPE = ["focus", "ignore", "hide", "names"] as const;

// The parameter `group` of /profile: the first level of the graph. "" is the daemon's default.
export function groupOf(asked: Question, by: Grouping): string {
  const used = SELECTORS.filter((selector) => asked[selector].length > 0);
  if (asked.group !== "" || used.includes("pid")) return asked.group;
  // One program is one tree, however many processes it has.
  if (used.length === 1 && used[0] === "exe" && asked.exe.length === 1) return "none";
  if (by === "") return "exe";
  return by === "pid" ? "process" : by;
}

// What is measured, for a query about any processes.
export function withMeasure(parameters: URLSearchParams, { measure, idle }: Question): URLSearchParams {
  put(parameters, "measure", measure);
  if (measure !== "") put(parameters, "idle", idle);
  return parameters;
}

// The parameters of /processes, /threads, /timeline and /heatmap.
export function windowAndSelection(asked: Question): URLSearchParams {
  const parameters = new URLSearchParams();
  for (const key of ["from", "to", ...SELECTORS, "side"] as const) put(parameters, key, asked[key]);
  return withMeasure(parameters, asked);
}

// The parameters of queries about all processes.
export function windowOnly(asked: Question): URLSearchParams {
  const parameters = new URLSearchParams();
  for (const key of ["from", "to", "offset_from", "offset_to"] as const) put(parameters, key, asked[key]);
  return withMeasure(parameters, asked);
}

// The parameters of /source and /instructions.
export function functionParameters(asked: Question, name: string): URLSearchParams {
  const parameters = windowAndSelection(asked);
  for (const key of ["offset_from", "offset_to", ...SHAPE] as const) put(parameters, key, asked[key]);
  if (!asked.inlines) parameters.set("inlines", "0");
  parameters.set("function", name);
  return parameters;
}

// The parameters of /profile, and with a baseline of /diff.
export function profileParameters(asked: Question, compared: Baseline | null): URLSearchParams {
  const parameters = windowAndSelection(asked);
  put(parameters, "offset_from", asked.offset_from);
  put(parameters, "offset_to", asked.offset_to);
  put(parameters, "group", groupOf(asked, by.value));
  for (const key of SHAPE) put(parameters, key, asked[key]);
  if (asked.lines) parameters.set("lines", "1");
  if (!asked.inlines) parameters.set("inlines", "0");
  if (compared === null) return parameters;
  for (const key of ["from", "to", "ago", ...SELECTORS, "side"] as const) put(parameters, `base_${key}`, compared[key]);
  put(parameters, "normalise", compared.normalise);
  return parameters;
}
