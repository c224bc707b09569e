// SPDX-License-Identifier: Apache-2.0
//
// The second unit of victim_inlines.
#include "victim_inlines.h"

[[gnu::noinline]] int other(int value) {
  PLACE(place_in_other);          // @other
  return from_header(value) + 1;  // @call header
}
