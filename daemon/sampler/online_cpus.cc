// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler/online_cpus.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <string>

#include "daemon/sampler/cpu_list.h"

namespace flamed::daemon {
namespace {

constexpr const char* kPath = "/sys/devices/system/cpu/online";

}  // namespace

Result<std::vector<int>> OnlineCpus::read() {
  if (!file_) file_.reset(::open(kPath, O_RDONLY | O_CLOEXEC));
  if (!file_) return Error::from_errno(std::string("open ") + kPath);
  std::array<char, 4096> text{};
  const ssize_t size = ::pread(file_.get(), text.data(), text.size(), 0);
  if (size < 0) return Error::from_errno(std::string("read ") + kPath);
  return parse_cpu_list({text.data(), static_cast<std::size_t>(size)});
}

}  // namespace flamed::daemon
