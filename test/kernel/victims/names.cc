// SPDX-License-Identifier: Apache-2.0
//
// A template that calls a lambda through an inlined member function. names_test.cc knows the lines of this file.
#ifdef __clang__
#define NOINLINE __attribute__((noinline))  // has no noipa
#else
#define NOINLINE __attribute__((noinline, noipa))
#endif
static volatile unsigned long sink;
namespace shop {

template <typename Value>
struct Basket {
  template <typename Work>
  [[gnu::always_inline]] inline void each(Work work) {
    work(value);
    sink = 2;
  }
  Value value;
};

template <typename Value, int kCount>
NOINLINE void fill(Basket<Value> basket) {
  basket.each([](Value value) NOINLINE {
    for (unsigned long i = 0; i < kCount; i++) sink = sink + value;
  });
  sink = 1;
}

}  // namespace shop

int main() {
  for (;;) shop::fill<unsigned long, 5000000>({3});
}
