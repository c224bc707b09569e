// SPDX-License-Identifier: Apache-2.0
// The flame graph's computations, without a browser.
import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { binary } from "./columns.mjs";
import { source } from "./source.mjs";

const {
  WIDE, bottomUp, Frames, Model, Texts, changeText, fitted, Groups, foldModules, foldRecursion, graft, matchNames, matched, nodeAt, palette, readColumns, readModel,
  rectangles, sandwich, sortRows, tableRows, textData, topOf, viewOf, xmlText,
} = await source("graph/tree/frames.ts", "graph/tree/model.ts", "graph/tree/columns.ts", "graph/tree/transform.ts", "graph/tree/bottom_up.ts",
  "graph/table/table_rows.ts", "graph/shown/groups.ts", "graph/tree/search.ts", "graph/drawing/layout.ts", "graph/drawing/labels.ts",
  "graph/drawing/colours.ts", "graph/drawing/picture.ts", "graph/tree/texts.ts");

// "main;read 3": folded text, in the order of the names.
function columnsOf(lines, before = null) {
  const names = ["all"];
  const numbers = new Map();
  const nodes = { frame: [0], depth: [0], self: [0], self_before: [0], significant: [0] };
  const root = { children: new Map(), self: 0, before: 0 };
  const add = (line, side) => {
    const at = line.lastIndexOf(" ");
    let node = root;
    for (const name of line.slice(0, at).split(";")) {
      if (!node.children.has(name)) node.children.set(name, { children: new Map(), self: 0, before: 0 });
      node = node.children.get(name);
    }
    node[side] += Number(line.slice(at + 1));
  };
  lines.forEach((line) => add(line, "self"));
  before?.forEach((line) => add(line, "before"));
  const visit = (node, depth) => {
    for (const [name, child] of [...node.children].sort(([a], [b]) => (a < b ? -1 : 1))) {
      if (!numbers.has(name)) numbers.set(name, names.push(name) - 1);
      nodes.frame.push(numbers.get(name));
      nodes.depth.push(depth);
      nodes.self.push(child.self);
      nodes.self_before.push(child.before);
      nodes.significant.push(0);
      visit(child, depth + 1);
    }
  };
  visit(root, 1);
  if (before === null) {
    delete nodes.self_before;
    delete nodes.significant;
  }
  return { strings: [...names, ""], kinds: ["root", "native", "kernel", "marker"],
    frames: { name: names.map((_, i) => i), module: names.map(() => names.length), kind: names.map((name, i) => (i === 0 ? 0 : name.startsWith("k_") ? 2 : name.startsWith("(") ? 3 : 1)) }, nodes };
}

function modelOf(lines, before = null) {
  const columns = columnsOf(lines, before);
  const { frames, nodes } = readColumns(answer(columns));
  const sum = (values) => values.reduce((total, value) => total + value, 0);
  const scales = before === null ? null : { after: 1 / sum(columns.nodes.self), before: 1 / sum(columns.nodes.self_before) };
  return Model.of(new Frames(frames), nodes, scales);
}

// The reverse: each stack with samples of its own.
function folded(model) {
  const lines = [];
  for (let i = 0; i < model.size; i++) if (model.self[i] > 0) lines.push(`${model.names(i).join(";")} ${model.self[i]}`);
  return lines.sort();
}

const byName = (model, name) => model.frame.findIndex((_, i) => model.name(i) === name);
const exactly = ({ buffer, byteOffset, length }) => buffer.slice(byteOffset, byteOffset + length);
function answer(columns, head = { samples: 10 }) {
  return exactly(binary({ ...head, columns }));
}

describe("an answer in columns", () => {
  const LINES = ["main;read 3", "main;read;k_read 5", "main;spin 2"];

  it("is read into its tree", () => {
    const { head, frames, model } = readModel(answer(columnsOf(LINES)));
    assert.deepEqual(head, { samples: 10 });
    assert.deepEqual(folded(new Model(new Frames(frames), model)), [...LINES].sort());
    assert.deepEqual([...model.value], [10, 10, 8, 5, 2]);
    assert.deepEqual([...model.start], [0, 0, 0, 0, 8]);
    assert.deepEqual([...model.end], [5, 5, 4, 4, 5]);
    assert.deepEqual([...model.parent], [0, 0, 1, 2, 1]);
  });

  it("lists each level's nodes from left to right, with the sum before each", () => {
    const { model } = readModel(answer(columnsOf(["a;x 1", "a;y;z 2", "a 4", "b;x 8", "c;x;z 16"])));
    assert.deepEqual([...model.levelStart], [0, 1, 4, 8, 10]);
    assert.deepEqual([...model.levelNodes], [0, 1, 5, 7, 2, 3, 6, 8, 4, 9]);
    assert.deepEqual([...model.levelSum], [0, 0, 7, 15, 0, 1, 3, 11, 0, 2]);
    assert.deepEqual([...model.value], [31, 7, 1, 2, 2, 8, 8, 16, 16, 16]);
    assert.deepEqual([...model.start], [0, 0, 0, 1, 1, 7, 7, 15, 15, 15]);
    assert.deepEqual([...model.end], [10, 5, 3, 5, 5, 7, 7, 10, 10, 10]);
  });

  it("may be a single node", () => {
    const { model } = readModel(answer({ ...columnsOf(["a 1"]), nodes: { frame: [0], depth: [0], self: [3] } }));
    assert.deepEqual([[...model.value], [...model.end], [...model.levelStart]], [[3], [1], [0, 1]]);
  });

  it("has names of any kind: empty, multi-byte, with byte order marks, with line breaks", () => {
    const names = ["", "a", "naïve::größe", "関数", "🔥<T>", "\ufeffmarked", "two\nlines", "nul\u0000", "x".repeat(10_000), "last"];
    const frames = new Frames(readColumns(answer({ ...columnsOf(["a 1"]), strings: names, frames: { name: names.map((_, i) => i), module: names.map(() => 0), kind: names.map(() => 1) } })).frames);
    assert.deepEqual(names.map((_, f) => frames.name(f)), names);
    assert.deepEqual(frames.texts.all(), names);
  });

  it("has thousands of names, decoded singly or together", () => {
    const names = Array.from({ length: 5000 }, (_, i) => (i % 3 === 0 ? `función_${i}` : `f_${i}`));
    const one = new Texts(textData(names));
    assert.deepEqual(names.map((_, i) => one.at(names.length - 1 - i)), [...names].reverse());
    assert.deepEqual(new Texts(textData(names)).all(), names);
  });

  it("counts beyond 32 bits", () => {
    const { model } = readModel(answer(columnsOf(["main;a 4294967296", "main;b 4294967297"])));
    assert.equal(model.value[0], 8589934593);
    assert.equal(model.start[3], 4294967296);
  });

  it("is refused when a column is missing, short or not of whole numbers", () => {
    const columns = columnsOf(LINES);
    const refused = (changes, why) => assert.throws(() => readColumns(answer({ ...columns, ...changes })), why);
    refused({ nodes: { frame: [0], depth: [0] } }, /no column nodes\.self/);
    refused({ nodes: { ...columns.nodes, self: [1] } }, /nodes are not of one length/);
    refused({ frames: { ...columns.frames, line: [1] } }, /frames are not of one length/);
    refused({ nodes: { ...columns.nodes, frame: [0, 1, 2, 3, 1.5] } }, /nodes\.frame has fractions/);
    refused({ nodes: { frame: [], depth: [], self: [] } }, /no root/);
  });

  it("is refused when an index is out of range", () => {
    const columns = columnsOf(LINES);
    const refused = (changes, why) => assert.throws(() => readModel(answer({ ...columns, ...changes })), why);
    refused({ nodes: { ...columns.nodes, frame: [0, 1, 2, 3, 99] } }, /nodes\.frame points beyond its end: 99 of 5/);
    refused({ frames: { ...columns.frames, name: [0, 1, 2, 3, 99] } }, /frames\.name points beyond its end/);
    refused({ frames: { ...columns.frames, kind: [0, 1, 1, 1, 9] } }, /frames\.kind points beyond its end/);
    refused({ nodes: { ...columns.nodes, depth: [0, 1, 3, 1, 1] } }, /node 2 has no parent/);
    refused({ nodes: { ...columns.nodes, depth: [0, 1, 0, 1, 1] } }, /node 2 has no parent/);
    refused({ nodes: { ...columns.nodes, depth: [0, 2, 1, 1, 1] } }, /node 1 has no parent/);
    refused({ nodes: { ...columns.nodes, depth: [1, 2, 2, 2, 2] } }, /no root/);
  });

  it("is refused when its bytes do not fit their description", () => {
    const bytes = new Uint8Array(answer(columnsOf(LINES)));
    const text = Buffer.from(bytes).toString("latin1");
    const changed = (from, to) => exactly(Buffer.from(text.replace(from, to), "latin1"));
    assert.throws(() => readColumns(changed("FLAMEDC1", "FLAMEDC2")), /not in columns/);
    assert.throws(() => readColumns(changed("FLAMEDC1", '{"window')), /not in columns/);
    assert.throws(() => readColumns(changed(/"count":5(?=\}\}\}\})/, '"count":9')), /column nodes\.self lies outside of it/);
    assert.throws(() => readColumns(changed(/"type":"u8","at":\d/, '"type":"u8","at":-')), SyntaxError); // not JSON
    assert.throws(() => readColumns(changed('"type":"u8"', '"type":"u9"')), /has an unknown form/);
    const long = new Uint8Array([...bytes, 0]).buffer;
    assert.throws(() => readColumns(long), /lengths are wrong/);
  });

  it("is reported as cut off wherever it ends early", () => {
    const whole = answer(columnsOf(LINES));
    for (let length = 0; length < whole.byteLength; length++) assert.throws(() => readColumns(whole.slice(0, length)), SyntaxError, String(length));
  });

  it("is refused when its texts are invalid", () => {
    const columns = columnsOf(["größe 1"]);
    const bytes = answer(columns);
    const at = Buffer.from(bytes).indexOf(Buffer.from("ö"));
    const broken = bytes.slice(0);
    new Uint8Array(broken)[at] = 0xff;
    assert.throws(() => readColumns(broken), /not UTF-8/);
    // An end within a character, and ends that decrease.
    const ends = (list) => {
      const copy = bytes.slice(0);
      const { columns: places } = JSON.parse(Buffer.from(copy, 16, new DataView(copy).getUint32(8, true)).toString());
      const start = 16 + new DataView(copy).getUint32(8, true) + places.strings.ends.at;
      list.forEach((end, i) => (new Uint8Array(copy)[start + i] = end));
      return copy;
    };
    assert.throws(() => readColumns(ends([3, 6])), /within a character/);
    assert.throws(() => readColumns(ends([10, 3])), /overlap or are out of order/);
    assert.throws(() => readColumns(ends([3, 200])), /overlap or are out of order/);
  });

  it("has a kind of its own for inlined functions", () => {
    const columns = columnsOf(LINES);
    columns.frames.inlined = columns.frames.name.map((_, f) => (f === 2 ? 1 : 0));
    const frames = new Frames(readColumns(answer(columns)).frames);
    assert.deepEqual([0, 1, 2, 3].map((f) => frames.kind(f)), ["root", "native", "inlined", "kernel"]);
  });

  it("weighs the sides of a comparison by time if the daemon did", () => {
    const side = (samples, seconds) => ({ samples, cpu_seconds: samples / 100, window: { used: { from_ms: 0, to_ms: seconds * 1000 } } });
    const { scales } = readColumns(answer(columnsOf(["a 1"], ["a 2"]), { normalise: "time", before: side(500, 10), after: side(100, 5) }));
    assert.deepEqual(scales, { after: 0.002, before: 0.001 });
  });
});

describe("a tree", () => {
  it("is found again by names", () => {
    const model = modelOf(["main;a;b 1", "main;a;c 2"]);
    const node = byName(model, "c");
    assert.deepEqual(model.find(model.names(node)), { node, found: 3 });
    assert.deepEqual(model.find(["main", "a", "gone", "b"]), { node: byName(model, "a"), found: 2 });
  });

  it("finds the node at a position of a level", () => {
    const model = modelOf(["main;a 3", "main;b 4", "main 3"]);
    assert.equal(model.at(2, 2.9), byName(model, "a"));
    assert.equal(model.at(2, 3), byName(model, "b"));
    assert.equal(model.at(2, 7), -1);
    assert.equal(model.at(9, 0), -1);
  });
});

describe("recursion", () => {
  it("becomes one frame, direct or through others", () => {
    const model = modelOf(["main;f;f;f;leaf 4", "main;f 1", "main;even;odd;even;odd 6", "main;even;odd;even;leaf 2"]);
    assert.deepEqual(folded(foldRecursion(model, () => true)), ["main;even;leaf 2", "main;even;odd 6", "main;f 1", "main;f;leaf 4"]);
  });

  it("stays in other functions", () => {
    const model = modelOf(["main;f;f 4", "main;g;g 2"]);
    assert.deepEqual(folded(foldRecursion(model, (f) => model.frames.name(f) === "g")), ["main;f;f 4", "main;g 2"]);
  });

  it("is folded in two thousand levels as well", () => {
    const model = modelOf([`main;${Array.from({ length: 2000 }, (_, i) => `f${i % 3}`).join(";")} 1`]);
    assert.equal(foldRecursion(model, () => true).size, 5);
  });
});

describe("a module", () => {
  const columns = columnsOf(["main;read;k_read;k_copy 5", "main;read;helper;read 3", "main;(cut);read 1", "main 2"], ["main;read;helper;read 4"]);
  const names = columns.frames.name.map((index) => columns.strings[index]);
  const library = columns.strings.push("libc.so.6") - 1;
  columns.frames.module = names.map((name) => (name === "read" || name === "helper" || name === "(cut)" ? library : columns.strings.indexOf("")));
  columns.frames.reason = names.map(() => columns.strings.indexOf(""));
  const { frames, nodes } = readColumns(answer(columns));
  const model = Model.of(new Frames(frames), nodes, { after: 1, before: 1 });

  it("becomes one frame wherever its functions call each other", () => {
    const tree = foldModules(model, ["libc.so.6"]);
    assert.deepEqual(folded(tree).filter((line) => !line.endsWith(" 0")), ["main 2", "main;(cut);libc.so.6 1", "main;libc.so.6 7", "main;libc.so.6;k_read;k_copy 5"]);
    const one = byName(tree, "libc.so.6");
    const f = tree.frame[byName(tree, "libc.so.6")];
    assert.deepEqual([tree.frames.kind(f), tree.frames.module(f), tree.frames.reason(f), tree.frames.isCode(f)], ["folded", "libc.so.6", "", true]);
    assert.equal(tree.total, model.total);
    assert.ok(one > 0);
  });

  it("stays as it is if it is not in the graph", () => {
    assert.deepEqual(folded(foldModules(model, ["other.so"])), folded(model));
    assert.equal(foldModules(model, [""]).frames.hasFolded, false);
  });
});

describe("a sandwich", () => {
  const model = modelOf(["main;a;f;x 3", "main;b;f;x 2", "main;b;f;y 4", "main;b;f;f;x 1", "main;c 9"]);
  const { callers, callees } = sandwich(model, (f) => model.frames.name(f) === "f");

  it("has all callers above a function", () => {
    assert.equal(callers.total, 10);
    assert.equal(callers.name(0), "f");
    assert.deepEqual(folded(callers), ["a;main 3", "b;main 7"]);
  });

  it("has all callees below it, and itself only where it called itself", () => {
    assert.equal(callees.total, 10);
    assert.deepEqual(folded(callees), ["f;x 1", "x 5", "y 4"]);
  });

  it("is empty for a missing function", () => {
    assert.equal(sandwich(model, () => false), null);
  });

  it("keeps both sides of a comparison", () => {
    const diff = modelOf(["main;f;x 3", "main;c 1"], ["main;f;x 1", "main;c 3"]);
    const parts = sandwich(diff, (f) => diff.frames.name(f) === "f");
    assert.deepEqual([parts.callees.sides.after[0], parts.callees.sides.before[0]], [3, 1]);
    assert.equal(parts.callers.change(0), 0.5);
  });
});

describe("a bottom-up tree", () => {
  it("has the functions that ran at its first level, and below each its callers", () => {
    const model = modelOf(["main;a;f;x 3", "main;b;f;x 2", "main;b;f 4", "main;b;f;f;x 1", "main 9"]);
    const tree = bottomUp(model, 0);
    assert.equal(tree.total, model.total);
    assert.deepEqual(folded(tree), ["f;b;main 4", "main 9", "x;f;a;main 3", "x;f;b;main 2", "x;f;f;b;main 1"]);
    assert.deepEqual(tree.children(0).map((node) => [tree.name(node), tree.value[node]]), [["main", 9], ["x", 6], ["f", 4]]);
    assert.deepEqual(folded(bottomUp(modelOf(["all 0"]), 0)), []);
  });

  it("is of one part of the graph, with the callers around that", () => {
    const model = modelOf(["main;a;f;x 3", "main;b;f;x 2", "main;b 5"]);
    assert.deepEqual(folded(bottomUp(model, byName(model, "b"))), ["b;main 5", "x;f;b;main 2"]);
  });

  it("keeps what has no caller", () => {
    const columns = columnsOf(["a;b 2"]);
    columns.nodes.self[0] = 3;
    const { frames, nodes } = readColumns(answer(columns));
    const tree = bottomUp(Model.of(new Frames(frames), nodes), 0);
    assert.equal(tree.total, 5);
    assert.equal(tree.self[0], 3);
  });

  it("opens branches only where they can be seen, and the place that is zoomed to", () => {
    const model = modelOf(["main;a;f 100000", "main;b;g 3", "main;c;g 4", "main;c;h;rare 1"]);
    const wide = bottomUp(model, 0);
    assert.equal(wide.total, model.total);
    assert.deepEqual(folded(wide), ["f;a;main 100000", "g 7", "rare 1"]);
    assert.deepEqual(folded(bottomUp(model, 0, ["g"])), ["f;a;main 100000", "g;b;main 3", "g;c;main 4", "rare 1"]);
    assert.deepEqual(folded(bottomUp(model, 0, ["rare", "h"])), ["f;a;main 100000", "g 7", "rare;h;c;main 1"]);
    assert.deepEqual(folded(bottomUp(model, 0, ["f", "gone"])), folded(wide));
    assert.ok(WIDE <= 1);
  });

  it("is the same in whatever order the stacks come, and however many there are", () => {
    let seed = 7;
    const random = (below) => (seed = (seed * 48271) % 2147483647) % below;
    const lines = new Map();
    for (let i = 0; i < 300; i++) lines.set(Array.from({ length: 1 + random(8) }, () => `f${random(9)}`).join(";"), 1 + random(9));
    const model = modelOf([...lines].map(([stack, samples]) => `${stack} ${samples}`));
    const turned = [...lines].map(([stack, samples]) => `${stack.split(";").reverse().join(";")} ${samples}`);
    assert.deepEqual(folded(bottomUp(model, 0)), turned.sort());
  });

  it("keeps both sides of a comparison", () => {
    const tree = bottomUp(modelOf(["main;f;x 3", "main;c 1"], ["main;f;x 1", "main;c 3"]), 0);
    const { after, before } = tree.sides;
    const x = byName(tree, "x");
    assert.deepEqual([after[0], before[0], after[x], before[x], tree.change(x)], [4, 4, 3, 1, 0.5]);
  });
});

describe("what was pruned", () => {
  it("is inserted once it is fetched", () => {
    const model = modelOf(["main;a;(pruned: 2 functions) 5", "main;b 2"]);
    const node = byName(model, "a");
    assert.notEqual(model.prunedBelow(node), -1);
    assert.equal(model.prunedBelow(byName(model, "b")), -1);
    const part = modelOf(["x;y 2", "x;z 3"]);
    const whole = graft(model, node, part);
    assert.deepEqual(folded(whole), ["main;a;x;y 2", "main;a;x;z 3", "main;b 2"]);
    assert.equal(whole.prunedBelow(byName(whole, "a")), -1);
  });

  it("shares the existing frames", () => {
    const model = modelOf(["main;a;(pruned: 1 function) 5", "main;b 2"]);
    const whole = graft(model, byName(model, "a"), modelOf(["b 5"]));
    assert.equal(whole.frame[byName(whole, "b")], model.frame[byName(model, "b")]);
    assert.equal(whole.frames.size, model.frames.size + 0);
  });
});

describe("functions", () => {
  const model = modelOf(["main;f;f;g 4", "main;f;g 2", "main;g 3"]);
  const groups = new Groups(model.frames, "");
  const row = (rows, name, of = groups) => rows.find(({ group }) => of.name(group) === name);

  it("count a stack once, however often they are in it", () => {
    const rows = tableRows(model, 0, groups, null);
    assert.deepEqual([row(rows, "f").self, row(rows, "f").total], [0, 6]);
    assert.deepEqual([row(rows, "g").self, row(rows, "g").total], [9, 9]);
    assert.equal(rows.length, 3);
  });

  it("are those of the shown part", () => {
    const rows = tableRows(model, byName(model, "f"), groups, null);
    assert.equal(row(rows, "main"), undefined);
    assert.equal(row(rows, "g").self, 6);
  });

  it("are sorted by any column, equal ones by name", () => {
    const names = (key, isDescending) => sortRows(groups, tableRows(model, 0, groups, null), key, isDescending).map(({ group }) => groups.name(group));
    assert.deepEqual(names("self", true), ["g", "f", "main"]);
    assert.deepEqual(names("total", true), ["g", "main", "f"]);
    assert.deepEqual(names("name", false), ["f", "g", "main"]);
  });

  it("in a comparison have their changes", () => {
    const diff = modelOf(["main;f 3", "main;g 1"], ["main;f 2", "main;g 2"]);
    const of = new Groups(diff.frames, "");
    const told = { frame: [2], self: [3], total: [3], self_before: [2], total_before: [2], z: [2.5], significant: [1] };
    const [first] = tableRows(diff, 0, of, told);
    assert.equal(first.changeSelf, 0.25);
    assert.equal(first.isSignificant, true);
    const below = row(tableRows(diff, 1, of, told), "g", of);
    assert.equal(below.changeTotal, -0.25);
  });

  it("can be counted together by module, and a stack once for each", () => {
    const columns = columnsOf(["main;f;k_read 4", "main;f;k_read;f 1", "main;g 2", "(cut) 7"]);
    const module = (name) => columns.strings.push(name) - 1;
    const names = columns.frames.name.map((index) => columns.strings[index]);
    const [program, library] = [module("program"), module("library")];
    columns.frames.module = names.map((name) => (name === "f" ? library : name === "main" || name === "g" ? program : columns.strings.indexOf("")));
    const { frames, nodes } = readColumns(answer(columns));
    const tree = Model.of(new Frames(frames), nodes);
    const modules = new Groups(tree.frames, "module");
    const rows = sortRows(modules, tableRows(tree, 0, modules, null), "total", true);
    assert.deepEqual(rows.map(({ group, self, total }) => [modules.name(group), modules.note(group), self, total]), [
      ["program", "2 functions", 2, 7], ["Kernel, in no file", "1 function", 4, 5], ["library", "1 function", 1, 5],
    ]);
    const files = new Groups(tree.frames, "file");
    assert.deepEqual(tableRows(tree, 0, files, null).map(({ group, self, total }) => [files.name(group), self, total]), [["source file not known", 7, 7]]);
  });
});

describe("search", () => {
  const model = modelOf(["main;malloc;malloc_slow 4", "main;free 3", "main;spin 3"]);
  const search = (text, node = 0) => {
    const found = matchNames(model.frames.texts.all(), text);
    return matched(model, model.frames.data.name.map((index) => found[index]), node);
  };

  it("counts matches within matches once", () => assert.equal(search("malloc"), 4));
  it("searches plain text in any case", () => {
    assert.equal(search("MALLOC"), 4);
    assert.equal(search("ma.*c"), 0);
  });
  it("takes /text/ as a regular expression", () => assert.equal(search("/^(free|spin)$/"), 6));
  it("reports an invalid expression", () => assert.throws(() => search("/(/"), /regular expression/i));
  it("searches below the zoomed frame", () => assert.equal(search("malloc", byName(model, "malloc")), 4));
});

describe("a view", () => {
  const collect = (view, first = 0, last = 99) => {
    const found = [];
    rectangles(view, first, last, (node, level, x, width, from, until) => found.push({ node, level, x, width, count: until - from }));
    return found;
  };

  it("gives each frame its share of the width", () => {
    const model = modelOf(["main;a 25", "main;b 75"]);
    const places = collect(viewOf(model, 0, "down", 400)).map(({ node, x, width }) => [model.name(node), x, width]);
    assert.deepEqual(places, [["all", 0, 400], ["main", 0, 400], ["a", 0, 100], ["b", 100, 300]]);
  });

  it("shows a zoomed frame at full width, with its callers", () => {
    const model = modelOf(["main;a;x 25", "main;b;y 75"]);
    const view = viewOf(model, byName(model, "a"), "down", 400);
    assert.deepEqual(collect(view).map(({ node, width }) => [model.name(node), width]), [["all", 400], ["main", 400], ["a", 400], ["x", 400]]);
  });

  it("reads only visible levels", () => {
    const model = modelOf([`${Array.from({ length: 100 }, (_, i) => `f${i}`).join(";")} 1`]);
    assert.deepEqual(collect(viewOf(model, 0, "down", 400), 40, 42).map(({ level }) => level), [40, 41, 42]);
  });

  it("merges frames that are too narrow, into as many as there are pixels", () => {
    const model = modelOf(Array.from({ length: 50_000 }, (_, i) => `main;f${i} 1`));
    const narrow = collect(viewOf(model, 0, "down", 500), 2, 2);
    assert.ok(narrow.length <= 700, `${narrow.length} rectangles`);
    assert.equal(narrow.reduce((sum, { count }) => sum + count, 0), 50_000);
  });

  it("does not paint runs that are nearly empty", () => {
    const model = modelOf(["main;a 1", "main;b 99999"]);
    assert.deepEqual(collect(viewOf(model, 0, "down", 500), 2, 2).map(({ node }) => model.name(node)), ["b"]);
  });

  it("has the root at its bottom when it is a flame graph", () => {
    const model = modelOf(["main;a;b 1"]);
    const up = viewOf(model, 0, "up", 100);
    assert.equal(topOf(up, 0), 60);
    assert.equal(model.name(nodeAt(up, 50, 5)), "b");
    assert.equal(model.name(nodeAt(viewOf(model, 0, "down", 100), 50, 5)), "all");
    assert.equal(nodeAt(up, 50, 500), -1);
  });
});

describe("texts", () => {
  it("of changes have a sign", () => {
    assert.deepEqual([0.0123, -0.0123, 0, 0.00001, 0.5].map(changeText), ["+1.23", "−1.23", "±0", "+<0.01", "+50.0"]);
  });
  it("that do not fit are cut, or left out", () => {
    assert.deepEqual([fitted("abcdef", 6), fitted("abcdef", 4), fitted("abcdef", 2)], ["abcdef", "abc…", ""]);
  });
  it("in a picture are never markup", () => {
    assert.equal(xmlText(`<a b="c">&'\u0001\ud800\uffff😀`), "&lt;a b=&quot;c&quot;&gt;&amp;&#39;\ufffd\ufffd\ufffd😀");
  });
});

describe("colours", () => {
  // WCAG's contrast of two colours: one as hsl(H S% L%), the other is the text colour of frames.
  const luminance = ([r, g, b]) => {
    const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  };
  const rgb = (text) => {
    const [h, s, l] = text.match(/-?[\d.]+/g).map(Number);
    const f = (n) => {
      const k = (n + h / 30 + 12) % 12;
      return l / 100 - (s / 100) * Math.min(l / 100, 1 - l / 100) * Math.max(-1, Math.min(k - 3, 9 - k, 1));
    };
    return [f(0), f(8), f(4)];
  };
  const ink = luminance([0x1a / 255, 0x14 / 255, 0x10 / 255]);

  it("have contrast with the names on them", () => {
    const plain = modelOf(["main 1"]);
    const diff = modelOf(["a 3", "b 1"], ["a 1", "b 3"]);
    for (const isDark of [false, true]) {
      for (const made of [palette(plain, "kind", "", isDark), palette(plain, "module", "", isDark), palette(plain, "name", "", isDark), palette(diff, "kind", "", isDark), palette(diff, "kind", "blind", isDark)]) {
        for (const colour of made.colours) {
          const contrast = (luminance(rgb(colour)) + 0.05) / (ink + 0.05);
          assert.ok(contrast >= 4.5, `${colour}: ${contrast.toFixed(2)}`);
        }
      }
    }
  });

  it("in a comparison distinguish more from less", () => {
    const diff = modelOf(["a 3", "b 1"], ["a 1", "b 3"]);
    const { of, legend } = palette(diff, "kind", "", false);
    assert.ok(of(1) > of(0) && of(2) < of(0));
    assert.deepEqual(legend.map(({ label }) => label), ["Less", "Unchanged", "More"]);
  });
});
