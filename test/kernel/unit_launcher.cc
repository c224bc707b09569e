// SPDX-License-Identifier: Apache-2.0
#include "test/kernel/unit_launcher.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "test/catch.h"

namespace flamed::test {

std::vector<std::string> launcher_of_the_unit() {
  const char* unit = std::getenv("FLAMED_UNIT");
  REQUIRE(unit != nullptr);
  std::ifstream lines(unit);
  std::string capabilities;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("AmbientCapabilities=")) capabilities = line.substr(line.find('=') + 1);
  }
  REQUIRE(!capabilities.empty());
  std::string set = "-all";
  std::istringstream names(capabilities);
  for (std::string name; names >> name;) {
    REQUIRE(name.starts_with("CAP_"));
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    set += ",+" + name.substr(4);
  }
  const std::string user = std::to_string(kUserOfUnit);
  return {"setpriv",           "--reuid=" + user,       "--regid=" + user,
          "--clear-groups",    "--no-new-privs",        "--bounding-set=" + set,
          "--inh-caps=" + set, "--ambient-caps=" + set, "--"};
}

std::vector<std::string> launcher_with_filter() {
  std::vector<std::string> launcher{"sh", "-c", "exec \"$@\" </proc/kallsyms", "sh"};
  const std::vector<std::string> as_the_unit = launcher_of_the_unit();
  launcher.insert(launcher.end(), as_the_unit.begin(), as_the_unit.end());
  if (std::system("systemd-analyze --version >/dev/null 2>&1") != 0) {
    WARN("SKIP the filter of system calls: there is no systemd-analyze");
    return launcher;
  }
  const std::filesystem::path unit = std::getenv("FLAMED_UNIT");
  const std::filesystem::path sources = unit.parent_path().parent_path();
  launcher.insert(launcher.end(), {"python3", sources / "test/support/unit_filter.py", unit});
  return launcher;
}

}  // namespace flamed::test
