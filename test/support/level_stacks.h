// SPDX-License-Identifier: Apache-2.0
//
// The stacks of a flame graph by levels, as Grafana reads it: for comparison with folded stacks.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace flamed::test {

/// `graph`: {"names", "levels"}. By stack, from below the root on ("main;outer"): its own nanoseconds.
inline std::map<std::string, std::uint64_t> stacks_of_levels(const nlohmann::json& graph) {
  std::map<std::string, std::uint64_t> stacks;
  std::map<std::uint64_t, std::string> callers;  // by where their bars begin
  for (const auto& level : graph["levels"]) {
    std::map<std::uint64_t, std::string> here;
    std::uint64_t at = 0;
    for (std::size_t i = 0; i < level["values"].size(); i += 4) {
      const auto number = [&](std::size_t j) { return std::stoull(level["values"][i + j].get<std::string>()); };
      at += number(0);
      std::string path;
      if (!callers.empty()) {
        path = std::prev(callers.upper_bound(at))->second + ";" + graph["names"][number(3)].get<std::string>();
      }
      if (number(2) != 0) stacks[path.substr(path.empty() ? 0 : 1)] += number(2);
      here[at] = std::move(path);
      at += number(1);
    }
    callers = std::move(here);
  }
  return stacks;
}

}  // namespace flamed::test
