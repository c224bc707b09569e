// SPDX-License-Identifier: Apache-2.0
//
// Messages with descriptors over Unix sockets (SCM_RIGHTS).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/handle.h"
#include "base/result.h"

namespace flamed::symbolizer {

inline constexpr std::size_t kMaxMessageFds = 4;

/// Sends `bytes` with duplicates of at most kMaxMessageFds `fds`, without waiting. Code EAGAIN: no room now.
Status send_message(int socket, std::span<const std::byte> bytes, std::span<const int> fds);

struct ReceivedMessage {
  std::size_t bytes = 0;  ///< 0: the other end is closed
  std::vector<Fd> fds;
};

/// Waits unless the socket is non-blocking. More descriptors than kMaxMessageFds are an error.
Result<ReceivedMessage> receive_message(int socket, std::span<std::byte> to);

}  // namespace flamed::symbolizer
