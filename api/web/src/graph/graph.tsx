// SPDX-License-Identifier: Apache-2.0
// The profile: what was running, and called by whom.
import { effect, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import "./graph.css";
import type { Problem } from "../answers";
import { CANCELLED } from "../asking";
import { isDiff, profile } from "../questions";
import { NO_SELECTION, ask, isMachine, view } from "../state";
import { type Action, Notice, Waiting } from "../states";
import { count, element, percent, printable, seconds } from "../text";
import { isDark } from "../theme";
import { heading } from "../title";
import { FlameGraph } from "./flamegraph";
import { KINDS, swatch } from "./palette";
import { Tree, matcher } from "./tree";

function describe(problem: Problem) {
  const actions: Action[] = [{ label: "Try again", act: () => profile.again() }];
  if (problem.parameter === "pid") actions.unshift({ label: "Whole machine", act: () => ask(NO_SELECTION) });
  if (problem.parameter === "from" || problem.parameter === "to") actions.unshift({ label: "Last 15 minutes", act: () => ask({ from: "", to: "" }) });
  return <Notice title={problem.title ?? "Refused"} sentences={[printable(problem.detail ?? "")]} actions={actions} isBad={problem !== CANCELLED} />;
}

function describeEmpty(warnings: string[]) {
  const actions: Action[] = [{ label: "Last hour", act: () => ask({ from: "now-1h", to: "" }) }];
  if (!isMachine.value) actions.unshift({ label: "Whole machine", act: () => ask(NO_SELECTION) });
  const sentences = warnings.length > 0 ? warnings.map((warning) => printable(warning)) : ["No CPU was used in this window."];
  return <Notice title="No samples here" sentences={sentences} actions={actions} />;
}

export function Graph() {
  const box = useRef<HTMLElement>(null);
  const searched = useSignal("");
  useEffect(() => mount(box.current!, (text) => (searched.value = text)), []);

  const answer = profile.answer.value;
  const problem = profile.problem.value;
  const facts = answer === null ? null : isDiff(answer) ? answer.after : answer;
  const isEmpty = facts !== null && facts.samples === 0;
  const { name, more } = heading.value;
  const warnings = answer === null || isEmpty || problem !== null ? [] : (answer.warnings ?? []);
  const notice = problem !== null ? describe(problem) : isEmpty ? describeEmpty(facts.warnings) : null;
  return (
    <section class="profile" aria-labelledby="profile-title" ref={box}>
      <div class="pane-head">
        <h2 id="profile-title"><bdi>{name}</bdi>{more && <small>{more}</small>}</h2>
        <span id="search-result" class="search-result" role="status">{searched.value}</span>
      </div>
      <nav class="crumbs" aria-label="Zoom"><ol id="crumbs" /></nav>
      <ul id="warnings" class="warnings" aria-label="Warnings">
        {warnings.map((warning) => <li key={warning}>{printable(warning)}</li>)}
      </ul>
      <div class={profile.progress.value === null ? "stage" : "stage busy"} id="stage">
        <Waiting asking={profile} what="the profile" />
        <div id="graph" class="graph" tabIndex={0} role="application" aria-roledescription="flame graph" aria-label="Flame graph"
          aria-describedby="graph-help" inert={notice !== null}>
          <div id="graph-space" class="graph-space"><canvas id="canvas" aria-hidden="true" /></div>
        </div>
        {notice}
      </div>
      <p id="graph-help" class="visually-hidden">
        Arrow keys move between frames: down to the largest callee, up to the caller, left and right to neighbours. Enter zooms into a
        frame, Escape resets.
      </p>
      <p id="announcer" class="visually-hidden" aria-live="polite" />
      <div class="under">
        <ul id="legend" class="legend" aria-label="Colours" />
        <p class="hint">Click zooms · Esc resets · arrows move</p>
      </div>
      <ol id="mirror" class="visually-hidden" aria-label="Frames that the graph shows, largest share of time first in each caller" />
      <div id="tooltip" class="tooltip" role="presentation" hidden />
    </section>
  );
}

function mount(box: HTMLElement, tellSearch: (text: string) => void) {
  const part = (id: string) => box.querySelector<HTMLElement>(`#${id}`)!;
  const graph = new FlameGraph({
    container: part("graph"), space: part("graph-space"), canvas: part("canvas") as HTMLCanvasElement, mirror: part("mirror"),
    announcer: part("announcer"),
    onZoom: () => {
      showCrumbs();
      search();
    },
    onHover: showTooltip,
  });

  function showCrumbs() {
    const { tree, zoomed } = graph;
    if (tree === null) return;
    const path = tree.path(zoomed);
    // The way to a deep frame is told by its ends.
    const shown = path.length <= 6 ? path : [path[0], -1, ...path.slice(-4)];
    part("crumbs").replaceChildren(...shown.map((node, index) => {
      const item = element("li", index === 0 ? "first" : "");
      if (node === -1) {
        item.append(element("span", "", "…"));
      } else if (node === zoomed) {
        const here = element("span", "", zoomed === 0 ? `all ${count(tree.total)} samples` : printable(tree.of(node).name, 200));
        here.setAttribute("aria-current", "true");
        item.append(here);
      } else {
        const button = element("button", "", index === 0 ? "Reset zoom" : printable(tree.of(node).name, 200));
        button.type = "button";
        button.addEventListener("click", () => graph.zoom(node));
        item.append(button);
      }
      return item;
    }));
  }

  function search() {
    const text = view.peek().search;
    const { tree, zoomed } = graph;
    if (tree === null || text === "" || tree.total === 0) {
      graph.highlight(null);
      return tellSearch("");
    }
    try {
      const { found, samples } = tree.search(matcher(text), zoomed);
      graph.highlight(found);
      tellSearch(`${percent(samples, tree.value[zoomed])} matched`);
    } catch {
      graph.highlight(null);
      tellSearch("not a regular expression");
    }
  }

  function showTooltip(node: number, x: number, y: number) {
    const tooltip = part("tooltip");
    const { tree, zoomed } = graph;
    const answer = profile.answer.peek();
    if (node === -1 || answer === null || tree === null) {
      tooltip.hidden = true;
      return;
    }
    const facts = isDiff(answer) ? answer.after : answer;
    const { name, kind, module, reason } = tree.of(node);
    const colour = element("i");
    colour.style.backgroundColor = swatch(kind in KINDS ? kind : "unknown", isDark.peek());
    const where = element("div", "where");
    where.append(colour, [KINDS[kind]?.label ?? kind, module && printable(module, 200)].filter((text) => text !== "").join(" · "));
    const figures = element("dl");
    const perSample = facts.samples === 0 ? 0 : facts.cpu_seconds / facts.samples;
    const figure = (label: string, value: number) =>
      figures.append(element("dt", "", label), element("dd", "", `${count(value)} samples · ${seconds(value * perSample)}`), element("dd", "", percent(value, tree.total)));
    figure("Total", tree.value[node]);
    figure("Self", tree.self[node]);
    if (zoomed !== 0 && tree.contains(zoomed, node)) {
      figures.append(element("dt", "", "Of zoom"), element("dd", "", ""), element("dd", "", percent(tree.value[node], tree.value[zoomed])));
    }
    tooltip.replaceChildren(element("div", "name", printable(name, 1500)), where, figures);
    if (reason) tooltip.append(element("div", "reason", `No name: ${printable(reason, 300)}`));
    tooltip.hidden = false;
    const { width, height } = tooltip.getBoundingClientRect();
    const left = Math.max(8, Math.min(x + 14, innerWidth - width - 8));
    const top = y + 18 + height > innerHeight ? Math.max(8, y - height - 12) : y + 18;
    tooltip.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
  }

  const endings = [
    effect(() => {
      const answer = profile.answer.value;
      if (answer !== null) graph.show(new Tree(answer.columns));
    }),
    effect(() => {
      profile.answer.value;
      const dark = isDark.value;
      const present = new Set(graph.tree?.frames.map((frame) => frame.kind));
      part("legend").replaceChildren(...Object.keys(KINDS).filter((kind) => present.has(kind)).map((kind) => {
        const item = element("li");
        const colour = element("i");
        colour.style.backgroundColor = swatch(kind, dark);
        item.append(colour, KINDS[kind].label);
        return item;
      }));
    }),
    effect(() => {
      view.value;
      search();
    }),
    effect(() => {
      if (profile.problem.value === null) return;
      for (const id of ["crumbs", "legend", "mirror"]) part(id).replaceChildren();
    }),
  ];
  return () => endings.forEach((end) => end());
}

