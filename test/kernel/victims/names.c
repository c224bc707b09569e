/* SPDX-License-Identifier: Apache-2.0 */
/* main > outer > middle, which is inlined into outer > leaf. names_test.cc knows the lines of this file. */
static volatile unsigned long sink;

__attribute__((noinline, noipa)) static void leaf(void) {
  for (unsigned long i = 0; i < 5000000; i++) sink += i;
}

__attribute__((always_inline)) static inline void middle(void) {
  leaf();
  sink = 1;
}

__attribute__((noinline, noipa)) static void outer(void) {
  middle();
  sink = 0;
}

int main(void) {
  for (;;) outer();
}
