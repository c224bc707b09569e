/* SPDX-License-Identifier: Apache-2.0 */
/* Recurses 300 calls deep, more than a record holds, and works at the bottom. */
#include "frame.h"

static volatile unsigned long sink;

NOINLINE static void bottom(void) {
  call_nobody();
  for (int i = 0; i < 1000000; i++) sink += (unsigned long)i;
}

NOINLINE static void descend(int depth) {
  if (depth == 0)
    bottom();
  else
    descend(depth - 1);
  sink = 0;
}

int main(void) {
  for (;;) descend(300);
}
