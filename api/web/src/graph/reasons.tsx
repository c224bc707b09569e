// SPDX-License-Identifier: Apache-2.0
// Why the threads of the shown part wait: each reason with its time, as a legend of the graph and a filter of its stacks.
import { computed } from "@preact/signals";

import { isTimed, shownMeasure, worth } from "../measure";
import { about } from "../questions";
import { ask, question } from "../state";
import { percent, seconds } from "../text";
import { REASONS, REASON_TEXTS, type Reason, classOf, focusOn, howKnown, reasonOfFocus } from "../waits";
import { reasonOf } from "./tree/frames";
import { model, zoomed } from "./shown/shown";

interface Sums {
  total: number; // units of the answer
  waits: [Reason, number][]; // most first
  small: number; // of stacks that the answer has left out
  rest: number; // on a CPU, or of stacks that were cut
}

const sums = computed<Sums | null>(() => {
  const tree = model.value;
  if (tree === null || !isTimed.value || tree.sides !== null) return null;
  const { frames, frame, self, end, value } = tree;
  const reasons = Array.from({ length: frames.size }, (_, f) => reasonOf(frames.kind(f)));
  const isPruned = Array.from({ length: frames.size }, (_, f) => frames.isPruned(f));
  const by = new Map<Reason, number>();
  let known = 0;
  let small = 0;
  for (let i = zoomed.value; i < end[zoomed.value]; i++) {
    if (isPruned[frame[i]]) small += value[i];
    const reason = self[i] > 0 ? reasons[frame[i]] : null;
    if (reason === null) continue;
    by.set(reason, (by.get(reason) ?? 0) + self[i]);
    known += self[i];
  }
  const waits = REASONS.filter((reason) => by.has(reason)).map((reason): [Reason, number] => [reason, by.get(reason)!]);
  return { total: value[zoomed.value], waits: waits.sort(([, a], [, b]) => b - a), small, rest: value[zoomed.value] - known - small };
});

export function Reasons() {
  const known = sums.value;
  const facts = about.value;
  if (known === null || facts === null || known.total === 0) return null;
  const each = worth(facts);
  const chosen = reasonOfFocus(question.value.focus);
  const others: [string, number][] = [[shownMeasure.value === "wall" ? "On a CPU" : "Not known", known.rest], ["In smaller stacks", known.small]];
  return (
    <div id="reasons" class="reasons" role="group" aria-label="Why threads wait">
      <b>{shownMeasure.value === "wall" ? "Time" : "Waited"} {seconds(known.total * each)}</b>
      {known.waits.map(([reason, units]) => (
        <button key={reason} type="button" data-reason={reason} aria-pressed={chosen === reason} title={`${REASON_TEXTS[reason].what}: ${seconds(units * each)} of ${seconds(known.total * each)}${howKnown(reason, facts.disk_account)}`}
          onClick={() => ask({ focus: chosen === reason ? "" : focusOn(reason) })}>
          <i class={`swatch ${classOf(reason)}`} />{REASON_TEXTS[reason].name} <small>{percent(units, known.total)} · {seconds(units * each)}</small>
        </button>
      ))}
      {others.filter(([, units]) => units > 0).map(([name, units]) => (
        <span key={name}><i class="swatch wait-rest" />{name} <small>{percent(units, known.total)} · {seconds(units * each)}</small></span>
      ))}
    </div>
  );
}
