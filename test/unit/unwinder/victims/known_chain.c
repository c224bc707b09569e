/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "known_chain.h"

#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* Hides the use of memory from the compiler, and keeps it from turning the call before into a jump. */
#define USE(pointer) __asm__ volatile("" : : "r"(pointer) : "memory")
#define OWN_FRAME __attribute__((noinline, noclone))

static int small_frame(int depth, known_chain_callback callback, void* argument);

OWN_FRAME static int large_frame(int depth, known_chain_callback callback, void* argument) {
  char room[4000];
  USE(room);
  const int result = small_frame(depth - 1, callback, argument);
  USE(room);
  return result + 1;
}

OWN_FRAME static int small_frame(int depth, known_chain_callback callback, void* argument) {
  int result = 0;
  if (depth <= 0) {
    callback(argument);
  } else if (depth % 3 == 0) {
    result = large_frame(depth, callback, argument);
  } else {
    result = small_frame(depth - 1, callback, argument);
  }
  USE(&result);
  return result + 1;
}

OWN_FRAME int known_chain_deep(int depth, known_chain_callback callback, void* argument) {
  const int result = small_frame(depth, callback, argument);
  USE(&result);
  return result;
}

OWN_FRAME int known_chain_realigned(int size, known_chain_callback callback, void* argument) {
  _Alignas(64) char aligned[256];
  char* variable = alloca((size_t)size);
  USE(aligned);
  USE(variable);
  const int result = small_frame(2, callback, argument);
  USE(aligned);
  return result;
}

static known_chain_callback current_callback;
static void* current_argument;

OWN_FRAME static int compare(const void* a, const void* b) {
  if (current_callback != NULL) current_callback(current_argument);
  current_callback = NULL;
  return *(const int*)a - *(const int*)b;
}

OWN_FRAME int known_chain_qsort(known_chain_callback callback, void* argument) {
  int numbers[] = {3, 1, 2, 5, 4};
  current_callback = callback;
  current_argument = argument;
  qsort(numbers, sizeof(numbers) / sizeof(numbers[0]), sizeof(numbers[0]), compare);
  USE(numbers);
  return numbers[0];
}

OWN_FRAME static void on_signal(int number) {
  (void)number;
  small_frame(1, current_callback, current_argument);
}

OWN_FRAME int known_chain_signal(known_chain_callback callback, void* argument) {
  const size_t stack_bytes = 256 * 1024;
  stack_t own = {.ss_sp = malloc(stack_bytes), .ss_size = stack_bytes};
  stack_t before;
  struct sigaction action;
  struct sigaction previous;

  memset(&action, 0, sizeof(action));
  action.sa_handler = on_signal;
  action.sa_flags = SA_ONSTACK;
  current_callback = callback;
  current_argument = argument;
  if (own.ss_sp == NULL || sigaltstack(&own, &before) != 0) abort();
  if (sigaction(SIGUSR1, &action, &previous) != 0 || raise(SIGUSR1) != 0) abort();
  sigaction(SIGUSR1, &previous, NULL);
  sigaltstack(&before, NULL);
  free(own.ss_sp);
  return 1;
}

OWN_FRAME static void* thread_main(void* unused) {
  small_frame(5, current_callback, current_argument);
  return unused;
}

OWN_FRAME int known_chain_thread(known_chain_callback callback, void* argument) {
  pthread_t thread;
  current_callback = callback;
  current_argument = argument;
  if (pthread_create(&thread, NULL, thread_main, NULL) != 0) abort();
  return pthread_join(thread, NULL);
}
