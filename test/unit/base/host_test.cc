// SPDX-License-Identifier: Apache-2.0
#include "base/host.h"

#include <cstdint>

#include "test/catch.h"

namespace flamed {
namespace {

TEST_CASE("the bits of user addresses follow from where the first stack is") {
  CHECK(user_address_mask(0x7f'ffff'e120) == (std::uint64_t{1} << 39) - 1);
  CHECK(user_address_mask(0x7fff'c0de'0010) == (std::uint64_t{1} << 47) - 1);
  CHECK(user_address_mask(0xffff'c0de'0010) == (std::uint64_t{1} << 48) - 1);
  CHECK(user_address_mask(~std::uint64_t{0}) == ~std::uint64_t{0});
}

TEST_CASE("addresses of this process have no other bits than user addresses") {
  const int on_stack = 0;
  static const int in_program = 0;
  for (const int* address : {&on_stack, &in_program}) {
    CHECK((reinterpret_cast<std::uint64_t>(address) & ~user_address_mask()) == 0);
  }
}

}  // namespace
}  // namespace flamed
