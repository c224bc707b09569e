/* SPDX-License-Identifier: Apache-2.0 */
/* Computes for 20 ms of CPU time and ends: main > short_lived_work. */
#include <time.h>

static volatile unsigned long sink;

__attribute__((noinline, noipa)) static int short_lived_work(void) {
  struct timespec used;
  do {
    for (int i = 0; i < 100000; i++) sink += (unsigned long)i;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  } while (used.tv_sec == 0 && used.tv_nsec < 20 * 1000 * 1000);
  sink = 0;
  return 0;
}

int main(void) { return short_lived_work(); }
