/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spends half of its time in slower(), and a quarter each in steady() and even(). From SIGUSR1 on, slower() takes the
 * given percentage more.
 */
#include <signal.h>
#include <stdlib.h>

#include "frame.h"

static volatile unsigned long sink;
static volatile sig_atomic_t signalled;

static void on_signal(int number) {
  (void)number;
  signalled = 1;
}

NOINLINE static void steady(void) {
  call_nobody();
  for (unsigned long i = 0; i < 10000; i++) sink += i;
}

NOINLINE static void even(void) {
  call_nobody();
  for (unsigned long i = 0; i < 10000; i++) sink += i;
}

NOINLINE static void slower(unsigned long work) {
  call_nobody();
  for (unsigned long i = 0; i < work; i++) sink += i;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  signal(SIGUSR1, on_signal);
  const unsigned long more = 20000 * strtoul(argv[1], NULL, 10) / 100;
  for (;;) {
    steady();
    even();
    slower(20000 + (signalled ? more : 0));
  }
}
