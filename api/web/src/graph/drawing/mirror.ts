// SPDX-License-Identifier: Apache-2.0
// The graph as a tree of elements, for users who can't see the canvas. Each item is invisible over its frame, so that
// tools that follow the place on the screen find it. Only the largest frames have one.
//
// Items are cheap: they have labels instead of texts, so the browser lays out and paints nothing, and an item stays with
// its node, so a key changes only a few attributes.

import { ROW, type View, placeOf, topOf } from "./layout";
import type { Labels } from "./labels";

const MOST = 200;
const CALLERS = 30; // the innermost ones above the zoomed frame
const LEAST = 0.002; // of the zoomed frame's value

let made = 0;

export class Mirror {
  readonly #id = `frames-${++made}`;
  readonly #items = new Map<number, HTMLElement>(); // by node
  #labels: Labels | null = null;
  #place = "";
  #focused = -1;

  constructor(
    readonly tree: HTMLElement,
    readonly space: HTMLElement,
  ) {}

  show(view: View, labels: Labels, focused: number, offset: number) {
    const nodes = this.#choose(view, focused);
    const wanted = new Set(labels === this.#labels ? nodes : []);
    for (const [node, item] of this.#items) {
      if (wanted.has(node)) continue;
      item.remove();
      this.#items.delete(node);
    }
    const { left, right, width, direction, levels } = view;
    const place = [left, right, width, direction, levels, offset].join();
    const isMoved = place !== this.#place;
    this.#labels = labels;
    this.#place = place;
    let next = this.space.querySelector(".flame-item");
    for (const node of nodes) {
      const known = this.#items.get(node);
      const item = known ?? this.#make(view, labels, node);
      if (known === undefined) this.#items.set(node, item);
      if (known === undefined || isMoved) this.#put(item, view, node, offset);
      if (known === undefined || node === focused || node === this.#focused) item.setAttribute("aria-selected", String(node === focused));
      if (item === next) next = next.nextElementSibling;
      else this.space.insertBefore(item, next);
    }
    this.#focused = focused;
    const active = this.#items.get(focused)?.id;
    if (active !== undefined) this.tree.setAttribute("aria-activedescendant", active);
    else this.tree.removeAttribute("aria-activedescendant");
  }

  #make({ model }: View, labels: Labels, node: number) {
    const item = document.createElement("div");
    const f = model.frame[node];
    item.className = "flame-item";
    item.style.height = `${ROW}px`;
    item.setAttribute("role", "treeitem");
    item.id = `${this.#id}-${node}`;
    item.setAttribute("aria-label", labels.spoken(node));
    item.setAttribute("aria-level", String(model.depth[node] + 1));
    if (model.end[node] > node + 1) item.setAttribute("aria-expanded", "true");
    item.dataset.name = model.frames.name(f);
    item.dataset.kind = model.frames.kind(f);
    item.dataset.value = String(model.value[node]);
    item.dataset.depth = String(model.depth[node]);
    return item;
  }

  #put(item: HTMLElement, view: View, node: number, offset: number) {
    const place = placeOf(view, node);
    item.style.left = `${place?.x ?? 0}px`;
    item.style.top = `${offset + topOf(view, view.model.depth[node])}px`;
    item.style.width = `${place?.width ?? 0}px`;
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
