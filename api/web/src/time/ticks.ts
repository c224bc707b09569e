// SPDX-License-Identifier: Apache-2.0
// The ticks of a time axis and their labels: round moments of the reader's clock, also on days on which the clock goes
// forward or back. Pure.

export interface Tick {
  ms: number;
  label: string;
  // The first of its day, whose label is the date.
  isDay: boolean;
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const STEPS = [
  SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND, 15 * SECOND, 30 * SECOND,
  MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE,
  HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY,
];
// Clocks change by multiples of half an hour, so steps up to this length are round on both sides of a change.
const STEADY = 30 * MINUTE;

const pad = (number: number) => String(number).padStart(2, "0");
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const WEEKDAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

// How far the reader's clock is ahead of UTC.
const ahead = (ms: number) => -new Date(ms).getTimezoneOffset() * MINUTE;

// The shortest step with at most `most` steps between two moments.
export function stepFor(fromMs: number, toMs: number, most: number) {
  const length = toMs - fromMs;
  return STEPS.find((step) => length / step <= most) ?? Math.ceil(length / most / DAY) * DAY;
}

const isMidnight = (date: Date) => date.getHours() === 0 && date.getMinutes() === 0 && date.getSeconds() === 0;

function label(ms: number, step: number) {
  const date = new Date(ms);
  if (isMidnight(date)) return `${WEEKDAYS[date.getDay()]} ${date.getDate()} ${MONTHS[date.getMonth()]}`;
  const clock = `${pad(date.getHours())}:${pad(date.getMinutes())}`;
  return step < MINUTE ? `${clock}:${pad(date.getSeconds())}` : clock;
}

export function ticks(fromMs: number, toMs: number, most: number): Tick[] {
  if (!(toMs > fromMs)) return [];
  const step = stepFor(fromMs, toMs, Math.max(1, most));
  const found: Tick[] = [];
  const add = (ms: number) => {
    if (ms >= fromMs && ms <= toMs) found.push({ ms, label: label(ms, step), isDay: isMidnight(new Date(ms)) });
  };
  if (step <= STEADY) {
    const offset = ahead(fromMs);
    for (let ms = Math.ceil((fromMs + offset) / step) * step - offset; ms <= toMs; ms += step) add(ms);
    return found;
  }
  // By the fields of the reader's date: a skipped hour has no tick, a repeated one has two.
  const start = new Date(fromMs);
  start.setHours(0, 0, 0, 0);
  if (step < DAY) {
    const hours = step / HOUR;
    for (let day = start; day.getTime() <= toMs; day = new Date(day.getFullYear(), day.getMonth(), day.getDate() + 1)) {
      const next = new Date(day.getFullYear(), day.getMonth(), day.getDate() + 1).getTime();
      for (let ms = day.getTime(); ms < next && ms <= toMs; ms += HOUR / 2) {
        const at = new Date(ms);
        if (at.getMinutes() === 0 && at.getHours() % hours === 0) add(ms);
      }
    }
    return found;
  }
  const days = step / DAY;
  for (let day = start; day.getTime() <= toMs; day = new Date(day.getFullYear(), day.getMonth(), day.getDate() + days)) add(day.getTime());
  return found;
}

// One moment in words, to the second, or to the millisecond if it is between two seconds.
export function moment(ms: number) {
  const date = new Date(ms);
  const clock = `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
  const part = ((ms % SECOND) + SECOND) % SECOND;
  return part === 0 ? clock : `${clock}.${String(Math.floor(part)).padStart(3, "0")}`;
}

// "UTC+01:00": of the reader's clock at that moment.
export function zone(ms: number) {
  const minutes = ahead(ms) / MINUTE;
  const size = Math.abs(minutes);
  return `UTC${minutes < 0 ? "−" : "+"}${pad(Math.floor(size / 60))}:${pad(size % 60)}`;
}
