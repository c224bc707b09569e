// SPDX-License-Identifier: Apache-2.0
// An address that shows the same to everyone at any time: "now" and the defaults become fixed times.
import { addressWith } from "./api";
import { isDiff, profile } from "./questions";
import { type Changes, addressOf, base, changed, profileParameters } from "./state";

const atOnce = (ms: number) => new Date(ms).toISOString();

// The shown windows, as fixed times.
export function pinned(): Changes {
  const answer = profile.answer.value;
  if (answer === null) return {};
  const times = ({ window: { asked } }: { window: { asked: { from_ms: number; to_ms: number } } }) => ({ from: atOnce(asked.from_ms), to: atOnce(asked.to_ms) });
  if (!isDiff(answer)) return { question: times(answer) };
  // A baseline that goes with its window is as fixed.
  return { question: times(answer.after), base: base.value?.ago ? {} : times(answer.before) };
}

export const lastingAddress = () => location.origin + addressOf(changed(pinned()));

// The address of the shown profile or comparison in another of the daemon's formats.
export function addressIn(format: string): string {
  const { question, base: compared } = changed(pinned());
  const parameters = profileParameters(question, compared);
  parameters.set("format", format);
  // In words a program has its name instead of its path.
  if (format === "summary" && parameters.get("group") === "exe") parameters.delete("group");
  return addressWith(compared === null ? "/profile" : "/diff", parameters);
}
