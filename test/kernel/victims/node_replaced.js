// SPDX-License-Identifier: Apache-2.0
//
// Functions that are freed and made anew, under another name, all the time: outer_0 calls leaf_0, outer_1 leaf_1, and so
// on. The collector moves them and puts others into their places.
'use strict';

const KINDS = 8;
const leaves = Array.from(
    {length: KINDS}, (_, kind) => new Function(`return function leaf_${kind}(until) {
      let sum = 0;
      while (performance.now() < until) sum += Math.sqrt(sum + 1);
      return sum;
    }`)());

function run(kind) {
  const outer = new Function('leaf', `return function outer_${kind}(until) { return leaf(until) + 1; }`)(leaves[kind]);
  return outer(performance.now() + 200);
}

console.log('runs');
for (let number = 0;; number++) {
  run(number % KINDS);
  if (number % 4 === 3) gc();
}
