/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main > outer > middle > { work_one | work_two }: work_two does twice the work of work_one. With an argument, the
 * program ends after that many milliseconds of CPU time.
 */
#include <stdlib.h>
#include <time.h>

#include "frame.h"

static volatile unsigned long sink;

NOINLINE static void work_one(void) {
  call_nobody();
  for (unsigned long i = 0; i < 50000; i++) sink += i;
}

NOINLINE static void work_two(void) {
  call_nobody();
  for (unsigned long i = 0; i < 100000; i++) sink += i;
}

/* The writes after the calls keep them from becoming jumps, which would take the caller off the stack. */
NOINLINE static void middle(void) {
  work_one();
  work_two();
  sink = 0;
}

NOINLINE static void outer(void) {
  middle();
  sink = 0;
}

int main(int argc, char** argv) {
  const long limit_ms = argc > 1 ? atol(argv[1]) : 0;
  for (;;) {
    outer();
    if (limit_ms > 0 && clock() * 1000L / CLOCKS_PER_SEC >= limit_ms) return 0;
  }
}
