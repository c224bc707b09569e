// SPDX-License-Identifier: Apache-2.0
// The choice of what the page's times are, where the daemon measures more than CPU time.
import { useKeys } from "../keys";
import { asked, choose, hasChoice, isCpu, showIdle } from "../measure";
import { type Measure, question } from "../state";

const MEASURES: readonly [Measure, string, string][] = [
  ["", "CPU", "Time on a CPU"],
  ["wait", "Waiting", "Time in which threads waited: for a lock, a disk, a CPU …"],
  ["wall", "Both", "Time on a CPU, and waiting"],
];

export function Measures() {
  useKeys("Timeline", [{ key: "o", what: "On a CPU, off it (waiting), or both, where waits are measured", act: () => hasChoice.peek() && choose(NEXT[asked.peek()]) }]);
  if (!hasChoice.value) return null;
  return (
    <div class="measures">
      <div class="segments" role="group" aria-label="What is measured" id="measures">
        {MEASURES.map(([key, label, title]) => (
          <button key={label} type="button" title={title} aria-pressed={asked.value === key} onClick={() => choose(key)}>{label}</button>
        ))}
      </div>
      {!isCpu.value && (
        <label class="choice" title="Threads that wait for work, as in poll(), epoll_wait() and accept()">
          <input id="idle" type="checkbox" checked={question.value.idle === "show"} onChange={(event) => showIdle(event.currentTarget.checked)} /> Idle
        </label>
      )}
    </div>
  );
}

const NEXT: Record<Measure, Measure> = { "": "wait", wait: "wall", wall: "" };
