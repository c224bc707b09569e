/* SPDX-License-Identifier: Apache-2.0 */
/* churn_threads SECONDS THREADS: half of the threads run even_thread > even_work, the others odd_thread > odd_work. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noipa))

static volatile unsigned long sink;
static atomic_int over;
static pthread_barrier_t all_there; /* keeps the others from taking the CPU from the thread that starts them */

NOINLINE static void even_work(void) {
  for (unsigned long i = 0; i < 5000; i++) sink += i;
}

NOINLINE static void odd_work(void) {
  volatile char frame[72];
  frame[0] = 0;
  for (unsigned long i = 0; i < 5000; i++) sink += i + (unsigned long)frame[0];
}

NOINLINE static void* even_thread(void* argument) {
  pthread_barrier_wait(&all_there);
  while (!over) even_work();
  return argument;
}

NOINLINE static void* odd_thread(void* argument) {
  pthread_barrier_wait(&all_there);
  while (!over) odd_work();
  return argument;
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int count = atoi(argv[2]);
  pthread_t* threads = calloc((size_t)count, sizeof(*threads));
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 65536);
  pthread_barrier_init(&all_there, NULL, (unsigned)count + 1);
  for (int i = 0; i < count; i++) {
    if (pthread_create(&threads[i], &attributes, i % 2 ? odd_thread : even_thread, NULL) != 0) return 1;
  }
  pthread_barrier_wait(&all_there);
  sleep((unsigned)atoi(argv[1]));
  over = 1;
  for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
  printf("%d\n", count);
  return 0;
}
