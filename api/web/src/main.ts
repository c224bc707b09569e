// SPDX-License-Identifier: Apache-2.0
// The wiring: what is selected → what is asked → what is shown.

import * as api from "./api";
import type { Problem, Profile } from "./answers";
import { showFacts } from "./facts";
import { FlameGraph } from "./flamegraph";
import { KINDS, swatch } from "./palette";
import { ProcessList } from "./processes";
import * as selection from "./selection";
import { count, element, percent, printable, seconds } from "./text";
import { Tree, matcher } from "./tree";

const RANGES = [["5 min", "now-5m"], ["15 min", ""], ["1 h", "now-1h"], ["6 h", "now-6h"], ["24 h", "now-24h"]];
const RETRY_MS = 2000;

// The elements of index.html.
const $ = (id: string) => document.getElementById(id)!;
const input = (id: string) => $(id) as HTMLInputElement;
const dark = matchMedia("(prefers-color-scheme: dark)");

let chosen = selection.read();
let profile: Profile | null = null; // the answer that is shown
let underWay: AbortController | null = null;
let retry = 0;

const graph = new FlameGraph({
  container: $("graph"), space: $("graph-space"), canvas: $("canvas") as HTMLCanvasElement, mirror: $("mirror"), announcer: $("announcer"),
  onZoom: () => { showCrumbs(); search(); },
  onHover: showTooltip,
});
const processList = new ProcessList({
  list: $("process-list"), counter: $("processes-count"), filter: input("process-filter"),
  onSelect: (pid) => choose({ pid }),
});

// ---- Asking ----

function choose(changes: Partial<selection.Selection>) {
  chosen = { ...chosen, ...changes };
  selection.push(chosen);
  load();
}

async function load() {
  clearTimeout(retry);
  underWay?.abort();
  const { signal } = (underWay = new AbortController());
  showSelection();
  $("stage").classList.add("busy");
  $("progress").hidden = false;
  $("graph").setAttribute("aria-busy", "true");
  try {
    const [processes, answer] = await Promise.allSettled([api.processes(chosen, signal), api.profile(chosen, signal)]);
    if (signal.aborted) return;
    if (processes.status === "fulfilled") processList.show(processes.value);
    if (answer.status === "rejected") throw answer.reason;
    showProfile(answer.value);
  } catch (error) {
    if (!signal.aborted) showError(error);
  }
  if (signal.aborted) return;
  $("stage").classList.remove("busy");
  $("progress").hidden = true;
  $("graph").removeAttribute("aria-busy");
  document.body.dataset.loaded = String(Number(document.body.dataset.loaded ?? 0) + 1);
  askHealth(signal);
}

async function askHealth(signal: AbortSignal) {
  const label = $("health");
  try {
    const { status, components } = await api.health(signal);
    const failing = components.filter((component) => !component.ok);
    label.className = status === "ok" ? "health" : "health bad";
    label.textContent = status === "ok" ? "sampling" : `failing: ${failing.map((component) => component.name).join(", ")}`;
    label.title = components.map(({ name, detail }) => `${name}: ${detail}`).join("\n");
    label.hidden = false;
  } catch {
    label.hidden = true;
  }
}

// ---- Showing ----

function showSelection() {
  input("from").value = chosen.from;
  input("to").value = chosen.to;
  for (const field of ["from", "to"]) $(field).removeAttribute("aria-invalid");
  for (const button of $("ranges").querySelectorAll("button")) button.setAttribute("aria-pressed", String(chosen.to === "" && button.dataset.from === chosen.from));
  processList.select(chosen.pid);
}

function showTitle() {
  const title = $("profile-title");
  if (chosen.pid === "") {
    title.textContent = "Whole machine";
  } else {
    const process = profile?.processes[0] ?? processList.find(chosen.pid);
    title.replaceChildren(element("bdi", "", process ? printable(process.comm, 200) : "Process"), element("small", "", `pid ${chosen.pid.split("@")[0]}`));
  }
  document.title = `${title.firstChild?.textContent} – flamed`;
}

function showProfile(answer: Profile) {
  profile = answer;
  showTitle();
  showFacts($("facts"), answer);
  $("warnings").replaceChildren(...answer.warnings.map((warning) => element("li", "", printable(warning))));
  graph.show(new Tree(answer));
  showLegend();
  if (answer.samples > 0) {
    hideNotice();
  } else {
    // The reason stands in the middle of the empty graph, and not a second time above it.
    $("warnings").replaceChildren();
    const actions: Action[] = [["Last hour", () => choose({ from: "now-1h", to: "" })]];
    if (chosen.pid !== "") actions.unshift(["Whole machine", () => choose({ pid: "" })]);
    showNotice("No samples here", answer.warnings.length > 0 ? answer.warnings.map((warning) => printable(warning)) : ["No CPU was used in this window."], actions);
  }
}

function showError(error: unknown) {
  profile = null;
  showTitle();
  $("facts").replaceChildren();
  $("warnings").replaceChildren();
  if (error instanceof api.Unreachable) {
    showNotice("flamed does not answer", ["The daemon has stopped or is being restarted. The page goes on as soon as it is back.", "On the host: systemctl status flamed"],
      [["Try now", load]], true);
    $("health").hidden = true;
    retry = setTimeout(load, RETRY_MS);
    return;
  }
  const problem: Problem = error instanceof api.Refused ? error.problem : { title: "The page failed", detail: String(error) };
  if (!(error instanceof api.Refused)) console.error(error);
  if (problem.parameter === "from" || problem.parameter === "to") {
    $(problem.parameter).setAttribute("aria-invalid", "true");
  }
  const actions: Action[] = [["Try again", load]];
  if (problem.parameter === "pid") actions.unshift(["Whole machine", () => choose({ pid: "" })]);
  if (problem.parameter === "from" || problem.parameter === "to") actions.unshift(["Last 15 minutes", () => choose({ from: "", to: "" })]);
  showNotice(problem.title ?? "Refused", [printable(problem.detail ?? "")], actions, true);
}

function flame() {
  const ns = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(ns, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(ns, "path");
  path.setAttribute("d", "M12.500 2.500c.6 4-4.700 5.400-4.700 11a4.700 4.700 0 0 0 9.400.400c0-4.300-3.300-6-4.700-11.400zM12 20.800v.700M7 20l-.500.600M17 20l.5.600");
  path.setAttribute("fill", "none");
  path.setAttribute("stroke", "currentColor");
  path.setAttribute("stroke-width", "1.4");
  path.setAttribute("stroke-linecap", "round");
  path.setAttribute("stroke-linejoin", "round");
  svg.append(path);
  return svg;
}

type Action = [string, () => void];

function showNotice(title: string, sentences: string[], actions: Action[], isBad = false) {
  const notice = $("notice");
  const buttons = element("div", "actions");
  actions.forEach(([label, action], index) => {
    const button = element("button", index === 0 ? "primary" : "quiet", label);
    button.type = "button";
    button.addEventListener("click", action);
    buttons.append(button);
  });
  notice.replaceChildren(flame(), element("h3", "", title), ...sentences.map((sentence) => element("p", "", sentence)), buttons);
  notice.classList.toggle("bad", isBad);
  notice.hidden = false;
  $("graph").inert = true;
  $("crumbs").replaceChildren();
  $("legend").replaceChildren();
  $("mirror").replaceChildren();
  $("search-result").replaceChildren();
}

function hideNotice() {
  $("notice").hidden = true;
  $("graph").inert = false;
}

function showLegend() {
  const present = new Set(graph.tree?.frames.map((frame) => frame.kind));
  $("legend").replaceChildren(
    ...Object.keys(KINDS).filter((kind) => present.has(kind)).map((kind) => {
      const item = element("li");
      const box = element("i");
      box.style.backgroundColor = swatch(kind, dark.matches);
      item.append(box, KINDS[kind].label);
      return item;
    }),
  );
}

function showCrumbs() {
  const { tree, zoomed } = graph;
  if (tree === null) return;
  const path = tree.path(zoomed);
  // The way to a deep frame is told by its ends.
  const shown = path.length <= 6 ? path : [path[0], -1, ...path.slice(-4)];
  $("crumbs").replaceChildren(
    ...shown.map((node, index) => {
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
    }),
  );
}

function search() {
  const text = input("search").value;
  const { tree, zoomed } = graph;
  const result = $("search-result");
  result.replaceChildren();
  $("search").removeAttribute("aria-invalid");
  if (tree === null) return;
  if (text === "" || tree.total === 0) {
    graph.highlight(null);
    return;
  }
  try {
    const { found, samples } = tree.search(matcher(text), zoomed);
    graph.highlight(found);
    result.append(element("b", "", percent(samples, tree.value[zoomed])), " matched");
  } catch {
    $("search").setAttribute("aria-invalid", "true");
    graph.highlight(null);
    result.append("not a regular expression");
  }
}

function showTooltip(node: number, x: number, y: number) {
  const tooltip = $("tooltip");
  const { tree, zoomed } = graph;
  if (node === -1 || profile === null || tree === null) {
    tooltip.hidden = true;
    return;
  }
  const { name, kind, module, reason } = tree.of(node);
  const box = element("i");
  box.style.backgroundColor = swatch(kind in KINDS ? kind : "unknown", dark.matches);
  const where = element("div", "where");
  where.append(box, [KINDS[kind]?.label ?? kind, module && printable(module, 200)].filter((part) => part !== "").join(" · "));
  const figures = element("dl");
  const perSample = profile.samples === 0 ? 0 : profile.cpu_seconds / profile.samples;
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

// ---- Wiring ----

$("ranges").append(
  ...RANGES.map(([label, from]) => {
    const button = element("button", "", label);
    button.type = "button";
    button.dataset.from = from;
    button.addEventListener("click", () => choose({ from, to: "" }));
    return button;
  }),
);
$("window-form").addEventListener("submit", (event) => {
  event.preventDefault();
  choose({ from: input("from").value.trim(), to: input("to").value.trim() });
});
$("search").addEventListener("input", () => {
  chosen = { ...chosen, search: input("search").value };
  selection.replace(chosen);
  search();
});
addEventListener("popstate", () => {
  chosen = selection.read();
  input("search").value = chosen.search;
  load();
});
addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target instanceof HTMLInputElement) return;
  event.preventDefault();
  input("search").select();
});
dark.addEventListener("change", showLegend);

input("search").value = chosen.search;
load();
