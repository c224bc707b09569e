// SPDX-License-Identifier: Apache-2.0
// The page's queries, derived from its state.
import { computed } from "@preact/signals";

import type { About, Coverage, Diff, Process, Processes, Profile, Side, UnnamedModule } from "./answers";
import { addressWith } from "./api";
import { Asking } from "./asking";
import { readProfile } from "./graph/tree/answer";
import { base, profileParameters, question, windowOnly } from "./state";

// More than a screen can show, and a few times faster than all that the daemon has.
const FIRST_NODES = 25000;

// The rest is fetched when this is painted: see graph/shown/shown.ts.
export const profile = new Asking<Profile | Diff>(() => {
  const parameters = profileParameters(question.value, base.value);
  parameters.set("format", "columns-binary");
  parameters.set("max_nodes", String(FIRST_NODES));
  return addressWith(base.value === null ? "/profile" : "/diff", parameters);
}, { read: readProfile });

// For the whole machine, so that another process can be chosen from the list.
export const processes = new Asking<Processes>(() => addressWith("/processes", windowOnly(question.value)), { after: profile });

export const isDiff = (answer: Profile | Diff): answer is Diff => "before" in answer;

// Of the shown profile; in a comparison, of its later side.
export const about = computed<(About & { coverage: Coverage; symbolised_share?: number; unnamed?: UnnamedModule[]; before?: Side }) | null>(() => {
  const answer = profile.answer.value;
  if (answer === null) return null;
  if (!isDiff(answer)) return answer;
  const { before } = answer;
  // Why there is nothing to compare with, such as a history that does not reach that far.
  const missing = before.samples === 0 ? before.warnings.map((warning) => `Of the time before: ${warning}`) : [];
  return { ...answer.after, warnings: [...missing, ...answer.warnings], before };
});

// The requested window in milliseconds, once an answer has resolved "now" and "14:05".
export const askedWindow = computed(() => about.value?.window.asked ?? processes.answer.value?.window.asked ?? null);

// By "pid@start", or by the pid alone.
export function findProcess(id: string): Process | undefined {
  const isIt = (process: Process) => process.id === id || String(process.pid) === id;
  const answer = profile.answer.value;
  const known = answer === null || isDiff(answer) ? undefined : answer.processes.find(isIt);
  return known ?? processes.answer.value?.processes.find(isIt);
}
