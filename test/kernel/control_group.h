// SPDX-License-Identifier: Apache-2.0
//
// ControlGroup: a cgroup of a test with limits, v1 or v2.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "test/support/running_daemon.h"

namespace flamed::test {

class ControlGroup {
 public:
  /// `controller`: "memory", "cpu" or "pids".
  explicit ControlGroup(const std::string& controller) {
    for (const std::string& root : {"/sys/fs/cgroup/" + controller, std::string("/sys/fs/cgroup")}) {
      is_first_version_ = root != "/sys/fs/cgroup";
      if (!is_first_version_ && !is_handed_on(root, controller)) continue;
      if (is_first_version_ && !std::filesystem::exists(root + "/cgroup.procs")) continue;
      const std::filesystem::path path = root + "/flamed-test-" + std::to_string(::getpid());
      std::error_code error;
      if (!std::filesystem::create_directory(path, error)) continue;
      path_ = path;
      return;
    }
  }
  ~ControlGroup() {
    // The kernel needs a moment to release the processes.
    static_cast<void>(RunningDaemon::eventually(std::chrono::seconds(5),
                                                [&] { return path_.empty() || ::rmdir(path_.c_str()) == 0; }));
  }
  ControlGroup(const ControlGroup&) = delete;
  ControlGroup& operator=(const ControlGroup&) = delete;

  /// False if none can be made on this machine.
  [[nodiscard]] bool exists() const { return !path_.empty(); }
  /// The command that starts a program in the group: for Wrapped.
  [[nodiscard]] std::string entering() const {
    return "echo $$ >" + (path_ / "cgroup.procs").string() + " && exec \"$FLAMED_WRAPPED\" \"$@\"";
  }

  /// Without the page cache, which the kernel reclaims by itself, as the daemon counts it.
  [[nodiscard]] std::uint64_t used_bytes() const {
    const std::string prefix = is_first_version_ ? "total_" : "";
    std::uint64_t files = 0;
    std::ifstream stat(path_ / "memory.stat");
    std::uint64_t value = 0;
    for (std::string name; stat >> name >> value;) {
      if (name == prefix + "inactive_file" || name == prefix + "active_file") files += value;
    }
    return read(is_first_version_ ? "memory.usage_in_bytes" : "memory.current") - files;
  }
  void limit_bytes(std::uint64_t bytes) const {
    write(is_first_version_ ? "memory.limit_in_bytes" : "memory.max", std::to_string(bytes));
  }
  /// Threads and processes.
  [[nodiscard]] std::uint64_t tasks() const { return read("pids.current"); }
  void limit_tasks(std::uint64_t count) const { write("pids.max", std::to_string(count)); }
  void no_limit_of_tasks() const { write("pids.max", "max"); }
  /// A share of one CPU, in each tenth of a second.
  void limit_cpu(double part) const {
    const std::string quota = std::to_string(static_cast<int>(part * 100'000));
    if (is_first_version_)
      write("cpu.cfs_quota_us", quota);
    else
      write("cpu.max", quota + " 100000");
  }
  /// How often its tasks had to wait for the next tenth of a second.
  [[nodiscard]] std::uint64_t times_throttled() const {
    std::ifstream file(path_ / "cpu.stat");
    std::uint64_t value = 0;
    for (std::string name; file >> name >> value;) {
      if (name == "nr_throttled") return value;
    }
    return 0;
  }
  void no_limit_of_cpu() const {
    write(is_first_version_ ? "cpu.cfs_quota_us" : "cpu.max", is_first_version_ ? "-1" : "max");
  }

 private:
  static bool is_handed_on(const std::string& root, const std::string& controller) {
    std::ifstream file(root + "/cgroup.subtree_control");
    for (std::string word; file >> word;) {
      if (word == controller) return true;
    }
    return false;
  }
  [[nodiscard]] std::uint64_t read(const char* name) const {
    std::ifstream file(path_ / name);
    std::uint64_t value = 0;
    file >> value;
    return value;
  }
  void write(const char* name, const std::string& value) const { std::ofstream(path_ / name) << value; }

  std::filesystem::path path_;
  bool is_first_version_ = false;
};

}  // namespace flamed::test
