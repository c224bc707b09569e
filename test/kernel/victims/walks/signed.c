/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A chain whose return addresses are signed, if the CPU can: built with -mbranch-protection=standard. It says first
 * whether they are. Its innermost function is a leaf: its return address is in the link register alone, unsigned.
 */
#include <stdint.h>
#include <stdio.h>

#define NOINLINE __attribute__((noinline, noipa))

static volatile unsigned long sink;

/* Bits above those of user addresses; a signature may be 0 by chance. */
NOINLINE static int count_signed(int depth) {
  const uint64_t* record = __builtin_frame_address(0);
  const int is_signed = record[1] >> 48 != 0;
  return depth == 0 ? is_signed : count_signed(depth - 1) + is_signed;
}

NOINLINE static void leaf(unsigned long times) {
  for (unsigned long i = 0; i < times; i++) sink += i;
}

/* The writes after the calls keep them from becoming jumps. */
NOINLINE static void middle(void) {
  leaf(20000);
  sink = 0;
}

NOINLINE static void outer(void) {
  middle();
  sink = 0;
}

int main(void) {
  puts(count_signed(15) >= 8 ? "signed" : "not signed");
  fflush(stdout);
  for (;;) {
    outer();
    sink = 0;
  }
}
