// SPDX-License-Identifier: Apache-2.0
#include "store/keyed_hash.h"

#include <random>

namespace flamed::store {

std::uint64_t random_hash_key() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device() | 1;
}

}  // namespace flamed::store
