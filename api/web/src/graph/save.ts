// SPDX-License-Identifier: Apache-2.0
// Exports the shown graph as a picture.
import { effect } from "@preact/signals";

import { rateText } from "../facts";
import { type Pictures, pictures } from "../pictures";
import { isTimed, title } from "../measure";
import { isDiff, profile } from "../questions";
import { question, view } from "../state";
import { count, printable, seconds, span } from "../text";
import { token } from "../theme";
import { heading } from "../title";
import type { Shown } from "./drawing/flame_canvas";
import { share } from "./drawing/labels";
import { viewOf } from "./drawing/layout";
import { chosen, ordered } from "./order/order_state";
import { GRAPH_WIDTH, type Picture, png, svg } from "./drawing/picture";
import { halves, legend, matchedShare, middle, mode, shown } from "./shown/shown";

function partOf(part: Shown, caption: string): Picture["parts"][number] {
  return { subject: part, view: viewOf(part.model, part.zoomed, part.direction, GRAPH_WIDTH), caption };
}

function describe(): string[] {
  const answer = profile.answer.peek();
  if (answer === null) return [];
  const time = (facts: { window: { used: { from_ms: number; to_ms: number } } }) => span(facts.window.used.from_ms, facts.window.used.to_ms);
  const lines: string[] = [];
  if (isDiff(answer)) {
    lines.push(`${time(answer.after)}, compared with ${time(answer.before)}`);
    lines.push(isTimed.peek()
      ? `${title.peek()}: ${seconds(answer.after.cpu_seconds)}, before ${seconds(answer.before.cpu_seconds)}`
      : `${count(answer.after.samples)} samples, before ${count(answer.before.samples)}`);
  } else {
    const what = isTimed.peek() ? `${title.peek()}: ${seconds(answer.cpu_seconds)}` : `${count(answer.samples)} samples at ${rateText(answer)}`;
    lines.push(`${time(answer)} · ${what}`);
  }
  const { focus, ignore, hide } = question.peek();
  const filters = Object.entries({ focus, ignore, hide }).filter(([, value]) => value !== "").map(([key, value]) => `${key} ${printable(value, 200)}`);
  if (filters.length > 0) lines.push(filters.join(" · "));
  const { search } = view.peek();
  if (search !== "" && matchedShare.peek() !== null) lines.push(`${share(matchedShare.peek()!, 1)} match ${printable(search, 200)}`);
  return lines;
}

function picture(): Picture {
  const { callers, callees } = { callers: halves.callers.peek(), callees: halves.callees.peek() };
  const thread = mode.peek() === "time" && ordered.peek() !== null ? chosen.peek() : null;
  const all = thread === null ? shown.peek()! : ordered.peek()!;
  const isSandwich = mode.peek() === "sandwich" && callers !== null && callees !== null;
  const parts = isSandwich
    ? [partOf(callers, "Called by"), partOf(callees, "Calls")]
    : [partOf(all, [all.model.isInverted ? "From the functions that ran to their callers" : "", thread === null ? "" : `Thread ${thread.tid} ${printable(thread.comm, 100)}, in the order of time`, all.zoomed === 0 ? "" : `Zoomed to ${printable(all.model.name(all.zoomed), 120)}`].filter((text) => text !== "").join(" · "))];
  const { name, more } = heading.peek();
  const title = [`${name}${more === "" ? "" : ` (${more})`}`, isSandwich ? `around ${printable(middle.peek() ?? "", 120)}` : ""].filter((text) => text !== "").join(": ");
  return { title, lines: describe(), parts, legend: legend.peek(), ground: token("--panel"), softInk: token("--ink-soft") };
}

const offer: Pictures = { svg: () => new Blob([svg(picture())], { type: "image/svg+xml" }), png: () => png(picture()) };
// While there is a graph.
effect(() => {
  pictures.value = shown.value === null ? null : offer;
});
