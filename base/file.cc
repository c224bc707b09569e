// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "base/handle.h"

namespace flamed {

Result<std::string> read_fd(int fd, std::size_t limit_bytes) {
  constexpr std::size_t kStep = 64 * 1024;
  std::string text;
  for (;;) {
    const std::size_t used = text.size();
    // One byte past the limit distinguishes a file of exactly that size from a larger one.
    const std::size_t want = std::min(kStep, limit_bytes + 1 - used);
    text.resize(used + want);
    ssize_t got = ::read(fd, text.data() + used, want);
    if (got < 0 && errno == EINTR)
      got = 0;
    else if (got < 0)
      return Error::from_errno("read");
    else if (got == 0) {
      text.resize(used);
      return text;
    }
    text.resize(used + static_cast<std::size_t>(got));
    if (text.size() > limit_bytes) {
      return Error("larger than the limit of " + std::to_string(limit_bytes) + " bytes", EFBIG);
    }
  }
}

Result<std::string> read_file(const std::string& path, std::size_t limit_bytes) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return Error::from_errno("open " + path);
  Result<std::string> text = read_fd(fd.get(), limit_bytes);
  if (!text) return std::move(text).error().with_context(path);
  return text;
}

std::string_view read_once(const std::string& path, std::span<char> buffer) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return {};
  const ssize_t size = ::read(fd.get(), buffer.data(), buffer.size());
  return {buffer.data(), size > 0 ? static_cast<std::size_t>(size) : 0};
}

}  // namespace flamed
