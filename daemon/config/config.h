// SPDX-License-Identifier: Apache-2.0
//
// Config: the settings from /etc/flamed/flamed.json and the command line. Flags override the file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/socket/listen_address.h"
#include "base/clock.h"
#include "base/pressure.h"
#include "base/result.h"
#include "runtimes/runtime_kind.h"
#include "symbolizer/model/container_engine.h"
#include "symbolizer/process/command_line.h"

namespace flamed::daemon {

inline constexpr const char* kDefaultConfigFile = "/etc/flamed/flamed.json";

struct Config {
  std::vector<api::ListenAddress> listen{};  ///< empty: the service manager's sockets, or else 127.0.0.1:9090
  std::string token_file{};                  ///< empty: none
  unsigned frequency_hz = 99;
  std::optional<double> cpu_budget = 0.003;  ///< share of the CPU time of all online CPUs; empty: none
  std::int64_t retention_ns = 24 * 60 * kNsPerMinute;
  std::uint64_t memory_budget_bytes = 256U << 20;
  bool use_unwind_tables = true;
  std::uint64_t unwind_budget_bytes = 128U << 20;
  bool stack_slices = true;
  symbolizer::CommandLines command_lines = symbolizer::CommandLines::kFull;
  runtimes::RuntimeKinds runtimes = runtimes::RuntimeKinds::all();  ///< whose functions are shown
  bool waits = true;
  PressureLimits pressure = kUsualPressureLimits;                ///< from which on minutes are marked
  std::vector<symbolizer::ContainerEngine> container_engines{};  ///< that may be asked for names
  std::string debuginfod_urls;                                   ///< separated by spaces; empty: no server is asked
  std::optional<std::string>
      history_folder{};  ///< "": no history on disk; empty: of the service manager, if it has one
  std::uint64_t history_bytes = std::uint64_t{1} << 30;
  std::int64_t history_age_ns = 30LL * 24 * 60 * kNsPerMinute;
  std::string log_level = "info";
  /// By key, where a value was set that is not the default: a flag, or a file's name.
  std::map<std::string_view, std::string> set_by{};
};

/// "--cpu-budget", "/etc/flamed/flamed.json" or "default": for people.
std::string where_set(const Config& config, std::string_view key);

/// Empty: there is no place for it, or it is off.
std::string history_folder(const Config& config);

/// The parsed command line.
struct CommandLine {
  enum class Action { kRun, kCheckConfig, kCheckHistory, kExport, kOpen, kVersion, kHelp };
  Action action = Action::kRun;
  std::string from, to;  ///< with kExport: times, as in a URL
  std::string file;      ///< with kExport: to be written; with kOpen: to be shown
  Config config;
  std::string config_file;  ///< the file that was read; empty when there was none
};

/// JSON with comments. `listen` and `container_engines` may be lists. Keys: listen, token_file, frequency_hz,
/// cpu_budget, retention, memory_budget, unwind, unwind_memory, stack_slices, waits, pressure, command_lines, runtimes,
/// debuginfod, container_engines, history, history_size, history_age, log_level. An unknown key or a bad value is an
/// error that names the line, the key, the value and what is allowed. Values not given keep those of `config`. `file`
/// is its name.
Status apply_json(std::string_view text, Config& config, const std::string& file = kDefaultConfigFile);

/// `arguments` without the program's name. Reads the configuration file: the one given, which must exist, or the
/// default one if it does; with kOpen only one that is given, since it is about the daemon.
Result<CommandLine> parse_command_line(std::span<const char* const> arguments);

/// Keys whose values differ, in the order of the help.
std::vector<std::string_view> changed_keys(const Config& before, const Config& after);

std::string help_text();

}  // namespace flamed::daemon
