// SPDX-License-Identifier: Apache-2.0
//
// What tells this host from others.
#pragma once

#include <cstdint>
#include <string>

namespace flamed {

/// As the kernel has it, any bytes; empty if it can't be read.
std::string host_name();

/// machine-id(5), which stays the same as long as the system is installed; empty if there is none. It is a secret of a
/// kind: mix it into what is told, and don't tell it.
std::string machine_id();

/// All bits that an address in user space may have, if its first stack, which ends where user space does, is at
/// `stack`.
constexpr std::uint64_t user_address_mask(std::uint64_t stack) {
  std::uint64_t mask = 0;
  while (mask < stack) mask = mask << 1 | 1;
  return mask;
}

/// Of this host's processes. arm64 kernels are built with addresses of 36 to 52 bits; where there are 52, programs have
/// to ask for more than 48 of them.
std::uint64_t user_address_mask();

}  // namespace flamed
