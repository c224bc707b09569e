// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/process/executable_lines.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string_view>
#include <vector>

#include "base/handle.h"

namespace flamed::symbolizer {
namespace {

constexpr std::size_t kLimitBytes = 16U << 20;
constexpr std::size_t kBlockBytes = 64U << 10;

/// "7f2c7a000000-7f2c7a021000 r-xp ..."
bool is_executable(std::string_view line) {
  const std::size_t blank = line.find(' ');
  return blank != std::string_view::npos && line.substr(blank).size() > 3 && line[blank + 3] == 'x';
}

/// Moves whole lines from `text`, the executable ones to `kept`.
void keep_lines(std::string& text, std::string& kept) {
  std::size_t done = 0;
  for (std::size_t end = 0; (end = text.find('\n', done)) != std::string::npos; done = end + 1) {
    const std::string_view line = std::string_view(text).substr(done, end + 1 - done);
    if (is_executable(line)) kept += line;
  }
  text.erase(0, done);
}

}  // namespace

Result<std::string> read_executable_lines(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return Error::from_errno("open " + path);
  std::vector<char> block(kBlockBytes);
  std::string text;
  std::string kept;
  for (;;) {
    const ssize_t size = ::read(file.get(), block.data(), block.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return Error::from_errno("read " + path);
    if (size == 0) break;
    text.append(block.data(), static_cast<std::size_t>(size));
    keep_lines(text, kept);
    if (text.size() + kept.size() > kLimitBytes) {
      return Error(path + ": more than " + std::to_string(kLimitBytes >> 20) + " MiB of executable mappings", EFBIG);
    }
  }
  if (is_executable(text)) kept += text;
  return kept;
}

}  // namespace flamed::symbolizer
