// SPDX-License-Identifier: Apache-2.0
//
// Which programs of a managed runtime a test runs.
#pragma once

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

namespace flamed::test {

/// The machine's own, unless the environment variable has others, with colons between them.
inline std::vector<std::string> programs_of(const char* variable, const std::string& own) {
  std::vector<std::string> programs;
  const char* const others = std::getenv(variable);
  std::istringstream list(others == nullptr ? own : others);
  for (std::string program; std::getline(list, program, ':');) {
    if (!program.empty()) programs.push_back(program);
  }
  return programs;
}

}  // namespace flamed::test
