/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two threads that only compute for the given number of seconds. Then prints the CPU time that the kernel gave them in
 * nanoseconds, and waits to be ended, so that /proc still shows the process.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sinks[2][64];
static double seconds;

static long long now_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void* burn(void* argument) {
  volatile unsigned long* sink = argument;
  const long long end = now_ns(CLOCK_MONOTONIC) + (long long)(seconds * 1e9);
  while (now_ns(CLOCK_MONOTONIC) < end) {
    for (int i = 0; i < 1000000; i++) *sink += (unsigned long)i;
  }
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  seconds = atof(argv[1]);
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, burn, (void*)sinks[i]);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  printf("%lld\n", now_ns(CLOCK_PROCESS_CPUTIME_ID));
  fflush(stdout);
  pause();
}
