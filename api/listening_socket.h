// SPDX-License-Identifier: Apache-2.0
//
// The TCP socket that the API listens on. Any thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/handle.h"
#include "base/result.h"

namespace flamed::api {

/// Binds and listens, close-on-exec and non-blocking. The port is ours alone: without SO_REUSEPORT a second daemon is
/// refused instead of getting half of the requests. Where the port is taken the error says by whom, as far as it can
/// be seen, and how to choose another.
Result<Fd> listen_on(const std::string& host, std::uint16_t port);

/// The port that a bound socket has.
Result<std::uint16_t> port_of(int socket);

}  // namespace flamed::api
