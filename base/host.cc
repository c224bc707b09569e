// SPDX-License-Identifier: Apache-2.0
#include "base/host.h"

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

}  // namespace flamed
