/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes in calm_function for some milliseconds, then in burst_function, then in calm_function until it is ended.
 * After the burst it prints the burst's begin and end in nanoseconds of unix time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "frame.h"

static volatile unsigned long sink;

static long long now_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

NOINLINE static void calm_function(void) {
  call_nobody();
  for (unsigned long i = 0; i < 100000; i++) sink += i;
}

NOINLINE static void burst_function(void) {
  call_nobody();
  for (unsigned long i = 0; i < 100000; i++) sink -= i;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const long long start = now_ns(CLOCK_MONOTONIC);
  const long long begin = start + atoll(argv[1]) * 1000000;
  while (now_ns(CLOCK_MONOTONIC) < begin) calm_function();
  const long long from = now_ns(CLOCK_REALTIME);
  const long long end = now_ns(CLOCK_MONOTONIC) + atoll(argv[2]) * 1000000;
  while (now_ns(CLOCK_MONOTONIC) < end) burst_function();
  printf("%lld %lld\n", from, now_ns(CLOCK_REALTIME));
  fflush(stdout);
  for (;;) calm_function();
}
