// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a mutex in the memory of a process, and as the status of a thread, whose name any user can choose. The
// first 4 bytes are the value that the futex call expects.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/waits/lock_holder.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flamed::daemon;
  FutexWait wait{.address = 1};
  if (size >= sizeof(wait.expected) + kMutexBytes) {
    std::memcpy(&wait.expected, data, sizeof(wait.expected));
    const std::span<const std::byte, kMutexBytes> mutex(
        reinterpret_cast<const std::byte*>(data + sizeof(wait.expected)), kMutexBytes);
    for (const bool inherits : {false, true}) {
      wait.is_priority_inheriting = inherits;
      const auto owner = mutex_owner(mutex, wait);
      require(!owner || (*owner != 0 && *owner < 1U << FLAMED_TID_BITS));
    }
  }
  std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto status = parse_thread_status(text)) {
    require(status->name.size() < text.size());
    HolderFinder finder([&](std::int32_t, std::uint32_t) { return text; },
                        [](std::int32_t, std::size_t) { return std::vector<std::uint32_t>{7}; });
    const LockHolder holder = finder.find(1, status->own_tid, status->user);
    require(holder.tid == status->own_tid && holder.comm.back() == 0);
    require(status->name.starts_with(holder.comm.data()));
  }
  return 0;
}
