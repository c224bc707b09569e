// SPDX-License-Identifier: Apache-2.0
// Colours of frames by what they are. All are light enough for dark text (contrast at least 4.5:1 with INK).

interface Kind {
  label: string;
  hue: number;
  saturation: number;
  lightness: number;
}

export const KINDS: Record<string, Kind> = {
  native: { label: "Program", hue: 28, saturation: 88, lightness: 68 },
  kernel: { label: "Kernel", hue: 212, saturation: 72, lightness: 72 },
  jit: { label: "JIT", hue: 140, saturation: 45, lightness: 66 },
  vdso: { label: "vdso", hue: 176, saturation: 45, lightness: 66 },
  unknown: { label: "Unnamed", hue: 220, saturation: 8, lightness: 72 },
  marker: { label: "Cut off", hue: 352, saturation: 75, lightness: 78 },
  root: { label: "Process", hue: 262, saturation: 42, lightness: 78 },
};

export const INK = "#1a1410";
export const FOUND = { fill: "#e86bd8", dimmed: 0.35 };

function hash(text: string) {
  let value = 2166136261;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 16777619);
  return value >>> 0;
}

// Neighbours are told apart by small differences that are the same in every profile.
export function colour(kind: string, name: string, dark: boolean) {
  const { hue, saturation, lightness } = KINDS[kind] ?? KINDS.unknown;
  const bits = hash(name);
  const turn = (bits % 13) - 6;
  const lift = ((bits >>> 8) % 9) - 4;
  return `hsl(${hue + turn} ${saturation}% ${lightness + lift - (dark ? 6 : 0)}%)`;
}

export function swatch(kind: string, dark: boolean) {
  const { hue, saturation, lightness } = KINDS[kind];
  return `hsl(${hue} ${saturation}% ${lightness - (dark ? 6 : 0)}%)`;
}
