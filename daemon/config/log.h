// SPDX-License-Identifier: Apache-2.0
//
// Logging: to the journal with levels when systemd started us, else to standard error.
#pragma once

#include <string>

namespace flamed::daemon {

/// Sets spdlog's default logger. `level` is one of the configuration's. From level info on, a message that repeats the
/// one before it is written at most once in 10 seconds, and similar messages only a few times (FloodFilter).
void start_logging(const std::string& level);
/// From now on.
void set_log_level(const std::string& level);

}  // namespace flamed::daemon
