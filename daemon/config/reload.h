// SPDX-License-Identifier: Apache-2.0
//
// Reload: reads the configuration again while flamed runs. Applies the keys that can be changed then; a bad
// configuration changes nothing.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "daemon/config/config.h"

namespace flamed::daemon {

struct Reload {
  Config config;                               ///< in force from now on
  std::vector<std::string_view> applied{};     ///< keys with a new value in force
  std::vector<std::string_view> at_restart{};  ///< keys whose new value needs a restart, which loses the history
};

/// Reads the file named on the command line again. `running` is in force. An error names file, line, key, and what is
/// allowed.
Result<Reload> read_again(std::span<const char* const> arguments, const Config& running);

/// For the log: "log_level is applied; frequency_hz takes a restart".
std::string describe(const Reload& reload);

}  // namespace flamed::daemon
