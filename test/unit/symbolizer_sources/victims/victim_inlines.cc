// SPDX-License-Identifier: Apache-2.0
//
// Functions inlined into one another. Each PLACE is a symbol at a known instruction. The marks in comments show the
// test the expected lines.
#include "victim_inlines.h"

namespace shapes {

template <typename Number>
[[gnu::always_inline]] inline Number grown(Number side) {
  PLACE(place_in_template);  // @template
  return side + 1;
}

struct Square {
  int side;

  [[gnu::always_inline]] void grow() {
    side = grown(side);      // @call template
    PLACE(place_in_member);  // @member
  }

  [[gnu::noinline]] int area() const {
    PLACE(place_in_method);  // @method
    return side * side;
  }
};

namespace {
[[gnu::noinline]] int local(int value) {
  PLACE(place_in_local);  // @local
  return value + 2;
}
}  // namespace

}  // namespace shapes

extern "C" [[gnu::noinline]] int draw(int side) {
  shapes::Square square{side};
  square.grow();         // @call member
  PLACE(place_in_draw);  // @draw
  const auto paint = [&](int colour) __attribute__((always_inline)) {
    PLACE(place_in_lambda);  // @lambda
    return colour + square.side;
  };
  int sum = square.area();
  sum += paint(sum);  // @call lambda
  return sum + shapes::local(sum);
}

int main(int argc, char**) { return draw(argc) + other(argc) == 0 ? 1 : 0; }
