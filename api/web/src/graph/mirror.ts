// SPDX-License-Identifier: Apache-2.0
// The graph as a tree of elements, for users who can't see the canvas. Each item is invisible over its frame, so that
// tools that follow the place on the screen find it. Only the largest frames have one.

import { ROW, type View, placeOf, topOf } from "./layout";
import type { Labels } from "./labels";

const MOST = 200;
const CALLERS = 30; // the innermost ones above the zoomed frame
const LEAST = 0.002; // of the zoomed frame's value

let made = 0;

export class Mirror {
  readonly #id = `frames-${++made}`;
  readonly #items: HTMLElement[] = [];

  constructor(
    readonly tree: HTMLElement,
    readonly space: HTMLElement,
  ) {}

  show(view: View, labels: Labels, focused: number, offset: number) {
    const { model } = view;
    const nodes = this.#choose(view, focused);
    while (this.#items.length > nodes.length) this.#items.pop()!.remove();
    while (this.#items.length < nodes.length) {
      const item = document.createElement("div");
      item.className = "flame-item";
      item.setAttribute("role", "treeitem");
      this.#items.push(item);
      this.space.append(item);
    }
    let active = "";
    nodes.forEach((node, index) => {
      const item = this.#items[index];
      const place = placeOf(view, node);
      const f = model.frame[node];
      item.id = `${this.#id}-${node}`;
      item.textContent = labels.spoken(node);
      item.setAttribute("aria-level", String(model.depth[node] + 1));
      item.setAttribute("aria-selected", String(node === focused));
      if (model.end[node] > node + 1) item.setAttribute("aria-expanded", "true");
      else item.removeAttribute("aria-expanded");
      item.dataset.name = model.frames.name(f);
      item.dataset.kind = model.frames.kind(f);
      item.dataset.value = String(model.value[node]);
      item.dataset.depth = String(model.depth[node]);
      item.style.transform = `translate(${place?.x ?? 0}px, ${offset + topOf(view, model.depth[node])}px)`;
      item.style.width = `${place?.width ?? 0}px`;
      item.style.height = `${ROW}px`;
      if (node === focused) active = item.id;
    });
    if (active !== "") this.tree.setAttribute("aria-activedescendant", active);
    else this.tree.removeAttribute("aria-activedescendant");
  }

  // In the order of nesting.
  #choose({ model, zoomed }: View, focused: number) {
    const { value, end } = model;
    if (model.total === 0) return [];
    let nodes: number[] = [];
    const least = value[zoomed] * LEAST;
    for (let i = zoomed; i < end[zoomed]; ) {
      if (value[i] >= least && value[i] > 0) nodes.push(i++);
      else i = end[i];
    }
    const room = MOST - CALLERS;
    if (nodes.length > room) {
      nodes.sort((a, b) => value[b] - value[a] || a - b);
      nodes = nodes.slice(0, room);
    }
    nodes.push(...model.path(zoomed).slice(0, -1).slice(-CALLERS));
    if (focused !== -1) nodes.push(...model.path(focused).slice(-3));
    return [...new Set(nodes)].sort((a, b) => a - b);
  }
}
