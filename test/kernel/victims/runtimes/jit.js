// SPDX-License-Identifier: Apache-2.0
//
// spinOuter > spinMiddle > spinInner.
'use strict';

function spinInner(rounds) {
  let x = 1;
  for (let i = 0; i < rounds; i++) x = (Math.imul(x, 1103515245) + 12345) & 0x7fffffff;
  return x;
}

function spinMiddle(rounds) {
  return spinInner(rounds) + 1;
}

function spinOuter(rounds) {
  return spinMiddle(rounds) + 1;
}

// So that the callers stay on the stack: what was compiled for a loop is not inlined into.
for (const run of [spinInner, spinMiddle, spinOuter]) run(1);
for (;;) spinOuter(3_000_000);
