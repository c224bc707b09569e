// SPDX-License-Identifier: Apache-2.0
// The shown part of the latest answer: the tree, the place in it, the search.
import { computed, effect, signal } from "@preact/signals";

import type { Diff, Profile, Window } from "../../answers";
import { Refused, Unreachable, addressWith, get, wasAborted } from "../../api";
import { amount, isTimed, worth } from "../../measure";
import { about, isDiff, processes, profile } from "../../questions";
import { base, isLive, isMachine, look, profileParameters, question, view } from "../../state";
import { isDark, token } from "../../theme";
import { readProfile } from "../tree/answer";
import { WIDE, bottomUp } from "../tree/bottom_up";
import { FOUND, type Palette, palette } from "../drawing/colours";
import type { Shown } from "../drawing/flame_canvas";
import { Labels } from "../drawing/labels";
import { Groups } from "./groups";
import type { Direction } from "../drawing/layout";
import type { Model } from "../tree/model";
import type { Ink } from "../drawing/painter";
import { matched } from "../tree/search";
import { foldModules, foldRecursion, graft, sandwich } from "../tree/transform";
import { NameSearch } from "../tree/workers";

// ---- The tree ----

const graph = computed(() => profile.answer.value?.graph ?? null);

// With the parts that were fetched after the answer.
const completed = signal<{ of: Model; model: Model } | null>(null);
const whole = computed(() => {
  const model = graph.value?.model ?? null;
  return model !== null && completed.value?.of === model ? completed.value.model : model;
});

const foldedModules = computed(() => view.value.fold);
const folded = computed(() => (whole.value !== null && foldedModules.value.length > 0 ? foldModules(whole.value, foldedModules.value) : whole.value));
const isCollapsed = computed(() => view.value.collapse);
export const model = computed(() => (folded.value !== null && isCollapsed.value ? foldRecursion(folded.value, () => true) : folded.value));
export const functions = computed(() => graph.value?.functions ?? null);

// ---- The place ----

const zoomNames = computed(() => view.value.zoom);
export const zoomed = computed(() => model.value?.find(zoomNames.value).node ?? 0);

// In the tree from the root, whatever is drawn.
export function zoomTo(node: number) {
  const tree = model.peek();
  if (tree === null) return;
  // A node that replaces left-out functions is no place: the functions are fetched for its caller.
  const place = tree.frames.isPruned(tree.frame[node]) ? tree.parent[node] : node;
  look({ zoom: tree.names(place), up: [] });
}

// Makes one frame of a module's functions that call each other, or ends that. The zoom stays at the same place as far as
// it goes.
export function foldModule(module: string, isFolded: boolean) {
  const tree = model.peek();
  const { fold } = view.peek();
  if (tree === null) return;
  const { frames: known } = tree;
  const zoom: string[] = [];
  for (const node of tree.path(zoomed.peek()).slice(1)) {
    const f = tree.frame[node];
    const isIn = known.isCode(f) && known.module(f) === module;
    if (isIn && !isFolded) break;
    if (!isIn || zoom.at(-1) !== module) zoom.push(isIn ? module : known.name(f));
  }
  look({ fold: isFolded ? [...fold, module] : fold.filter((other) => other !== module), zoom, up: [] });
}

// ---- The bottom-up graph ----

export const mode = computed(() => view.value.mode);
const isBottomUp = computed(() => mode.value === "bottom-up");
const upNames = computed(() => view.value.up);
const fromLeaves = computed(() => (model.value === null ? null : bottomUp(model.value, zoomed.value)));
const placeFromLeaves = computed(() => {
  const tree = fromLeaves.value;
  const names = upNames.value;
  if (tree === null || names.length === 0) return tree;
  const { node, found } = tree.find(names);
  return found === names.length && tree.value[node] >= WIDE * tree.total ? tree : bottomUp(model.value!, zoomed.value, names);
});

// The tree in the graph, and the node that has its whole width.
export const drawn = computed(() => (isBottomUp.value ? placeFromLeaves.value : model.value));
export const drawnZoom = computed(() => (isBottomUp.value ? (drawn.value?.find(upNames.value).node ?? 0) : zoomed.value));

export function zoomDrawn(node: number) {
  if (!isBottomUp.peek()) zoomTo(node);
  else if (drawn.peek() !== null) look({ up: drawn.peek()!.names(node) });
}

// ---- The selected node ----

// The node with the shown details.
const selected = signal<{ of: Model; node: number } | null>(null);
export const selectedNode = computed(() => {
  const tree = drawn.value;
  if (tree === null || selected.value === null) return drawnZoom.value;
  const { of, node } = selected.value;
  const here = of === tree ? node : tree.counterpart(of, node);
  return here === -1 ? drawnZoom.value : here;
});
export function selectNode(of: Model, node: number) {
  selected.value = { of, node };
}

// ---- Left-out functions ----

// The pause before the rest of a window is fetched, in which the user may go on to the next window.
const PAUSE_MS = 1000;

// Says that something is being fetched, or why that failed.
export interface Fetching {
  text: string;
  action?: { label: string; act: () => void };
}
const ofPlace = signal<Fetching | null>(null);
const ofRest = signal<Fetching | null>(null);
export const fetching = computed(() => ofPlace.value ?? ofRest.value);

function reasonOf(error: unknown) {
  if (!(error instanceof Refused || error instanceof Unreachable)) console.error(error);
  return (error instanceof Error ? error.message : String(error)).replace(/\.$/, "");
}

const moments = ({ from_ms, to_ms }: Window) => [String(from_ms), String(to_ms)];

// The place has left-out functions on the way to it, or right below it.
const missing = computed(() => {
  const tree = whole.value;
  const answer = profile.answer.value;
  if (tree === null || answer === null || zoomNames.value.length === 0) return null;
  const { node } = tree.find(zoomNames.value);
  if (node === 0 || tree.prunedBelow(node) === -1) return null;
  return { tree, node, answer };
});

function addressOf(answer: Profile | Diff, names: readonly string[]) {
  // For the same time, whatever "now" is by now. By the requested window, since the whole minutes that were used
  // instead need not begin at a millisecond.
  const asked = { ...question.peek() };
  const compared = base.peek();
  let then = compared;
  [asked.from, asked.to] = moments((isDiff(answer) ? answer.after : answer).window.asked);
  if (compared !== null && isDiff(answer)) {
    const [from, to] = moments(answer.before.window.asked);
    then = { ...compared, from, to };
  }
  const parameters = profileParameters(asked, then);
  parameters.set("format", "columns-binary");
  for (const name of names) parameters.append("root", name);
  return addressWith(then === null ? "/profile" : "/diff", parameters);
}

const isAsked = computed(() => profile.progress.value !== null);

// The answer whose rest is to be fetched once more, at once.
const triedAgain = signal<{ of: Profile | Diff } | null>(null);

const ONLY_LARGEST = "Search and table count only the largest frames.";

// A live window is soon requested again: it is fetched whole only for a search or a table.
const wantsRest = computed(() => !isLive.value || view.value.search !== "" || view.value.beside || ["bottom-up", "sandwich", "table", "code"].includes(view.value.mode));

// All that the daemon has of a window, fetched once the first answer, with as much as a screen can show, is painted.
effect(() => {
  const answer = profile.answer.value;
  const tree = graph.value?.model ?? null;
  const pauseMs = triedAgain.value !== null && triedAgain.value.of === answer ? 0 : PAUSE_MS;
  ofRest.value = null;
  if (answer === null || tree === null || isAsked.value || !wantsRest.value) return undefined;
  const abort = new AbortController();
  const fetchRest = async () => {
    if (!tree.frames.hasPruned()) return;
    ofRest.value = { text: "Fetching the rest of this window …" };
    try {
      const { graph: whole } = await get<Profile | Diff>(addressOf(answer, []), { signal: abort.signal }, readProfile);
      if (abort.signal.aborted) return;
      // Of a live window late samples may have come since.
      if (whole.model.total === tree.total || isLive.peek()) {
        completed.value = { of: tree, model: whole.model };
        ofRest.value = null;
      } else {
        // Minutes of the window were dropped, or samples came late.
        const text = `The stored samples of this window have changed since its first answer. ${ONLY_LARGEST}`;
        ofRest.value = { text, action: { label: "Ask again", act: () => profile.again() } };
      }
    } catch (error) {
      if (abort.signal.aborted || wasAborted(error)) return;
      const text = `The rest of this window was not fetched: ${reasonOf(error)}. ${ONLY_LARGEST}`;
      ofRest.value = { text, action: { label: "Try again", act: () => (triedAgain.value = { of: answer }) } };
    }
  };
  const timer = setTimeout(() => void fetchRest(), pauseMs);
  return () => {
    clearTimeout(timer);
    abort.abort();
  };
});

const placeTriedAgain = signal(0);
effect(() => {
  const place = missing.value;
  placeTriedAgain.value;
  if (place === null) {
    ofPlace.value = null;
    return undefined;
  }
  const { tree, node, answer } = place;
  const abort = new AbortController();
  ofPlace.value = { text: "Fetching what was left out here …" };
  void get<Profile | Diff>(addressOf(answer, tree.names(node)), { signal: abort.signal }, readProfile)
    .then(({ graph: part }) => {
      if (abort.signal.aborted) return;
      // There was nothing more: the daemon dropped these minutes since, or answered with the same.
      if (part.model.total === 0 || part.model.prunedBelow(0) !== -1) {
        ofPlace.value = { text: "Not fetched: the daemon no longer has more of this" };
        return;
      }
      completed.value = { of: graph.peek()!.model, model: graft(tree, node, part.model) };
    })
    .catch((error: unknown) => {
      if (abort.signal.aborted || wasAborted(error)) return;
      ofPlace.value = { text: `Not fetched: ${reasonOf(error)}`, action: { label: "Try again", act: () => placeTriedAgain.value++ } };
    });
  return () => abort.abort();
});

// ---- The search ----

interface Found {
  of: Model;
  text: string;
  frames: Uint8Array | null;
  problem: string;
}
const result = signal<Found | null>(null);

let names: NameSearch | null = null;
effect(() => {
  const tree = model.value;
  names?.end();
  names = tree === null ? null : new NameSearch(tree.frames);
});
export const prepareSearch = () => names?.prepare();
effect(() => {
  const tree = model.value;
  const text = view.value.search;
  if (tree === null || text === "" || names === null) {
    result.value = null;
    return undefined;
  }
  let isOld = false;
  const start = performance.now();
  const take = (frames: Uint8Array | null, problem: string) => {
    if (isOld) return;
    result.value = { of: tree, text, frames, problem };
    performance.clearMeasures("flamed:search");
    performance.measure("flamed:search", { start, end: performance.now() });
  };
  names.find(text).then((frames) => take(frames, ""), (error: Error) => take(null, error.message));
  return () => {
    isOld = true;
  };
});

// By frame, in the shown tree.
export const found = computed(() => (result.value !== null && result.value.of === model.value && view.value.search !== "" ? result.value.frames : null));
export const searchProblem = computed(() => (view.value.search === "" ? "" : (result.value?.problem ?? "")));
export const matchedShare = computed(() => {
  // From the root, since from the leaves narrow branches are left out.
  const [tree, node] = isBottomUp.value && upNames.value.length > 0 ? [drawn.value, drawnZoom.value] : [model.value, zoomed.value];
  if (tree === null || found.value === null || tree.value[node] === 0) return null;
  return matched(tree, found.value, node) / tree.value[node];
});

// ---- The table's rows ----

const frames = computed(() => model.value?.frames ?? null);
export const isBeside = computed(() => view.value.beside && ["icicle", "flame", "bottom-up"].includes(mode.value));
// A sandwich is of a function, and so is code.
const rowsBy = computed(() => (mode.value === "sandwich" || mode.value === "code" ? "" : view.value.rows));
export const groups = computed(() => (frames.value === null ? null : new Groups(frames.value, rowsBy.value)));
export const chosenRow = computed(() => (rowsBy.value === "" ? view.value.frame : view.value.part));
export function chooseRow(name: string, how: "push" | "replace" = "replace") {
  look(rowsBy.peek() === "" ? { frame: name } : { part: name }, how);
}

// The chosen row's frames, in a graph with the table beside it: by frame, and the node with the most of its samples.
const chosen = computed(() => {
  const name = chosenRow.value;
  if (!isBeside.value || groups.value === null || name === "") return null;
  const { of, size } = groups.value;
  const isIn = Uint8Array.from({ length: size }, (_, group) => Number(groups.value!.name(group) === name));
  const marked = Uint8Array.from(of, (group) => isIn[group] ?? 0);
  return marked.includes(1) ? marked : null;
});
export const isChosen = computed(() => chosen.value !== null);
const chosenNode = computed(() => {
  const tree = drawn.value;
  if (tree === null || chosen.value === null) return -1;
  let best = -1;
  for (let i = drawnZoom.value; i < tree.end[drawnZoom.value]; i++) {
    if (chosen.value[tree.frame[i]] === 1 && (best === -1 || tree.value[i] > tree.value[best])) best = i;
  }
  return best;
});

// ---- Appearance ----

export const ink = computed<Ink>(() => ({ text: token("--ink"), found: FOUND, font: token("--mono") }));
const colouring = computed(() => view.value.colour);
const diffPalette = computed(() => view.value.palette);

export const paletteOf = (tree: Model): Palette => palette(tree, colouring.value, diffPalette.value, isDark.value, model.value ?? tree);

const colours = computed(() => (drawn.value === null ? null : paletteOf(drawn.value)));
export const legend = computed(() => colours.value?.legend ?? []);

// How many processes of the selection each program has. An answer to a comparison does not tell.
const programs = computed(() => {
  const answer = profile.answer.value;
  const selected = answer !== null && !isDiff(answer) ? answer.processes : isMachine.value ? (processes.answer.value?.processes ?? []) : [];
  const counts = new Map<string, number>();
  for (const { executable } of selected) if (executable !== null) counts.set(executable, (counts.get(executable) ?? 0) + 1);
  return counts;
});
// A number of samples for screen readers.
const spokenAmount = computed(() => {
  const facts = about.value;
  return facts !== null && isTimed.value ? (samples: number) => amount(samples, worth(facts)) : undefined;
});
const labels = computed(() => (drawn.value === null ? null : new Labels(drawn.value, programs.value, spokenAmount.value)));

const direction = computed<Direction>(() => (mode.value === "flame" ? "up" : "down"));

export const shown = computed<Shown | null>(() => {
  const tree = drawn.value;
  if (tree === null || colours.value === null || labels.value === null) return null;
  return { model: tree, palette: colours.value, labels: labels.value, ink: ink.value, direction: direction.value, zoomed: drawnZoom.value, found: chosen.value ?? found.value, chosen: chosenNode.value, since: whole.peek() === graph.peek()?.model ? graph.peek()!.since : null };
});

// ---- One function with its callers and callees ----

// The chosen function, or otherwise the one with the most self time in the shown part.
const middleName = computed(() => view.value.frame);
export const middle = computed(() => {
  const tree = model.value;
  if (tree === null || (mode.value !== "sandwich" && mode.value !== "code")) return null;
  if (middleName.value !== "") return middleName.value;
  const own = new Float64Array(tree.frames.size);
  for (let i = zoomed.value; i < tree.end[zoomed.value]; i++) own[tree.frame[i]] += tree.self[i];
  let best = -1;
  for (let f = 0; f < own.length; f++) if (tree.frames.isCode(f) && own[f] > 0 && (best === -1 || own[f] > own[best])) best = f;
  return best === -1 ? null : tree.frames.name(best);
});

const parts = computed(() => {
  const tree = model.value;
  const name = middle.value;
  return tree === null || name === null || mode.value !== "sandwich" ? null : sandwich(tree, (f) => tree.frames.name(f) === name);
});
export const isMiddleMissing = computed(() => middle.value !== null && parts.value === null);

export type Half = "callers" | "callees";

function halfShown(half: Half) {
  const tree = computed(() => parts.value?.[half] ?? null);
  const look = computed(() => (tree.value === null ? null : { palette: paletteOf(tree.value), labels: new Labels(tree.value, undefined, spokenAmount.value) }));
  const zoomedTo = computed(() => tree.value?.find(view.value[half]).node ?? 0);
  return computed<Shown | null>(() => {
    if (tree.value === null || look.value === null) return null;
    return {
      model: tree.value, ...look.value, ink: ink.value, direction: half === "callers" ? "up" : "down",
      zoomed: zoomedTo.value, found: found.value, chosen: -1, since: null,
    };
  });
}
export const halves = { callers: halfShown("callers"), callees: halfShown("callees") };
export function zoomHalf(half: Half, of: Model, node: number) {
  look({ [half]: of.names(node) });
}

// ---- The code of one function ----

export function showCode(name: string) {
  look({ mode: "code", frame: name });
}

// Puts another function in the middle.
export function showSandwich(name: string) {
  look({ mode: "sandwich", frame: name });
}
