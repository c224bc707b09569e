// SPDX-License-Identifier: Apache-2.0
// Starts a comparison: with the same time an hour, a day or a week ago, or with the time just before.
import { health } from "../daemon";
import { closeMenu, Menu } from "../menu";
import { DOWN } from "../icons";
import { useKeys } from "../keys";
import { askedWindow } from "../questions";
import { NO_SELECTION, compare } from "../state";
import { dateTime } from "../text";
import { AGO, earlier, obstacle, whole } from "./ago";
import { retained } from "./retained";
import { type Span, before, length } from "./span";

const at = (ms: number) => new Date(ms).toISOString();

interface Choice {
  label: string;
  problem: string; // why it can't be chosen; "" if it can
  baseline: () => { from: string; to: string; ago: string };
}

function choicesOf(window: Span): Choice[] {
  const history = whole(retained.value, health.value?.oldest_ms);
  return AGO.map(([name, ms]) => ({ label: `The same time ${name}`, problem: obstacle(window, ms, history), baseline: () => earlier(ms) }));
}

function justBefore(window: Span): Choice {
  const span = before(window, { from: retained.value?.from ?? 0, to: window.to });
  return {
    label: "The time just before", problem: length(span) > 0 ? "" : `samples begin at ${dateTime(window.from)}`, baseline: () => ({ from: at(span.from), to: at(span.to), ago: "" }),
  };
}

function choose({ baseline }: Choice) {
  closeMenu("compare");
  compare({ ...NO_SELECTION, ...baseline() });
}

const shownWindow = (): Span | null => (askedWindow.value === null ? null : { from: askedWindow.value.from_ms, to: askedWindow.value.to_ms });

// The nearest time that the window can be compared with, and why not if there is none.
function nearest(window: Span | null): { choice?: Choice; problem: string } {
  if (window === null) return { problem: "there is no window yet" };
  const choices = choicesOf(window);
  const choice = choices.find(({ problem }) => problem === "");
  return { choice, problem: choice === undefined ? choices.map(({ label, problem }) => `${label}: ${problem}`).join("\n") : "" };
}

function showChange() {
  const { choice } = nearest(shownWindow());
  if (choice !== undefined) choose(choice);
}

export function Compare() {
  useKeys("Timeline", [{ key: "w", what: "What changed since an hour ago", act: showChange }]);
  const window = shownWindow();
  const { choice, problem } = nearest(window);
  const all = window === null ? [] : [...choicesOf(window), justBefore(window)];
  return (
    <div class="split">
      <button type="button" id="what-changed" disabled={choice === undefined} title={choice === undefined ? problem : `${choice.label.replace("The", "Compare with the")}  w`} onClick={showChange}>What changed?</button>
      <Menu id="compare" label="Compare with" icon={DOWN}>
        <h2>Compare this window with</h2>
        {all.map((each) => (
          <button key={each.label} type="button" class="entry" disabled={each.problem !== ""} onClick={() => choose(each)}>{each.label}<small>{each.problem}</small></button>
        ))}
      </Menu>
    </div>
  );
}
