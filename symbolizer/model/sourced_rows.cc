// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/model/sourced_rows.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "base/keyed_hash.h"

namespace flamed::symbolizer {

Result<std::uint64_t> digest_of(int fd, std::span<const FileRange> ranges, std::uint64_t key) {
  KeyedDigest digest(key);
  std::vector<std::byte> buffer(std::size_t{256} << 10);
  for (const FileRange& range : ranges) {
    for (std::uint64_t done = 0; done < range.size;) {
      const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(range.size - done, buffer.size()));
      const ssize_t got = ::pread(fd, buffer.data(), want, static_cast<off_t>(range.offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return Error::from_errno("read");
      if (got == 0) return Error("the file is shorter than it was");
      digest.add(std::span(buffer).first(static_cast<std::size_t>(got)));
      done += static_cast<std::uint64_t>(got);
    }
  }
  return digest.value();
}

}  // namespace flamed::symbolizer
