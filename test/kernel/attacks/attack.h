// SPDX-License-Identifier: Apache-2.0
//
// Shared by the kernel tests of attacks.
#pragma once

#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "test/catch.h"
#include "test/support/running_daemon.h"

namespace flamed::test {

/// How often a race is tried: `few` times, or 200 in the long form (`./dev test attacks`).
inline int attack_tries(int few) {
  const char* form = std::getenv("FLAMED_ATTACKS");
  return form != nullptr && std::string(form) == "long" ? 200 : few;
}

/// A command run as another user, who needs no account.
inline std::vector<std::string> as_user(unsigned user, const std::vector<std::string>& command) {
  const std::string id = std::to_string(user);
  std::vector<std::string> whole{"setpriv", "--reuid=" + id, "--regid=" + id, "--clear-groups"};
  whole.insert(whole.end(), command.begin(), command.end());
  return whole;
}

/// Waits until all threads of the process are stopped. Each stops separately.
inline bool is_stopped(pid_t pid) {
  return RunningDaemon::eventually(std::chrono::seconds(10), [&] {
    for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
      std::ifstream file(task.path() / "stat");
      const std::string stat{std::istreambuf_iterator<char>(file), {}};
      if (stat.substr(stat.rfind(')') + 2, 1) != "T") return false;
    }
    return true;
  });
}

/// A world-readable folder of the test.
class OpenFolder {
 public:
  OpenFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "flamed-attack-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
    REQUIRE(::chmod(pattern.c_str(), 0755) == 0);
  }
  ~OpenFolder() { std::filesystem::remove_all(path_); }
  OpenFolder(const OpenFolder&) = delete;
  OpenFolder& operator=(const OpenFolder&) = delete;

  [[nodiscard]] std::string path(const std::string& name = "") const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace flamed::test
