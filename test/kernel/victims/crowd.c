/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crowd THREADS MS: so many threads that wake every MS milliseconds, each at another time; 0: they sleep for ever.
 * Prints "ready" when all of them have begun.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long period_ms;

static void sleep_ms(long ms) {
  const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&time, NULL);
}

static void* sleep_and_wake(void* number) {
  if (period_ms == 0) pause();
  sleep_ms((long)number * 7919 % period_ms);
  for (;;) sleep_ms(period_ms);
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const long count = atol(argv[1]);
  period_ms = atol(argv[2]);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 32768);
  pthread_attr_setguardsize(&attributes, 0); /* a mapping less: a process may have 65,530 */
  for (long i = 0; i < count; i++) {
    pthread_t thread;
    if (pthread_create(&thread, &attributes, sleep_and_wake, (void*)i) != 0) return 1;
  }
  printf("ready\n");
  fflush(stdout);
  pause();
}
