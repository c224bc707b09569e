/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call chains for walks without frame pointers. The argument chooses one. Built -O2 -fomit-frame-pointer. Every chain
 * runs without end.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "chain_library.h"

#define NOINLINE __attribute__((noinline, noipa))

static volatile unsigned long sink;

NOINLINE static void work(void) {
  for (unsigned long i = 0; i < 20000; i++) sink += i;
}

/* The writes after the calls keep them from becoming jumps, which would take the caller off the stack. */
NOINLINE static void descend(int depth) {
  if (depth == 0)
    work();
  else
    descend(depth - 1);
  sink = 0;
}

/* A frame whose size is known only at run time: its CFA can't be found from the stack pointer. */
NOINLINE static void variable_frame(int size) {
  char buffer[size];
  memset(buffer, size, (size_t)size);
  sink += (unsigned long)buffer[size / 2];
  work();
  sink = 0;
}

/* A frame that is aligned more strictly than the stack: its CFA is found through a saved register. */
NOINLINE static void aligned_frame(int value) {
  __attribute__((aligned(64))) volatile char buffer[192];
  buffer[0] = (char)value;
  variable_frame(100 + value + buffer[0]);
  sink = 0;
}

NOINLINE static int compare(const void* a, const void* b) {
  for (unsigned long i = 0; i < 2000; i++) sink += i;
  return *(const int*)a - *(const int*)b;
}

NOINLINE static void sort(void) {
  int numbers[64];
  for (int i = 0; i < 64; i++) numbers[i] = (i * 7919) % 64;
  qsort(numbers, 64, sizeof(numbers[0]), compare);
  sink += (unsigned long)numbers[0];
}

NOINLINE static void in_handler(void) {
  for (unsigned long i = 0; i < 2000000; i++) sink += i;
}

static void handler(int number) {
  (void)number;
  in_handler();
  sink = 0;
}

NOINLINE static void interrupted(void) {
  for (;;) sink++;
}

NOINLINE static void signals(int own_stack) {
  struct sigaction action = {.sa_handler = handler, .sa_flags = own_stack ? SA_ONSTACK : 0};
  if (own_stack) {
    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
    sigaltstack(&stack, NULL);
  }
  sigaction(SIGALRM, &action, NULL);
  const struct itimerval every = {{0, 10000}, {0, 10000}};
  setitimer(ITIMER_REAL, &every, NULL);
  interrupted();
}

NOINLINE static void thread_work(void) {
  for (;;) {
    work();
    sink = 0;
  }
}

static void* thread_start(void* argument) {
  thread_work();
  return argument;
}

NOINLINE static void ask_time(void) {
  struct timespec now;
  for (int i = 0; i < 1000; i++) clock_gettime(CLOCK_MONOTONIC, &now);
  sink += (unsigned long)now.tv_nsec;
}

NOINLINE static void enter_kernel(void) {
  for (int i = 0; i < 1000; i++) sink += (unsigned long)syscall(SYS_getppid);
}

static int callback(int depth) {
  descend(depth);
  return 1;
}

int main(int argc, char** argv) {
  const char* chain = argc > 1 ? argv[1] : "";
  const int depth = argc > 2 ? atoi(argv[2]) : 0;
  if (!strcmp(chain, "signal")) signals(depth);
  if (!strcmp(chain, "thread")) {
    pthread_t thread;
    pthread_create(&thread, NULL, thread_start, NULL);
    pthread_join(thread, NULL);
  }
  for (;;) {
    if (!strcmp(chain, "recursion"))
      descend(depth);
    else if (!strcmp(chain, "frames"))
      aligned_frame(1);
    else if (!strcmp(chain, "library"))
      sink += (unsigned long)library_calls_back(callback, 3);
    else if (!strcmp(chain, "plt"))
      for (int i = 0; i < 1000; i++) sink += (unsigned long)library_does_nothing(i);
    else if (!strcmp(chain, "qsort"))
      sort();
    else if (!strcmp(chain, "vdso"))
      ask_time();
    else if (!strcmp(chain, "syscall"))
      enter_kernel();
    else
      return 2;
    sink = 0;
  }
}
