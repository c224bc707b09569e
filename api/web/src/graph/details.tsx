// SPDX-License-Identifier: Apache-2.0
// The details of the selected frame: one line, and more on demand.
import { useSignal } from "@preact/signals";

import { printable } from "../text";
import { labelOf } from "./drawing/colours";
import { drawn, drawnZoom, selectedNode, shown } from "./shown/shown";
import { figures } from "./drawing/tooltip";

export function Details() {
  const tree = drawn.value;
  const now = shown.value;
  const node = selectedNode.value;
  const isOpen = useSignal(false);
  if (tree === null || now === null || tree.total === 0) return null;
  const { frames } = tree;
  const f = tree.frame[node];
  const name = frames.fullName(f);
  const known: [string, string][] = [
    ["Module", frames.module(f)],
    ["Build-id", frames.buildId(f)],
    ["Source", frames.source(f)],
    ["No name", frames.reason(f)],
  ];
  return (
    <section class={isOpen.value ? "details open" : "details"} id="details" aria-label="Selected frame">
      <p class="name">
        <i style={{ backgroundColor: now.palette.colours[now.palette.of(node)] }} />
        <bdi>{printable(name)}</bdi>
        <small>{labelOf(frames.kind(f))}</small>
      </p>
      <dl>
        {figures(tree, node, drawnZoom.value).map(([label, figure, part]) => (
          <div key={label}><dt>{label}</dt><dd>{figure !== "" && `${figure} · `}<b>{part}</b></dd></div>
        ))}
        {known.filter(([, text]) => text !== "").map(([label, text]) => (
          <div key={label} class={label === "No name" ? "bad" : ""}><dt>{label}</dt><dd><code>{printable(text, 500)}</code></dd></div>
        ))}
      </dl>
      <button type="button" class="details-more" aria-expanded={isOpen} onClick={() => (isOpen.value = !isOpen.value)}>{isOpen.value ? "less" : "more"}</button>
    </section>
  );
}
