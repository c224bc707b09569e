// SPDX-License-Identifier: Apache-2.0
//
// FakeProc: a directory tree that looks like /proc to its readers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "test/unit/symbolizer_processes/temporary_directory.h"

namespace flamed::test {

struct FakeProcess {
  std::int32_t pid = 0;
  std::uint64_t start_ticks = 0;
  std::int32_t parent_pid = 1;
  std::string comm = "program";
  std::string maps = "";
  std::string executable = "";
  char state = 'S';
  std::string cmdline = "";
  std::string cgroup = "";
  std::uint32_t uid = 1000;
  std::uint64_t user_ticks = 5;
  std::uint64_t system_ticks = 6;
};

inline std::string stat_line(const FakeProcess& process) {
  return std::to_string(process.pid) + " (" + process.comm + ") " + process.state + " " +
         std::to_string(process.parent_pid) + " 1 1 0 -1 4194304 1 2 3 4 " + std::to_string(process.user_ticks) + " " +
         std::to_string(process.system_ticks) + " 7 8 20 0 1 0 " + std::to_string(process.start_ticks) +
         " 1000 200 18446744073709551615 1 1\n";
}

/// Like the kernel's lines: "start-end r-xp offset 08:01 inode  path".
inline std::string code_line(std::uint64_t start, std::uint64_t end, std::uint64_t offset, std::uint64_t inode,
                             const std::string& path) {
  char text[128];
  std::snprintf(text, sizeof text, "%llx-%llx r-xp %08llx %s %llu", static_cast<unsigned long long>(start),
                static_cast<unsigned long long>(end), static_cast<unsigned long long>(offset),
                inode == 0 ? "00:00" : "08:01", static_cast<unsigned long long>(inode));
  return std::string(text) + (path.empty() ? "" : "                     " + path) + "\n";
}

class FakeProc {
 public:
  [[nodiscard]] std::string path() const { return directory_.path().string(); }

  /// Adds a process, or updates it.
  void put(const FakeProcess& process) const {
    const std::string folder = std::to_string(process.pid) + "/";
    directory_.write(folder + "stat", stat_line(process));
    directory_.write(folder + "maps", process.maps);
    directory_.write(folder + "cmdline", process.cmdline);
    directory_.write(folder + "cgroup", process.cgroup);
    directory_.write(folder + "mountinfo", "22 1 8:1 / / rw - ext4 /dev/vda1 rw\n");
    directory_.write(folder + "status", "Name:\t" + process.comm + "\nUmask:\t0022\nUid:\t1\t" +
                                            std::to_string(process.uid) + "\t2\t3\nGid:\t4\t5\t6\t7\nNSpid:\t" +
                                            std::to_string(process.pid) + "\nSigCgt:\t0000000000000000\n");
    const std::filesystem::path link = directory_.path(folder + "exe");
    std::filesystem::remove(link);
    if (!process.executable.empty()) std::filesystem::create_symlink(process.executable, link);
  }
  void remove(std::int32_t pid) const { std::filesystem::remove_all(directory_.path(std::to_string(pid))); }
  [[nodiscard]] const TemporaryDirectory& directory() const { return directory_; }

 private:
  TemporaryDirectory directory_;
};

}  // namespace flamed::test
