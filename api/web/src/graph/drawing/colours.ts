// SPDX-License-Identifier: Apache-2.0
// Colours of frames. A palette has few of them, so that frames can be painted colour by colour. All are light enough
// for dark text: their contrast with INK is at least 4.5:1.

import { REASONS, REASON_TEXTS, type Reason } from "../../waits";
import { type Frames, KINDS, type Kind, type WaitKind, hashOf, reasonOf } from "../tree/frames";
import type { Model } from "../tree/model";

export const INK = "#1a1410";
// The background of search matches.
export const FOUND = "#ec7fdd";

export type Colouring = "kind" | "module" | "name";
// "blind": distinguishable with every kind of colour blindness.
export type DiffPalette = "" | "blind";

export interface LegendEntry {
  label: string;
  colour: string;
  isReason?: boolean; // of a wait
}

export interface Palette {
  colours: string[];
  // The index of each node's colour (not frame's: in a comparison, nodes of one function differ).
  of: (node: number) => number;
  legend: LegendEntry[];
}

interface Tone {
  label: string;
  hue: number;
  saturation: number;
  lightness: number;
}

// As in tokens.css.
const WAITS: Record<Reason, Omit<Tone, "label">> = {
  run_queue: { hue: 8, saturation: 80, lightness: 72 },
  disk: { hue: 268, saturation: 58, lightness: 77 },
  lock: { hue: 44, saturation: 92, lightness: 60 },
  condition: { hue: 64, saturation: 62, lightness: 62 },
  network: { hue: 196, saturation: 66, lightness: 66 },
  pipe: { hue: 158, saturation: 44, lightness: 62 },
  sleep: { hue: 226, saturation: 62, lightness: 80 },
  page_fault: { hue: 318, saturation: 56, lightness: 77 },
  poll: { hue: 220, saturation: 10, lightness: 82 },
  other: { hue: 90, saturation: 30, lightness: 68 },
};

const TONES: Record<Kind, Tone> = {
  native: { label: "Program", hue: 28, saturation: 88, lightness: 69 },
  inlined: { label: "Inlined", hue: 48, saturation: 86, lightness: 70 },
  go: { label: "Go", hue: 187, saturation: 55, lightness: 66 },
  python: { label: "Python", hue: 72, saturation: 62, lightness: 64 },
  javascript: { label: "JavaScript", hue: 310, saturation: 46, lightness: 78 },
  java: { label: "Java", hue: 22, saturation: 78, lightness: 72 },
  jit: { label: "JIT", hue: 132, saturation: 42, lightness: 67 },
  kernel: { label: "Kernel", hue: 214, saturation: 74, lightness: 75 },
  vdso: { label: "vdso", hue: 166, saturation: 38, lightness: 68 },
  unnamed: { label: "Unnamed", hue: 34, saturation: 26, lightness: 74 },
  unknown: { label: "Unknown", hue: 220, saturation: 8, lightness: 74 },
  folded: { label: "Module in one", hue: 84, saturation: 38, lightness: 72 },
  idle: { label: "Not sampled", hue: 220, saturation: 8, lightness: 90 },
  marker: { label: "Cut off", hue: 352, saturation: 75, lightness: 80 },
  root: { label: "Process", hue: 262, saturation: 46, lightness: 80 },
  ...(Object.fromEntries(REASONS.map((reason) => [`wait ${reason}`, { label: REASON_TEXTS[reason].name, ...WAITS[reason] }])) as Record<WaitKind, Tone>),
};

const hsl = (hue: number, saturation: number, lightness: number) => `hsl(${hue} ${saturation}% ${lightness}%)`;

export const labelOf = (kind: Kind) => TONES[kind].label;

export function swatch(kind: Kind, isDark: boolean) {
  const { hue, saturation, lightness } = TONES[kind];
  return hsl(hue, saturation, lightness - (isDark ? 5 : 0));
}

function kindsOf(frames: Frames) {
  const { kind } = frames.data;
  return KINDS.filter((name, index) => name !== "idle" && kind.includes(index));
}

// Neighbours differ slightly in colour, in the same way in every profile.
const SHADES = 24;

function byKind(frames: Frames, isDark: boolean): Palette {
  const colours: string[] = [];
  for (const kind of KINDS) {
    const { hue, saturation, lightness } = TONES[kind];
    for (let shade = 0; shade < SHADES; shade++) {
      const turn = ((shade % 6) - 2.5) * 2.2;
      const lift = ((shade / 6) | 0) * 2.4 - 3.6;
      colours.push(hsl(hue + turn, saturation, lightness + lift - (isDark ? 5 : 0)));
    }
  }
  const { kind } = frames.data;
  return { colours, of: (f) => kind[f] * SHADES + (frames.hash(f) % SHADES), legend: kindsOf(frames).map((kind) => ({ label: TONES[kind].label, colour: swatch(kind, isDark), isReason: reasonOf(kind) !== null })) };
}

// Hues at golden angles: the first few, which cover most of the graph, differ most.
const HUES = 48;
const LISTED = 8;

function hashed(frames: Frames, isDark: boolean, hash: (f: number) => number): Omit<Palette, "legend"> {
  const colours = Array.from({ length: HUES }, (_, i) => hsl(Math.round((i * 137.508) % 360), 58, 70 + (i % 3) * 4 - (isDark ? 5 : 0)));
  colours.push(swatch("marker", isDark), swatch("root", isDark), ...REASONS.map((reason) => swatch(`wait ${reason}`, isDark)));
  const of = (f: number) => {
    const kind = frames.kind(f);
    const reason = reasonOf(kind);
    if (reason !== null) return HUES + 2 + REASONS.indexOf(reason);
    return kind === "marker" ? HUES : kind === "root" ? HUES + 1 : hash(f) % HUES;
  };
  return { colours, of };
}

function byName(frames: Frames, isDark: boolean): Palette {
  return { ...hashed(frames, isDark, (f) => frames.hash(f)), legend: [] };
}

function byModule(model: Model, isDark: boolean): Palette {
  const { frames } = model;
  const hashes = new Map<number, number>();
  const { colours, of } = hashed(frames, isDark, (f) => {
    const index = frames.data.module[f];
    let hash = hashes.get(index);
    if (hash === undefined) hashes.set(index, (hash = hashOf(frames.module(f))));
    return hash;
  });
  // The modules with the most self time.
  const own = new Map<string, { samples: number; colour: number }>();
  for (let i = 0; i < model.size; i++) {
    const f = model.frame[i];
    if (model.self[i] === 0 || !frames.isCode(f)) continue;
    const module = frames.module(f);
    const entry = own.get(module);
    if (entry === undefined) own.set(module, { samples: model.self[i], colour: of(f) });
    else entry.samples += model.self[i];
  }
  const legend = [...own].sort(([, a], [, b]) => b.samples - a.samples).slice(0, LISTED)
    .map(([module, entry]) => ({ label: module === "" ? "no file" : module, colour: colours[entry.colour] }));
  return { colours, of, legend };
}

// ---- Comparisons ----

const STEPS = 8; // each way
// Growth and shrinkage. Orange and blue differ for all the usual kinds of colour blindness, and in print, where growth is
// darker.
const DIFF_TONES: Record<DiffPalette, { more: [number, number]; less: [number, number] }> = {
  "": { more: [6, 86], less: [222, 80] },
  blind: { more: [30, 100], less: [205, 85] },
};

// The colour is not proportional to the change: most changes are small, and one of a percentage point should be
// visible.
function step(change: number, largest: number) {
  if (change === 0 || largest === 0) return 0;
  return Math.sign(change) * Math.min(STEPS, Math.ceil(Math.sqrt(Math.abs(change) / largest) * STEPS));
}

function byChange(model: Model, isDark: boolean, name: DiffPalette): Palette {
  const { more, less } = DIFF_TONES[name];
  const darkest = name === "blind" ? 60 : 68;
  const tone = ([hue, saturation]: [number, number], strength: number, least: number) =>
    hsl(hue, saturation, Math.round(93 - (93 - least) * (strength / STEPS) - (isDark ? 4 : 0)));
  const colours = Array.from({ length: 2 * STEPS + 1 }, (_, index) => {
    const strength = index - STEPS;
    if (strength === 0) return isDark ? "hsl(220 6% 76%)" : "hsl(220 10% 90%)";
    return strength > 0 ? tone(more, strength, darkest) : tone(less, -strength, 70);
  });
  let largest = 0;
  for (let i = 1; i < model.size; i++) largest = Math.max(largest, Math.abs(model.change(i)));
  return {
    colours,
    of: (node) => STEPS + step(model.change(node), largest),
    legend: [
      { label: "Less", colour: colours[0] },
      { label: "Unchanged", colour: colours[STEPS] },
      { label: "More", colour: colours[2 * STEPS] },
    ],
  };
}

// `whole`: the tree from its root, if `model` shows it in another way. Its functions' own time decides on the legend.
export function palette(model: Model, colouring: Colouring, diff: DiffPalette, isDark: boolean, whole = model): Palette {
  if (model.sides !== null) return byChange(model, isDark, diff);
  const { frame, frames } = model;
  const made = colouring === "module" ? byModule(whole, isDark) : colouring === "name" ? byName(frames, isDark) : byKind(frames, isDark);
  return { ...made, of: (node) => made.of(frame[node]) };
}
