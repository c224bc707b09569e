// SPDX-License-Identifier: Apache-2.0
// A frame's description beside the pointer. Only text: names are no markup.
import { isDiff, profile } from "../../questions";
import { amount, isTimed, shownMeasure, worth } from "../../measure";
import { element, printable, seconds } from "../../text";
import { REASON_TEXTS } from "../../waits";
import { moment } from "../../time/ticks";
import { labelOf } from "./colours";
import { changeText, lasting, share } from "./labels";
import { reasonOf } from "../tree/frames";
import type { Model } from "../tree/model";

// A node's shares, one a line: the whole that the share refers to, the figure, the share.
export function figures(model: Model, node: number, zoomed: number): [label: string, figure: string, part: string][] {
  const lines: [string, string, string][] = [];
  if (model.startMs !== null) {
    const from = model.startMs + model.start[node] / 1000;
    const to = from + model.value[node] / 1000;
    return [["From", moment(from), ""], ["To", moment(to), ""], ["For", lasting(model.value[node]), share(model.value[node], model.total)]];
  }
  const answer = profile.answer.peek();
  if (answer === null) return [];
  const { sides } = model;
  if (sides === null || !isDiff(answer)) {
    const each = isDiff(answer) ? worth(answer.after) : worth(answer);
    if (isTimed.peek()) {
      const label = shownMeasure.peek() === "wait" ? "Waited" : "Time";
      lines.push([label, `${seconds(model.value[node] * each)} of ${seconds(model.total * each)}`, share(model.value[node], model.total)]);
      if (zoomed !== 0 && model.contains(zoomed, node)) lines.push(["Of zoom", `of ${seconds(model.value[zoomed] * each)}`, share(model.value[node], model.value[zoomed])]);
      return lines;
    }
    // Among callers both would be of the function at the beginning.
    lines.push([model.isInverted ? "Samples" : "Total", amount(model.value[node], each), share(model.value[node], model.total)]);
    if (!model.isInverted) lines.push(["Self", amount(model.self[node], each), share(model.self[node], model.total)]);
    if (zoomed !== 0 && model.contains(zoomed, node)) lines.push(["Of zoom", "", share(model.value[node], model.value[zoomed])]);
    return lines;
  }
  const unit = answer.normalise === "time" ? " % of a CPU" : " points";
  lines.push(["Before", amount(sides.before[node], worth(answer.before)), share(sides.before[node], answer.before.samples)]);
  lines.push(["After", amount(sides.after[node], worth(answer.after)), share(sides.after[node], answer.after.samples)]);
  lines.push(["Change", "", `${changeText(model.change(node))}${unit}`]);
  if (model.isInverted) return lines;
  const own = sides.selfAfter[node] * sides.scales.after - sides.selfBefore[node] * sides.scales.before;
  if (sides.selfAfter[node] + sides.selfBefore[node] > 0) lines.push(["Of self", sides.significant[node] === 1 ? "more than chance" : "may be chance", `${changeText(own)}${unit}`]);
  return lines;
}

export class Tooltip {
  readonly #box = element("div", "tooltip frame-tooltip");

  constructor() {
    this.#box.hidden = true;
    this.#box.setAttribute("role", "presentation");
    document.querySelector("main")!.append(this.#box);
  }

  end() {
    this.#box.remove();
  }

  hide() {
    this.#box.hidden = true;
  }

  show(model: Model, node: number, zoomed: number, colour: string, x: number, y: number) {
    const { frames, frame } = model;
    const f = frame[node];
    const where = element("div", "where");
    const spot = element("i");
    spot.style.backgroundColor = colour;
    where.append(spot, [labelOf(frames.kind(f)), frames.module(f) === "" ? "" : printable(frames.module(f), 200)].filter((text) => text !== "").join(" · "));
    const list = element("dl");
    for (const [label, figure, part] of figures(model, node, zoomed)) list.append(element("dt", "", label), element("dd", "", figure), element("dd", "", part));
    this.#box.replaceChildren(element("div", "name", printable(frames.name(f), 1500)), where, list);
    const why = reasonOf(frames.kind(f));
    if (why !== null) this.#box.append(element("div", "source", REASON_TEXTS[why].what));
    const source = frames.source(f);
    if (source !== "") this.#box.append(element("div", "source", printable(source, 300)));
    const reason = frames.reason(f);
    if (reason !== "") this.#box.append(element("div", "reason", `No name: ${printable(reason, 300)}`));
    if (frames.isPruned(f) && !model.isInverted) this.#box.append(element("div", "hint", "Click to fetch them"));
    this.#box.hidden = false;
    const { width, height } = this.#box.getBoundingClientRect();
    const left = Math.max(8, Math.min(x + 14, innerWidth - width - 8));
    const top = y + 18 + height > innerHeight ? Math.max(8, y - height - 12) : y + 18;
    this.#box.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
  }
}
