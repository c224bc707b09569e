// SPDX-License-Identifier: Apache-2.0
#pragma once

// One instruction with a name, for code that is in the program only once.
#define PLACE(name) __asm__ volatile(".globl " #name "\n" #name ":\n\tnop")

int other(int value);

[[gnu::always_inline]] inline int from_header(int value) {
  PLACE(place_in_header);  // @header
  return value * 3;
}
