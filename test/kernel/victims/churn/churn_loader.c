/* SPDX-License-Identifier: Apache-2.0 */
/*
 * churn_loader SECONDS ONE TWO: loads one library, works in it, unloads it, then does the same with the other, which
 * the kernel maps at the same place. Prints how many were loaded, how many of them where the other one had been, and
 * which part of the time it worked in them.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NOINLINE __attribute__((noinline, noipa))

static volatile unsigned long sink;

typedef void (*Outer)(unsigned long);

NOINLINE static void call_one(Outer outer) {
  outer(200000);
  sink = 0;
}

NOINLINE static void call_two(Outer outer) {
  outer(200000);
  sink = 0;
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const double begin = seconds();
  const double end = begin + atof(argv[1]);
  double worked = 0;
  unsigned long before = 0;
  long loaded = 0;
  long in_place = 0;
  while (seconds() < end) {
    const int which = (int)(loaded % 2);
    void* library = dlopen(argv[2 + which], RTLD_NOW);
    struct link_map* map = library;
    if (!library) return 1;
    Outer outer;
    *(void**)&outer = dlsym(library, which ? "two_outer" : "one_outer");
    if (!outer) return 1;
    const double called = seconds();
    if (which)
      call_two(outer);
    else
      call_one(outer);
    worked += seconds() - called;
    in_place += map->l_addr == before;
    before = map->l_addr;
    loaded++;
    dlclose(library);
  }
  printf("%ld %ld %f\n", loaded, in_place, worked / (seconds() - begin));
  return 0;
}
