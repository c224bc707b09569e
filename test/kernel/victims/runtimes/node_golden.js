// SPDX-License-Identifier: Apache-2.0
//
// Prints the stack in which it then stays: name, file and line of each frame, innermost first, with tabs between them,
// and an empty line. Usage: node_golden.js MODE [interpreted]
'use strict';
const fs = require('fs');
if (process.argv[3] === 'interpreted') {
  for (const flag of ['--no-opt', '--no-maglev', '--no-sparkplug']) require('v8').setFlagsFromString(flag);
}
Error.stackTraceLimit = 200;
Error.prepareStackTrace = (error, sites) => sites.filter((site) => site.getFileName() && !site.isAsync())
  .map((site) => [site.getFunctionName() || '(anonymous)', site.getFileName(), site.getLineNumber()]);

function show(frames, line) {
  frames[0][2] = line;
  fs.writeSync(1, frames.map((frame) => frame.join('\t')).join('\n') + '\n\n');
}

function busy(x = 0) {
  const frames = new Error().stack;
  show(frames, frames[0][2] + 2);
  for (;;) x = x + 1 & 255;
}

function recursion(depth = 40) {
  return depth ? recursion(depth - 1) : busy();
}

class Called {
  constructor(x) { if (x) this.method(x); }
  method(x) { return Called.of(x); }
  static of(x) { return x > 1 ? new Called(x - 1) : busy(); }
  get value() { return busy(); }
}

function* generated(depth = 3) {
  if (depth) yield* generated(depth - 1);
  else yield busy();
}

async function task(depth = 3) {
  await null;
  return depth ? task(depth - 1) : busy();
}

const closures = (depth) => (depth ? (() => closures(depth - 1))() : busy());

// Warm, so that they are compiled when they are sampled.
function work(n) {
  let sum = 0;
  for (let i = 0; i < n; i++) sum = (sum * 31 + i) % 1000003;
  return sum;
}
function caller(n) { return work(n) + work(n + 1); }
function compiled() {
  for (let i = 0; i < 20000; i++) caller(50);
  return busy();
}

// Called by V8 itself all the time, and so short that it is often met while its frame does not stand.
function compare(a, b) { return a - b; }
function entered() {
  const numbers = Array.from({length: 1000}, (_, i) => i * 7919 % 1000);
  for (let i = 0; i < 200; i++) numbers.slice().sort(compare);
  fs.writeSync(1, '\n');
  for (;;) numbers.slice().sort(compare);
}

({
  loop: busy,
  recursion,
  methods: () => new Called(5),
  getter: () => new Called(0).value,
  sort: () => [3, 1, 2].sort((a, b) => busy(a - b)),
  map: () => [1].map((x) => [x].forEach(busy)),
  reviver: () => JSON.parse('{"a": [1]}', (key, value) => busy(value)),
  replace: () => 'abc'.replace(/b/, () => busy()),
  apply: () => Reflect.apply(busy, null, [0]),
  bound: () => recursion.bind(null, 3)(),
  generator: () => [...generated()],
  async: () => { task(); },
  timer: () => { setTimeout(busy, 1); },
  closures: () => closures(5),
  compiled,
  entered,
})[process.argv[2]]();
