// SPDX-License-Identifier: Apache-2.0
//
// Parses /proc/PID/status: text in, value out. Layout: proc(5).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace flamed::symbolizer {

struct ProcessStatus {
  struct Ids {
    std::uint32_t real = 0, effective = 0, saved = 0, file_system = 0;
  };
  Ids uid;                           ///< as seen from flamed's user namespace
  Ids gid;                           ///< likewise
  std::int32_t innermost_pid = 0;    ///< in the process's own pid namespace
  std::uint64_t caught_signals = 0;  ///< bit n - 1: it has a handler for signal n

  std::vector<std::uint32_t> groups{};  ///< supplementary
  std::uint64_t capabilities = 0;       ///< permitted ones, in its own user namespace

  [[nodiscard]] bool catches(int signal) const { return (caught_signals >> (signal - 1) & 1) != 0; }
  /// Does the process have the rights of `user`? False for a user who only started a set-user-ID program.
  [[nodiscard]] bool acts_for(std::uint32_t user) const { return user == uid.effective || user == uid.file_system; }
};

/// Empty if a line is missing or malformed. Without the line CapPrm it has all capabilities.
std::optional<ProcessStatus> parse_process_status(std::string_view text);

}  // namespace flamed::symbolizer
