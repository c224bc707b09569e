// SPDX-License-Identifier: Apache-2.0
// The graph's display options, and the path of the zoom with its way out.
import { base, type Baseline, type ColourBy, type Mode, compare, look, view } from "../state";
import { count, printable } from "../text";
import { share } from "./labels";
import { found, legend, matchedShare, model, searchProblem, zoomTo, zoomed } from "./shown";

const MODES: readonly [Mode, string, string][] = [
  ["icicle", "Icicle", "Callers above what they call"],
  ["flame", "Flame", "Callers below what they call"],
  ["sandwich", "Sandwich", "All callers and callees of one function"],
  ["table", "Table", "Functions, sorted"],
];
const NORMALISE: readonly [Baseline["normalise"], string, string][] = [
  ["", "Share", "Shares of each side's samples"],
  ["time", "CPU time", "CPU time per time, as parts of a CPU"],
];
const COLOURS: readonly [ColourBy, string][] = [["kind", "kind"], ["module", "module"], ["name", "function"]];

export function Toolbar() {
  const { mode, colour, palette, collapse } = view.value;
  return (
    <div class="graph-tools" role="toolbar" aria-label="How the profile is shown">
      <div class="segments" role="group" aria-label="View" id="modes">
        {MODES.map(([key, label, title]) => (
          <button key={key} type="button" title={title} data-mode={key} aria-pressed={mode === key} onClick={() => look({ mode: key })}>{label}</button>
        ))}
      </div>
      {base.value === null ? (
        <label class="choice">Colour by
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
      <label class="choice"><input id="collapse" type="checkbox" checked={collapse} onChange={(event) => look({ collapse: event.currentTarget.checked })} /> Collapse recursion</label>
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

export function Crumbs() {
  const tree = model.value;
  if (tree === null || tree.total === 0) return <nav class="crumbs" aria-label="Zoom"><ol id="crumbs" /></nav>;
  const here = zoomed.value;
  const path = tree.path(here);
  // Of a long path only the first and the last frames are shown.
  const steps = path.length <= MOST ? path : [path[0], -1, ...path.slice(2 - MOST)];
  return (
    <nav class="crumbs" aria-label="Zoom">
      <ol id="crumbs">
        {steps.map((node, index) => {
          const text = index === 0 ? (here === 0 ? "All" : "Reset zoom") : node === -1 ? "…" : printable(tree.name(node), 200);
          return (
            <li key={node} class={index === 0 ? "first" : ""}>
              {node === -1 || node === here
                ? <span aria-current={node === here ? "true" : undefined}><bdi>{text}</bdi>{here === 0 && tree.sides === null && ` ${count(tree.total)} samples`}</span>
                : <button type="button" onClick={() => zoomTo(node)}><bdi>{text}</bdi></button>}
            </li>
          );
        })}
      </ol>
    </nav>
  );
}

export function Legend() {
  return (
    <ul id="legend" class="legend" aria-label="Colours">
      {legend.value.map(({ label, colour }) => <li key={label}><i style={{ backgroundColor: colour }} />{printable(label, 60)}</li>)}
      {found.value !== null && <li><i class="found" />Matches</li>}
    </ul>
  );
}
