// SPDX-License-Identifier: Apache-2.0
// The graph's display options, and the path of the zoom with its way out.
import { base, type Baseline, type ColourBy, type Mode, compare, look, view } from "../state";
import { isTimed, worth } from "../measure";
import { about } from "../questions";
import { count, printable, seconds } from "../text";
import { share } from "./drawing/labels";
import { drawn, drawnZoom, found, isChosen, legend, matchedShare, model, searchProblem, zoomDrawn, zoomTo, zoomed } from "./shown/shown";

const MODES: readonly [Mode, string, string][] = [
  ["icicle", "Icicle", "Callers above what they call"],
  ["flame", "Flame", "Callers below what they call"],
  ["bottom-up", "Bottom-up", "Functions by their own time, and below each what called it"],
  ["sandwich", "Sandwich", "All callers and callees of one function"],
  ["table", "Table", "Functions, sorted"],
  ["code", "Lines", "Source lines and instructions of one function"],
  ["time", "Over time", "Threads, and what one did from one moment to the next"],
];
const NORMALISE: readonly [Baseline["normalise"], string, string][] = [
  ["", "Share", "Shares of each side's samples"],
  ["time", "CPU time", "CPU time per time, as parts of a CPU"],
];
const COLOURS: readonly [ColourBy, string][] = [["kind", "kind"], ["module", "module"], ["name", "function"]];

export function Toolbar() {
  const { mode, colour, palette, collapse, beside } = view.value;
  const isGraph = mode === "icicle" || mode === "flame" || mode === "bottom-up";
  return (
    <div class="graph-tools" role="toolbar" aria-label="How the profile is shown">
      <div class="segments" role="group" aria-label="View" id="modes">
        {MODES.map(([key, label, title]) => (
          <button key={key} type="button" title={title} data-mode={key} aria-pressed={mode === key} onClick={() => look({ mode: key })}>{label}</button>
        ))}
      </div>
      {isGraph && <label class="choice"><input id="beside" type="checkbox" checked={beside} onChange={(event) => look({ beside: event.currentTarget.checked })} /> Table beside</label>}
      {base.value === null ? (
        <label class="choice">Colours
          <select id="colour" value={colour} onChange={(event) => look({ colour: event.currentTarget.value as ColourBy }, "replace")}>
            {COLOURS.map(([key, label]) => <option key={key} value={key}>{label}</option>)}
          </select>
        </label>
      ) : (
        <>
          <div class="segments" role="group" aria-label="Compare by" id="normalise">
            {NORMALISE.map(([key, label, title]) => (
              <button key={label} type="button" title={title} aria-pressed={base.value!.normalise === key} onClick={() => compare({ normalise: key })}>{label}</button>
            ))}
          </div>
          <label class="choice">Colours
          <select id="palette" value={palette} onChange={(event) => look({ palette: event.currentTarget.value as "" | "blind" }, "replace")}>
            <option value="">red and blue</option>
            <option value="blind">colour-blind safe</option>
          </select>
          </label>
        </>
      )}
      {mode !== "time" && <label class="choice"><input id="collapse" type="checkbox" checked={collapse} onChange={(event) => look({ collapse: event.currentTarget.checked })} /> Fold recursion</label>}
    </div>
  );
}

export function SearchResult() {
  const part = matchedShare.value;
  const problem = searchProblem.value;
  return (
    <span id="search-result" class={problem === "" ? "search-result" : "search-result bad"} role="status">
      {problem !== "" ? `Not searched: ${problem}` : part !== null && <><b>{share(part, 1)}</b> matched</>}
    </span>
  );
}

const MOST = 6;

interface Step {
  text: string;
  isUp: boolean; // from the bottom: a caller of the step before
  go: () => void;
}

// The path of the zoom, from the root, and in a bottom-up graph from there on to callers.
export function Crumbs() {
  const tree = model.value;
  if (tree === null || tree.total === 0) return <nav class="crumbs" aria-label="Zoom"><ol id="crumbs" /></nav>;
  const steps: Step[] = tree.path(zoomed.value).slice(1).map((node) => ({ text: tree.name(node), isUp: false, go: () => zoomTo(node) }));
  const up = drawn.value;
  if (up?.isInverted) steps.push(...up.path(drawnZoom.value).slice(1).map((node) => ({ text: up.name(node), isUp: true, go: () => zoomDrawn(node) })));
  // Of a long path only the first and the last frames are shown.
  const shown = steps.length < MOST ? steps : [null, ...steps.slice(2 - MOST)];
  return (
    <nav class="crumbs" aria-label="Zoom">
      <ol id="crumbs">
        <li class="first">
          {steps.length === 0
            ? <span aria-current="true"><bdi>All</bdi>{tree.sides === null && ` ${isTimed.value && about.value !== null ? seconds(tree.total * worth(about.value)) : `${count(tree.total)} samples`}`}</span>
            : <button type="button" onClick={() => zoomTo(0)}><bdi>Reset zoom</bdi></button>}
        </li>
        {shown.map((step, index) => (
          <li key={index} class={step?.isUp ? "up" : ""}>
            {step === null
              ? <span><bdi>…</bdi></span>
              : step === steps.at(-1)
                ? <span aria-current="true"><bdi>{printable(step.text, 200)}</bdi></span>
                : <button type="button" onClick={step.go}><bdi>{printable(step.text, 200)}</bdi></button>}
          </li>
        ))}
      </ol>
    </nav>
  );
}

export function Legend() {
  return (
    <ul id="legend" class="legend" aria-label="Colours">
      {/* Reasons stand above the graph. */}
      {legend.value.filter(({ isReason }) => !isReason).map(({ label, colour }) => <li key={label}><i style={{ backgroundColor: colour }} />{printable(label, 60)}</li>)}
      {(isChosen.value || found.value !== null) && <li><i class="found" />{isChosen.value ? "Chosen" : "Matches"}</li>}
    </ul>
  );
}
