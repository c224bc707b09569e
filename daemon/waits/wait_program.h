// SPDX-License-Identifier: Apache-2.0
//
// WaitProgram: bpf/waits.bpf.c loaded into the kernel. Each turn() visits threads of this host, in the order of their
// tids, from where the last one ended; threads that are in another wait than at their last visit leave a record.
//
// Belongs to the thread that makes the turns, except records(), which belongs to the reader.
#pragma once

#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "base/result.h"
#include "bpf/visits.h"
#include "daemon/sampler/record_ring.h"

namespace flamed::daemon {

class WaitProgram {
 public:
  static Result<WaitProgram> load();
  WaitProgram(WaitProgram&&) noexcept;
  ~WaitProgram();

  enum class Turn : std::uint8_t {
    kPaused,  ///< at its end time, or for lack of room in the ring of records
    kEnded,   ///< after the last thread: the next turn begins with the first one
  };
  /// Visits threads until `until`. So many of those that have waited for long may have their stacks read.
  Result<Turn> turn(MonotonicTime until, std::uint32_t old_stacks);
  /// The stack of the wait that this thread is in is read later, again.
  void read_again(std::uint32_t tid);

  /// Visits, to be read by read_head() and parse_visit().
  [[nodiscard]] RecordRing& records();
  /// Since it was loaded.
  [[nodiscard]] flamed_visit_counts counts() const;

 private:
  struct Loaded;
  explicit WaitProgram(std::unique_ptr<Loaded> loaded);
  std::unique_ptr<Loaded> loaded_;
};

}  // namespace flamed::daemon
