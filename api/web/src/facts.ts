// SPDX-License-Identifier: Apache-2.0
// What a profile is made of, and how far to trust it.

import type { Counts, Profile } from "./answers";
import { count, duration, element, percent, seconds, span } from "./text";

const sum = (reasons: Counts) => Object.values(reasons).reduce((total, number) => total + number, 0);

const told = (reasons: Counts) =>
  Object.entries(reasons)
    .filter(([, number]) => number > 0)
    .map(([reason, number]) => `${reason.replaceAll("_", " ")} ${count(number)}`)
    .join(", ");

function fact(name: string, value: string, { more = "", className = "", title = "" } = {}) {
  const row = element("div", className);
  const data = element("dd", "", value);
  if (more) data.append(" ", element("small", "", more));
  if (title) row.title = title;
  row.append(element("dt", "", name), data);
  return row;
}

export function showFacts(list: HTMLElement, profile: Profile) {
  const { quality, window: { used } } = profile;
  const truncated = sum(quality.truncated);
  const lost = sum(quality.lost);
  const length = used.to_ms - used.from_ms;
  list.replaceChildren(
    fact("Window", span(used.from_ms, used.to_ms), { more: duration(length), title: `${used.from} to ${used.to}, in steps of ${duration(profile.resolution_ms)}` }),
    fact("Samples", count(profile.samples), { more: `at ${Number(profile.frequency_hz.toFixed(1))} Hz` }),
    fact("CPU", seconds(profile.cpu_seconds), { more: length > 0 ? `${((1000 * profile.cpu_seconds) / length).toFixed(2)} cores` : "" }),
    fact("Truncated", truncated === 0 ? "none" : percent(truncated, quality.whole + truncated), {
      more: told(quality.truncated), className: truncated > 0 ? "warn" : "", title: "Stacks of which the outermost part is missing" }),
    // A lost sample has no process, so it is no share of what is selected.
    fact("Lost", lost === 0 ? "none" : count(lost), {
      more: told(quality.lost), className: lost > 0 ? "bad" : "", title: "Samples of the whole machine that were taken and could not be kept" }),
  );
}
