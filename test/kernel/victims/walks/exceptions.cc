// SPDX-License-Identifier: Apache-2.0
//
// Throws again and again, and works where it catches: main > try_and_catch > landed > spin, and during the unwinding in
// libgcc, main > try_and_catch > throws > __cxa_throw > ...
#include <stdexcept>

// clang has no noipa, which keeps GCC from specialising a function for its callers.
#if defined(__clang__)
#define NOINLINE [[gnu::noinline]]
#else
#define NOINLINE [[gnu::noinline, gnu::noipa]]
#endif

namespace {

volatile unsigned long sink;

NOINLINE void spin() {
  for (unsigned long i = 0; i < 20000; i++) sink = sink + i;
}

NOINLINE void throws(int depth) {
  if (depth == 0) throw std::runtime_error("as planned");
  throws(depth - 1);
  sink = 0;
}

NOINLINE void landed() {
  spin();
  sink = 0;
}

NOINLINE void try_and_catch() {
  try {
    throws(5);
  } catch (const std::runtime_error&) {
    landed();
  }
  sink = 0;
}

}  // namespace

int main() {
  for (;;) {
    try_and_catch();
    sink = 0;
  }
}
