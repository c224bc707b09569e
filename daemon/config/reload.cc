// SPDX-License-Identifier: Apache-2.0
#include "daemon/config/reload.h"

#include <utility>

namespace flamed::daemon {
namespace {

std::string list(const std::vector<std::string_view>& keys) {
  std::string text;
  for (const std::string_view key : keys) text += (text.empty() ? "" : ", ") + std::string(key);
  return text;
}

}  // namespace

Result<Reload> read_again(std::span<const char* const> arguments, const Config& running) {
  Result<CommandLine> line = parse_command_line(arguments);
  if (!line) return std::move(line).error();
  Reload reload{running};
  for (const std::string_view key : changed_keys(running, line->config)) {
    if (key == "log_level") {
      reload.config.log_level = line->config.log_level;
    } else if (key == "cpu_budget") {
      reload.config.cpu_budget = line->config.cpu_budget;
    } else {
      reload.at_restart.push_back(key);
      continue;
    }
    reload.config.set_by.erase(key);
    if (auto by = line->config.set_by.extract(key)) reload.config.set_by.insert(std::move(by));
    reload.applied.push_back(key);
  }
  return reload;
}

std::string describe(const Reload& reload) {
  if (reload.applied.empty() && reload.at_restart.empty()) return "nothing has changed";
  std::string text;
  if (!reload.applied.empty()) text = list(reload.applied) + " applied";
  if (!reload.at_restart.empty()) text += (text.empty() ? "" : "; ") + list(reload.at_restart) + " at the next restart";
  return text;
}

}  // namespace flamed::daemon
