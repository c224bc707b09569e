// SPDX-License-Identifier: Apache-2.0
#include "base/host.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <array>

#include "base/file.h"

namespace flamed {

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : std::string();
}

std::string machine_id() {
  constexpr std::size_t kMostBytes = 64;
  const Result<std::string> text = read_file("/etc/machine-id", kMostBytes);
  return text ? text->substr(0, text->find('\n')) : std::string();
}

std::uint64_t user_address_mask() {
  // The kernel puts these bytes above the first thread's stack, whatever the limit of the stack is.
  static const std::uint64_t mask = user_address_mask(::getauxval(AT_RANDOM));
  return mask;
}

}  // namespace flamed
