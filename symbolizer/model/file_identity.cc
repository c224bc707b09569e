// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/model/file_identity.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/clock.h"

namespace flamed::symbolizer {

std::optional<FileIdentity> identity_of(int fd) {
  struct statx status {};
  constexpr unsigned kWanted = STATX_INO | STATX_SIZE | STATX_MTIME | STATX_CTIME;
  if (::statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, kWanted, &status) != 0) return std::nullopt;
  const auto ns_of = [](const statx_timestamp& time) { return time.tv_sec * kNsPerSecond + time.tv_nsec; };
  return FileIdentity{status.stx_dev_major,
                      status.stx_dev_minor,
                      status.stx_ino,
                      {status.stx_size, ns_of(status.stx_mtime), ns_of(status.stx_ctime)}};
}

}  // namespace flamed::symbolizer
