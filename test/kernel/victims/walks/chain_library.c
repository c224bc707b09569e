/* SPDX-License-Identifier: Apache-2.0 */
/* A shared library without frame pointers that calls back into the program. */
#include "chain_library.h"

static volatile int sink;

__attribute__((noinline, noipa)) static int library_inner(int (*callback)(int), int depth) {
  const int result = callback(depth);
  sink = result;
  return result + 1;
}

int library_calls_back(int (*callback)(int), int depth) {
  const int result = library_inner(callback, depth);
  sink = result;
  return result + 1;
}

int library_does_nothing(int value) { return value; }
