/* SPDX-License-Identifier: Apache-2.0 */
/* The process's first thread ends at once. Another one goes on with thread_main > leaderless_work. */
#include <pthread.h>
#include <stddef.h>

static volatile unsigned long sink;

__attribute__((noinline, noipa)) static void leaderless_work(void) {
  for (unsigned long i = 0; i < 5000000; i++) sink += i;
}

__attribute__((noinline, noipa)) static void* thread_main(void* argument) {
  for (;;) leaderless_work();
  return argument;
}

int main(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, thread_main, NULL) != 0) return 1;
  pthread_exit(NULL);
}
