/* SPDX-License-Identifier: Apache-2.0 */
/* Recurses as many calls deep as its argument says, and works at the bottom. */
#include <stdlib.h>

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

int main(int argc, char** argv) {
  const int depth = argc > 1 ? atoi(argv[1]) : 0;
  for (;;) descend(depth);
}
