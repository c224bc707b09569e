// SPDX-License-Identifier: Apache-2.0
// Trees derived from a tree: with folded recursion or modules, the callers and callees of a function, with a part fetched again.

import { Model, type NodeColumns, type Numbers } from "./model";

const LEAST_SLOTS = 1024;

// A tree to which samples are added node by node, in any order.
class TreeBuilder {
  #size = 0;
  #frame = new Uint32Array(LEAST_SLOTS / 2);
  #parent = new Uint32Array(LEAST_SLOTS / 2);
  #self = new Float64Array(LEAST_SLOTS / 2);
  #selfBefore = new Float64Array(LEAST_SLOTS / 2);
  #significant = new Uint8Array(LEAST_SLOTS / 2);
  // Nodes by parent and frame, +1; 0 is a free slot. At most half of the slots are taken, with linear probing. A Map of
  // a million keys costs ten times as much.
  #slots = new Uint32Array(LEAST_SLOTS);

  constructor(
    readonly model: Model,
    rootFrame: number,
    private readonly frames = model.frames,
  ) {
    this.#add(0, rootFrame);
  }

  frameOf(node: number) {
    return this.#frame[node];
  }

  child(parent: number, frame: number) {
    const mask = this.#slots.length - 1;
    let slot = hash(parent, frame) & mask;
    for (; this.#slots[slot] !== 0; slot = (slot + 1) & mask) {
      const node = this.#slots[slot] - 1;
      if (this.#parent[node] === parent && this.#frame[node] === frame) return node;
    }
    const node = this.#add(parent, frame);
    if (2 * this.#size > this.#slots.length) this.#grow();
    else this.#slots[slot] = node + 1;
    return node;
  }

  // Adds the self samples of a node of the model.
  addSelf(node: number, of: number) {
    const { self, sides } = this.model;
    if (sides === null) {
      this.#self[node] += self[of];
    } else {
      this.#self[node] += sides.selfAfter[of];
      this.#selfBefore[node] += sides.selfBefore[of];
      this.#significant[node] |= sides.significant[of];
    }
  }

  // Adds the samples of the node and its subtree.
  addTotal(node: number, of: number) {
    const { value, sides } = this.model;
    if (sides === null) {
      this.#self[node] += value[of];
    } else {
      this.#self[node] += sides.after[of];
      this.#selfBefore[node] += sides.before[of];
    }
  }

  finish(isInverted = false): Model {
    const { frames, model: { sides } } = this;
    const size = this.#size;
    // Sorts siblings by name, as the daemon does: takes the nodes by the rank of their frames, from the last to the
    // first, and puts each before the earlier children of its parent.
    const ranks = frames.ranks();
    const starts = new Uint32Array(frames.size + 1);
    for (let node = 0; node < size; node++) starts[ranks[this.#frame[node]] + 1]++;
    for (let rank = 0; rank < frames.size; rank++) starts[rank + 1] += starts[rank];
    const order = new Uint32Array(size);
    for (let node = 0; node < size; node++) order[starts[ranks[this.#frame[node]]]++] = node;
    const firstChild = new Uint32Array(size); // 0: none, since the root is not a child
    const nextSibling = new Uint32Array(size);
    for (let i = size - 1; i >= 0; i--) {
      const node = order[i];
      if (node === 0) continue;
      nextSibling[node] = firstChild[this.#parent[node]];
      firstChild[this.#parent[node]] = node;
    }
    const self = new Float64Array(size);
    const selfBefore = new Float64Array(sides === null ? 0 : size);
    const significant = new Uint8Array(size);
    const frame = new Uint32Array(size);
    const depth = new Uint32Array(size);
    for (let i = 0, node = 0, level = 0; i < size; i++) {
      frame[i] = this.#frame[node];
      depth[i] = level;
      self[i] = this.#self[node];
      if (sides !== null) selfBefore[i] = this.#selfBefore[node];
      significant[i] = this.#significant[node];
      if (firstChild[node] !== 0) {
        node = firstChild[node];
        level++;
        continue;
      }
      while (node !== 0 && nextSibling[node] === 0) {
        node = this.#parent[node];
        level--;
      }
      if (node !== 0) node = nextSibling[node];
    }
    const nodes: NodeColumns = sides === null ? { frame, depth, self } : { frame, depth, self, selfBefore, significant };
    return Model.of(frames, nodes, sides?.scales ?? null, { isInverted });
  }

  #add(parent: number, frame: number) {
    const node = this.#size++;
    if (node === this.#frame.length) {
      this.#frame = doubled(this.#frame);
      this.#parent = doubled(this.#parent);
      this.#self = doubled(this.#self);
      this.#selfBefore = doubled(this.#selfBefore);
      this.#significant = doubled(this.#significant);
    }
    this.#parent[node] = parent;
    this.#frame[node] = frame;
    return node;
  }

  #grow() {
    this.#slots = new Uint32Array(2 * this.#slots.length);
    const mask = this.#slots.length - 1;
    for (let node = 1; node < this.#size; node++) {
      let slot = hash(this.#parent[node], this.#frame[node]) & mask;
      while (this.#slots[slot] !== 0) slot = (slot + 1) & mask;
      this.#slots[slot] = node + 1;
    }
  }
}

function hash(parent: number, frame: number) {
  let value = Math.imul(parent, 0x9e3779b1) ^ Math.imul(frame, 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 15), 0xc2b2ae35);
  return (value ^ (value >>> 13)) >>> 0;
}

function doubled<Column extends Uint32Array | Float64Array | Uint8Array>(column: Column): Column {
  const larger = new (column.constructor as new (size: number) => Column)(2 * column.length);
  larger.set(column);
  return larger;
}

// A function that calls itself, directly or through others, becomes one frame: the inner call's samples count for the
// outer one. `folds` selects the functions by frame.
export function foldRecursion(model: Model, folds: (frame: number) => boolean): Model {
  const { frames, frame, depth, parent } = model;
  const isFolded = Uint8Array.from({ length: frames.size }, (_, f) => (frames.isCode(f) && folds(f) ? 1 : 0));
  const builder = new TreeBuilder(model, frame[0]);
  const place = new Uint32Array(model.size); // each node's place in the new tree
  // By frame, the innermost open node with that frame, +1; and by depth, the value before the node at that depth.
  const open = new Uint32Array(frames.size);
  const covered = new Uint32Array(model.levels);
  const path = new Uint32Array(model.levels);
  let height = 0;
  builder.addSelf(0, 0);
  for (let i = 1; i < model.size; i++) {
    while (height >= depth[i]) {
      open[frame[path[height]]] = covered[height];
      height--;
    }
    height = depth[i];
    path[height] = i;
    const f = frame[i];
    covered[height] = open[f];
    place[i] = isFolded[f] === 1 && open[f] !== 0 ? place[open[f] - 1] : builder.child(place[parent[i]], f);
    open[f] = i + 1;
    builder.addSelf(place[i], i);
  }
  return builder.finish();
}

// Functions of these modules that call each other become one frame.
export function foldModules(model: Model, modules: readonly string[]): Model {
  const { folded, numbers } = model.frames.withFolded(modules);
  const { frame, parent } = model;
  const builder = new TreeBuilder(model, frame[0], folded);
  const place = new Uint32Array(model.size); // each node's place in the new tree
  builder.addSelf(0, 0);
  for (let i = 1; i < model.size; i++) {
    const f = numbers[frame[i]];
    const above = place[parent[i]];
    place[i] = folded.isFolded(f) && builder.frameOf(above) === f ? above : builder.child(above, f);
    builder.addSelf(place[i], i);
  }
  return builder.finish();
}

export interface Sandwich {
  callers: Model; // the function, above it its callers, and so on to the outermost
  callees: Model; // the function and its callees
}

// The callers and callees of a function, merged over all its nodes. A node within another of the same function counts
// once, as part of the outer one.
export function sandwich(model: Model, isIt: (frame: number) => boolean): Sandwich | null {
  const { frame, end, parent, depth, frames } = model;
  const first = frame.find(isIt);
  if (first === undefined) return null;
  const callers = new TreeBuilder(model, first);
  const callees = new TreeBuilder(model, first);
  const wanted = Uint8Array.from({ length: frames.size }, (_, f) => (isIt(f) ? 1 : 0));
  const place = new Uint32Array(model.levels + 1); // by depth, of the callee tree
  for (let i = 0; i < model.size; ) {
    if (wanted[frame[i]] === 0) {
      i++;
      continue;
    }
    let node = 0;
    for (let at = i; parent[at] !== at; ) {
      at = parent[at];
      // The root is the whole, and no caller.
      if (at !== 0) node = callers.child(node, frame[at]);
    }
    callers.addTotal(node, i);
    place[depth[i]] = 0;
    callees.addSelf(0, i);
    for (let below = i + 1; below < end[i]; below++) {
      const at = (place[depth[below]] = callees.child(place[depth[below] - 1], frame[below]));
      callees.addSelf(at, below);
    }
    i = end[i];
  }
  return { callers: callers.finish(true), callees: callees.finish() };
}

// The model with `node`'s subtree replaced by `part`, whose root is that node. It was fetched again, since it was
// pruned.
export function graft(model: Model, node: number, part: Model): Model {
  const { joined, numbers } = model.frames.joined(part.frames);
  const own = model.columns();
  const added = part.columns();
  const last = model.end[node];
  const base = model.depth[node];
  const spliced = <T extends Numbers | Uint8Array>(before: T, middle: ArrayLike<number>): T => {
    const column = new (before.constructor as new (size: number) => T)(before.length - (last - node) + middle.length);
    column.set(before.subarray(0, node));
    column.set(middle, node);
    column.set(before.subarray(last), node + middle.length);
    return column;
  };
  const frame = spliced(own.frame, added.frame.map((f) => numbers[f]));
  // The part's root has the daemon's name for the place. The node keeps its own frame.
  frame[node] = own.frame[node];
  const nodes: NodeColumns = { frame, depth: spliced(own.depth, added.depth.map((level) => level + base)), self: spliced(own.self, added.self) };
  if (own.selfBefore !== undefined) {
    nodes.selfBefore = spliced(own.selfBefore, added.selfBefore ?? new Uint32Array(part.size));
    nodes.significant = spliced(own.significant ?? new Uint8Array(model.size), added.significant ?? new Uint8Array(part.size));
  }
  return Model.of(joined, nodes, model.sides?.scales ?? null);
}
