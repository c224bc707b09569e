// SPDX-License-Identifier: Apache-2.0
//
// Shared by tests of faults and attacks: checks that every sample taken is accounted for.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "test/catch.h"
#include "test/support/running_daemon.h"

namespace flamed::test {

/// Ends the daemon and checks that no sample is missing.
inline void check_every_sample_is_counted(RunningDaemon& daemon) {
  const RunningDaemon::End end = daemon.end();
  WARN(end.taken << " samples taken, " << end.whole << " whole, " << end.truncated << " truncated, " << end.lost
                 << " lost" << end.losses);
  CHECK(end.exit_code == 0);
  CHECK(end.taken > 0);
  CHECK(end.taken == end.whole + end.truncated + end.lost);
}

/// Gaps with that reason in the last quarter of an hour.
inline std::vector<nlohmann::json> gaps_of(const RunningDaemon& daemon, const std::string& reason) {
  std::vector<nlohmann::json> found;
  const nlohmann::json answer = daemon.get_json("/timeline");
  for (const auto& gap : answer["missing"]) {
    if (gap["reason"] == reason) found.push_back(gap);
  }
  return found;
}

/// Runs another program through `command` while this lives: RunningDaemon starts the program that FLAMED_BINARY names.
class Wrapped {
 public:
  explicit Wrapped(const std::string& command) : binary_(std::getenv("FLAMED_BINARY")) {
    path_ = std::filesystem::temp_directory_path() / ("flamed-wrapped-" + std::to_string(::getpid()));
    std::ofstream(path_) << "#!/bin/sh\n" << command << "\n";
    ::chmod(path_.c_str(), 0755);
    ::setenv("FLAMED_BINARY", path_.c_str(), 1);
    ::setenv("FLAMED_WRAPPED", binary_.c_str(), 1);
  }
  ~Wrapped() {
    ::setenv("FLAMED_BINARY", binary_.c_str(), 1);
    std::filesystem::remove(path_);
  }
  Wrapped(const Wrapped&) = delete;
  Wrapped& operator=(const Wrapped&) = delete;

 private:
  std::string binary_;
  std::filesystem::path path_;
};

}  // namespace flamed::test
