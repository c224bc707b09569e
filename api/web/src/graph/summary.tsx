// SPDX-License-Identifier: Apache-2.0
// The answer in words, above the graph: its first sentences, and the others on demand.
import { useSignal } from "@preact/signals";

import { Asking } from "../asking";
import { addressIn } from "../link";
import { isCpu } from "../measure";
import { profile } from "../questions";
import { printable } from "../text";

// As many as the closed strip has room for.
const FIRST = 3;

// In words there is only CPU time. For the time of the shown graph, so it is asked anew with each answer.
const summary = new Asking<readonly string[]>(() => (profile.answer.value === null || !isCpu.value ? null : addressIn("summary")), {
  read: (bytes) => new TextDecoder().decode(bytes).split("\n").filter((line) => line.trim() !== ""),
  after: profile,
});

export function Summary() {
  const isOpen = useSignal(false);
  const lines = summary.answer.value;
  if (!isCpu.value) return null;
  if (summary.problem.value !== null || lines?.length === 0) return null;
  // While the first one is on its way its place is kept free, so that the graph does not move.
  if (lines === null) return <div class="summary" />;
  return (
    <section id="summary" class={isOpen.value ? "summary open" : "summary"} aria-label="In words">
      <div class="lines">
        <p>{(isOpen.value ? lines : lines.slice(0, FIRST)).map((line) => <span key={line}>{printable(line)} </span>)}</p>
      </div>
      {lines.length > 1 && (
        <button type="button" class="summary-more" aria-expanded={isOpen} onClick={() => (isOpen.value = !isOpen.value)}>{isOpen.value ? "less" : "more"}</button>
      )}
    </section>
  );
}
