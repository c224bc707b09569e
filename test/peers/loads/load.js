// SPDX-License-Identifier: Apache-2.0
//
// What Node programs do, in functions of its library and their own: load.js CPU_SECONDS
'use strict';
const querystring = require('querystring');
const util = require('util');

const words = 'the quick brown fox jumps over the lazy dog'.split(' ');

// Nothing here calls small functions of V8 itself, such as charCodeAt() or a comparison of strings, all the time: these
// need no frame, and V8's profiler misses who has called them.

function show() {
  return util.inspect(words.map((word, i) => ({word, at: [i, {deeper: [word, i]}]})), {depth: 5});
}

function ask() {
  let total = 0;
  for (let i = 0; i < 50; i++) total += Object.keys(querystring.parse(`a=${i}&b=${words[i % 9]}%20x&c=1`)).length;
  return total;
}

function grow(depth) {
  return {word: words[depth], below: depth === 0 ? [] : [grow(depth - 1), grow(depth - 1)]};
}

function walk(tree) {
  let total = 0;
  for (const below of tree.below) total += walk(below);
  return total + tree.word.length;
}

function compare(a, b) {
  return a.word.length - b.word.length || a.at - b.at;
}

function sort() {
  const many = [];
  for (let i = 0; i < 400; i++) many.push({word: words[i * 7 % 9], at: i * 7 % 401});
  return many.sort(compare);
}

function fibonacci(n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

// A peer that samples by the clock would find a program that waits for a CPU at its system calls.
while (process.cpuUsage().user < 1e6 * Number(process.argv[2])) {
  for (let round = 0; round < 200; round++) {
    for (const work of [show, ask, () => walk(grow(6)), sort, () => fibonacci(16)]) work();
  }
}
