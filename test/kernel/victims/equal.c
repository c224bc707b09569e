/* SPDX-License-Identifier: Apache-2.0 */
/* main > { first | second }, which take the same time. */
#include "frame.h"

static volatile unsigned long sink;

NOINLINE static void first(void) {
  call_nobody();
  for (unsigned long i = 0; i < 50000; i++) sink += i;
}

NOINLINE static void second(void) {
  call_nobody();
  for (unsigned long i = 0; i < 50000; i++) sink += i;
}

int main(void) {
  for (;;) {
    first();
    second();
  }
}
