// SPDX-License-Identifier: Apache-2.0
//
// DebianPackages: which package installed a file of this host, by dpkg's lists of files. Any thread.
//
// Only root can write to the lists, so the daemon itself reads them. The first question takes some 50 ms and keeps 16
// bytes for each file outside of /usr/share; they are read again after packages were installed.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace flamed::symbolizer {

class DebianPackages {
 public:
  explicit DebianPackages(std::string folder = "/var/lib/dpkg/info") : folder_(std::move(folder)) {}

  /// The package's name, without its architecture. Empty: no package has the file, or this is no Debian.
  [[nodiscard]] std::string owner_of(std::string_view path);

 private:
  struct File {
    std::uint64_t path;  ///< keyed_hash() of it
    std::uint32_t package;
  };
  void read_lists_locked();
  void read_list_locked(std::string_view list);
  [[nodiscard]] std::string find_locked(std::string_view path) const;

  const std::string folder_;

  std::mutex mutex_;             ///< guards the members below
  std::int64_t changed_ns_ = 0;  ///< when the folder had last changed before it was read; 0: not read
  std::vector<File> files_;      ///< by path
  std::vector<std::string> packages_;
};

}  // namespace flamed::symbolizer
