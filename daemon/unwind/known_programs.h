// SPDX-License-Identifier: Apache-2.0
//
// KnownPrograms: what the kernel program knows of programs by their files, so that it does not have to wait for the
// tables of each process: which ones have a managed runtime, and which ones need no tables at once, because their
// stacks can be walked late.
//
// Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "base/result.h"
#include "bpf/linked_layout.h"
#include "symbolizer/model/file_key.h"

namespace flamed::daemon {

class KnownPrograms {
 public:
  /// The kernel program's table.
  class Table {
   public:
    virtual ~Table() = default;
    virtual Status put_program(const flamed_program_file& file, const flamed_known_program& program) = 0;
    virtual void remove_program(const flamed_program_file& file) = 0;
  };
  /// `table` must outlive it.
  explicit KnownPrograms(Table& table) : table_(table) {}

  /// The file of the program is itself this runtime. Without room in the table only processes that end within a moment
  /// lack their functions.
  void has_runtime(const symbolizer::FileKey& file, const flamed_known_program& runtime);

  /// A process of the program has ended, and its stacks could be walked without tables: from now on the daemon is not
  /// notified of those that have just begun. `needs_notice`: it had a runtime in a library, whose functions have to be
  /// read while the process runs. Then the daemon is always notified.
  void has_ended(const symbolizer::FileKey& file, bool needs_notice);

  /// Half of the table. When there are more, all are met anew: files of programs come and go.
  static constexpr std::size_t kMost = FLAMED_MAX_PROGRAM_FILES / 2;

 private:
  enum class Is : std::uint8_t { kRuntime, kWalkedLate, kNoticed };

  void forget_others();

  Table& table_;
  std::mutex mutex_;
  std::unordered_map<symbolizer::FileKey, Is> known_;
};

}  // namespace flamed::daemon
