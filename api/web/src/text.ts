// SPDX-License-Identifier: Apache-2.0
// Names and numbers as text. Profiled programs choose the names.

// Characters that are invisible or change their neighbours: controls, marks of writing direction, zero-width
// characters. Shown by their number, so that one name can't look like another.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

export function printable(name: string, limit = 4000) {
  const cut = name.length > limit ? `${name.slice(0, limit)}…` : name;
  const shown = cut.replace(UNSEEN, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
  return shown === "" ? "[unnamed]" : shown;
}

// With thousands separators, as toLocaleString("en-US") writes whole numbers. Its first call takes 30 ms.
export function count(number: number) {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ",");
}

export function bytes(number: number) {
  if (number < 1e6) return `${Math.round(number / 1000)} kB`;
  return `${(number / 1e6).toFixed(1)} MB`;
}

export function percent(part: number, whole: number) {
  if (part === 0 || whole === 0) return "0 %";
  const value = (100 * part) / whole;
  if (value < 0.01) return "< 0.01 %";
  return `${value < 10 ? value.toFixed(2) : value.toFixed(1)} %`;
}

export function seconds(value: number) {
  if (value === 0) return "0 s";
  if (value < 1) return `${Math.max(1, Math.round(value * 1000))} ms`;
  if (value < 100) return `${value.toFixed(value < 10 ? 2 : 1)} s`;
  if (value < 6000) return `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`;
  return `${(value / 3600).toFixed(1)} h`;
}

// With three digits and a unit, for columns.
export function brief(value: number) {
  if (value === 0) return "0 s";
  if (value < 0.9995) return `${Math.max(1, Math.round(value * 1000))} ms`;
  const [number, unit] = value < 999.5 ? [value, "s"] : value < 59970 ? [value / 60, "min"] : [value / 3600, "h"];
  return `${number.toFixed(number < 9.995 ? 2 : number < 99.95 ? 1 : 0)} ${unit}`;
}

export function duration(ms: number) {
  if (ms < 1000) return `${ms} ms`;
  const total = Math.round(ms / 1000);
  const parts: [number, string][] = [[Math.floor(total / 86400), "d"], [Math.floor(total / 3600) % 24, "h"], [Math.floor(total / 60) % 60, "min"], [total % 60, "s"]];
  return parts.filter(([value]) => value > 0).slice(0, 2).map(([value, unit]) => `${value} ${unit}`).join(" ");
}

const UNITS: [number, string][] = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];

// 5400000 → "1h30m", as the daemon reads it.
export function asDuration(ms: number): string {
  let rest = Math.max(1, Math.round(ms / 1000));
  let text = "";
  for (const [length, unit] of UNITS) {
    if (rest >= length) text += `${Math.floor(rest / length)}${unit}`;
    rest %= length;
  }
  return text;
}

// In the reader's own time zone: "2026-01-31 14:05:30". By hand, since toLocaleString() makes a formatter at each call.
export function dateTime(ms: number) {
  const date = new Date(ms);
  const two = (number: number) => String(number).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

// In the reader's time zone, with the date only if the two have different dates or it is not today's.
export function span(fromMs: number, toMs: number) {
  const [from, to, now] = [fromMs, toMs, Date.now()].map(dateTime);
  const day = (text: string) => text.slice(0, 10);
  const clock = (text: string) => text.slice(11);
  if (day(from) === day(to)) return `${day(from) === day(now) ? clock(from) : from} – ${clock(to)}`;
  return `${from} – ${to}`;
}

// A new element with a class and text, never markup.
export function element<Tag extends keyof HTMLElementTagNameMap>(tag: Tag, className = "", text?: string): HTMLElementTagNameMap[Tag] {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}
