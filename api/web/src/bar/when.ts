// SPDX-License-Identifier: Apache-2.0
// Parses times that people enter into a window. Pure. Times of day are in the reader's time zone, like all times on the
// page. The resulting query includes the time zone.

export interface Asked {
  from: string;
  to: string;
}

const LONGEST_AROUND_MS = 600000;
const DAY_MS = 86400000;
const RELATIVE = /^now(\s*-\s*(\d+(\.\d+)?\s*[smhd]\s*)+)?$/i;
const LENGTH = /^(last\s+)?(\d+(\.\d+)?\s*(s|m|min|h|d)\s*)+$/i;
const BETWEEN = /\s+(?:to|until|-|–|—)\s+|\s*(?:–|—|\.\.|\/)\s*|(?<=\d:\d\d)-(?=\d)/i;
const TIME = /^(?:(\d{4}-\d{2}-\d{2}|yesterday|today)[ T]?)?\s*(?:(\d{1,2}):(\d{2})(?::(\d{2})(\.\d+)?)?)?$/i;

const atOnce = (ms: number) => new Date(ms).toISOString();
const compact = (text: string) => text.toLowerCase().replace(/\s+/g, "").replace("last", "").replaceAll("min", "m");

function startOfDay(date: string, now: Date): number {
  const day = new Date(now.getFullYear(), now.getMonth(), now.getDate());
  if (date === "yesterday") day.setDate(day.getDate() - 1);
  else if (date !== "" && date !== "today") return new Date(`${date}T00:00:00`).getTime();
  return day.getTime();
}

interface Moment {
  ms: number;
  isDay: boolean;
}

// A time of day without a date is the latest past one; or, in a window, the one on the day of `beside`.
function moment(text: string, now: Date, beside?: number): Moment | null {
  if (/^\d{9,}(\.\d+)?$/.test(text)) {
    const number = Number(text);
    return { ms: number >= 1e11 ? number : number * 1000, isDay: false };
  }
  if (/^\d{4}-\d{2}-\d{2}[ T].*(Z|[+-]\d{2}:?\d{2})$/i.test(text)) {
    const ms = Date.parse(text.replace(" ", "T"));
    return Number.isNaN(ms) ? null : { ms, isDay: false };
  }
  const found = TIME.exec(text);
  if (found === null || text === "") return null;
  const [, date = "", hour, minute, second = "0", fraction = "0"] = found;
  if (Number(hour) > 24 || Number(minute) > 59 || Number(second) > 59) return null;
  const day = startOfDay(date.toLowerCase(), date === "" && beside !== undefined ? new Date(beside) : now);
  if (Number.isNaN(day)) return null;
  if (hour === undefined) return { ms: day, isDay: true };
  // By date fields and not by milliseconds, since days with a change of the clocks are longer or shorter.
  const at = new Date(day);
  at.setHours(Number(hour), Number(minute), Number(second), Math.round(Number(fraction) * 1000));
  if (date === "" && beside === undefined && at > now) at.setDate(at.getDate() - 1);
  return { ms: at.getTime(), isDay: false };
}

// The window that `text` names. Around a single moment it is as long as the current one (`lengthMs`), but ten minutes
// at most. Other text is passed on unchanged, so that the daemon answers with the valid forms.
export function parseWhen(text: string, now: Date, lengthMs: number): Asked {
  const written = text.trim();
  if (written === "") return { from: "", to: "" };
  if (LENGTH.test(written)) return { from: `now-${compact(written)}`, to: "" };
  if (RELATIVE.test(written)) return { from: compact(written) === "now" ? "" : compact(written), to: "" };
  const at = moment(written, now);
  const sides = at === null ? written.split(BETWEEN) : [];
  if (sides.length === 2) {
    const [left, right] = sides.map((side) => side.trim());
    const from = RELATIVE.test(left) ? compact(left) : moment(left, now);
    if (from === null) return { from: left, to: right };
    if (RELATIVE.test(right)) return { from: typeof from === "string" ? from : atOnce(from.ms), to: compact(right) === "now" ? "" : compact(right) };
    const to = moment(right, now, typeof from === "string" ? undefined : from.ms);
    if (to === null) return { from: typeof from === "string" ? from : atOnce(from.ms), to: right };
    let end = to.isDay ? to.ms + DAY_MS : to.ms;
    // 23:50 – 00:10 goes over midnight.
    if (typeof from !== "string" && end <= from.ms && end + DAY_MS > from.ms && !/^\d{4}-/.test(right)) end += DAY_MS;
    return { from: typeof from === "string" ? from : atOnce(from.ms), to: atOnce(end) };
  }
  if (at === null) return { from: written, to: "" };
  if (at.isDay) return { from: atOnce(at.ms), to: atOnce(Math.min(at.ms + DAY_MS, now.getTime())) };
  const half = Math.min(lengthMs, LONGEST_AROUND_MS) / 2;
  return { from: atOnce(at.ms - half), to: atOnce(Math.min(at.ms + half, now.getTime())) };
}
