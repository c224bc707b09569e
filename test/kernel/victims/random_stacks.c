/* SPDX-License-Identifier: Apache-2.0 */
/* Calls random functions as deep as a record holds, again and again: each sample has a new stack. */
#include "frame.h"

static volatile unsigned long sink;
static unsigned long state = 88172645463325252UL;

/* Marsaglia's xorshift64. */
static unsigned long next(void) {
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

NOINLINE static void bottom(void) {
  call_nobody();
  for (unsigned long i = 0; i < 20000; i++) sink += i;
}

static void descend(int depth);

/* The write after the call keeps it from becoming a jump. */
#define STEP(name)                       \
  NOINLINE static void name(int depth) { \
    if (depth == 0)                      \
      bottom();                          \
    else                                 \
      descend(depth - 1);                \
    sink = (unsigned long)depth;         \
  }
STEP(step_a)
STEP(step_b)
STEP(step_c)
STEP(step_d)
STEP(step_e)
STEP(step_f)
STEP(step_g)
STEP(step_h)

static void (*const steps[])(int) = {step_a, step_b, step_c, step_d, step_e, step_f, step_g, step_h};

NOINLINE static void descend(int depth) {
  steps[next() % 8](depth);
  sink = 0;
}

int main(void) {
  /* Each step has two frames. */
  for (;;) descend(55);
}
