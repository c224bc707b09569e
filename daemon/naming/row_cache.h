// SPDX-License-Identifier: Apache-2.0
//
// RowCache: keeps unwind rows in a folder, so that a restarted daemon need not build them again. A file of rows is
// named after the identity of the module's file; the ELF worker checks that it belongs to the module's content.
//
// Modules on a mount without a device of its own (btrfs, overlayfs, tmpfs) are known again until the next boot.
//
// Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/clock.h"
#include "base/handle.h"
#include "base/result.h"
#include "symbolizer/model/file_identity.h"
#include "symbolizer/model/sourced_rows.h"

namespace flamed::daemon {

class RowCache {
 public:
  struct Options {
    std::uint64_t max_bytes = std::uint64_t{256} << 20;
    /// A machine that starts containers all day must not wear out its disk.
    std::uint64_t max_bytes_an_hour = std::uint64_t{256} << 20;
    std::string boot_id = "/proc/sys/kernel/random/boot_id";
  };
  /// Creates `folder`, but not its parents. An Error says why nothing can be kept there.
  static Result<std::unique_ptr<RowCache>> open(const std::string& folder, const Clock& clock, const Options& options);

  /// What was kept for the file, as an argument for ModuleReader::read_unwind_rows(). No descriptor: nothing.
  [[nodiscard]] Fd find(const symbolizer::FileIdentity& file);

  /// Replaces what is kept for the file. Files that were not used for the longest time make room. A full or failing
  /// disk is logged once.
  void keep(const symbolizer::FileIdentity& file, const symbolizer::SourcedRows& rows);

  struct Stats {
    std::size_t files = 0;
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] Stats stats() const;

 private:
  struct Entry {
    std::uint64_t bytes = 0;
    std::int64_t used_ns = 0;  ///< by the wall clock
  };

  RowCache(Fd folder, std::string boot, const Clock& clock, const Options& options)
      : folder_(std::move(folder)), boot_(std::move(boot)), clock_(clock), options_(options) {}

  void read_folder(const std::string& path);
  [[nodiscard]] std::string name_of(const symbolizer::FileIdentity& file) const;
  [[nodiscard]] bool may_write(std::uint64_t bytes);
  void make_room(std::uint64_t bytes);
  void remove(const std::string& name);

  const Fd folder_;
  const std::string boot_;  ///< this boot's id
  const Clock& clock_;
  const Options options_;

  mutable std::mutex mutex_;                        ///< guards the members below
  std::unordered_map<std::string, Entry> entries_;  ///< by name
  std::uint64_t bytes_ = 0;
  MonotonicTime hour_began_{};
  std::uint64_t written_in_hour_ = 0;
  bool has_complained_ = false;
};

}  // namespace flamed::daemon
