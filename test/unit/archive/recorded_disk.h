// SPDX-License-Identifier: Apache-2.0
//
// RecordedDisk: what SQLite does to its files, and what a power cut would have left of it. A VFS between SQLite and the
// real one (https://www.sqlite.org/vfs.html); one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace flamed::archive::test {

class RecordedDisk {
 public:
  /// Of each file, which is known by its name without folders.
  struct Step {
    enum class Kind : std::uint8_t { kWrite, kTruncate, kSync, kDelete };
    Kind kind = Kind::kSync;
    std::string file;
    std::size_t at = 0;  ///< of kWrite: the place; of kTruncate: the size
    std::string bytes;
  };

  /// All databases that are opened from now on, as long as it lives.
  RecordedDisk();
  ~RecordedDisk();
  RecordedDisk(const RecordedDisk&) = delete;
  RecordedDisk& operator=(const RecordedDisk&) = delete;

  [[nodiscard]] const std::vector<Step>& steps() const { return steps_; }

  /// What happens to a step that was not synced before the power went.
  enum class Unsynced : std::uint8_t {
    kDone,     ///< it reached the disk: as if the process alone had been killed
    kLost,     ///< it did not
    kAnyOfIt,  ///< it did or did not, whatever came before or after; of a write perhaps only some sectors did
  };
  /// Puts the files into the folder as they are after a power cut before step `count`.
  static void cut_power(const std::vector<Step>& steps, std::size_t count, Unsynced unsynced, std::mt19937& random,
                        const std::string& folder);

  void record(Step step) { steps_.push_back(std::move(step)); }

 private:
  std::vector<Step> steps_;
};

}  // namespace flamed::archive::test
