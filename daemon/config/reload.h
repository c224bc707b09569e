// SPDX-License-Identifier: Apache-2.0
//
// Reload: the configuration read again while flamed runs. What can be changed then is; a configuration that is bad
// changes nothing.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "daemon/config/config.h"

namespace flamed::daemon {

struct Reload {
  Config config;                               ///< what is in force from now on
  std::vector<std::string_view> applied{};     ///< keys that have another value now
  std::vector<std::string_view> at_restart{};  ///< keys whose new value takes a restart: the history would be lost
};

/// Reads what the command line names again. `running` is in force. An error names file, line, key, and what is allowed.
Result<Reload> read_again(std::span<const char* const> arguments, const Config& running);

/// What to tell of it: "log_level is applied; frequency_hz takes a restart".
std::string describe(const Reload& reload);

}  // namespace flamed::daemon
