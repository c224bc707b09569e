// SPDX-License-Identifier: Apache-2.0
//
// VisitShares: which owners are large: they have so many threads, or threads that are so often found in new waits, that
// their visits would slow down everybody's. And which threads all others have: these are in a list, so that they can be
// visited without passing by all threads of the machine. If the list is full, who has most of it is large, too.
//
// Belongs to one thread. No clock, no system calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "bpf/visits.h"

namespace flamed::daemon {

class VisitShares {
 public:
  struct LargeOwner {
    std::uint64_t threads = 0;  ///< as the last round has counted
    MonotonicTime seen{};       ///< all of its threads were visited since then
    MonotonicTime began{};      ///< the rounds in which they are visited once more
  };

  /// A round over all threads begins.
  void begin_round(MonotonicTime now);
  /// The round has ended, and this is the owner's share in it: of each of large(). Returns false if it is large no
  /// more.
  bool end_round(std::uint32_t owner, const flamed_owner_share& share);

  /// False: there are too many already.
  bool make_large(std::uint32_t owner);
  /// A thread has left a record. Returns an owner who is large for that: there is no room for so many threads.
  std::optional<std::uint32_t> visited(std::uint32_t tid, std::uint32_t owner);
  /// A thread has begun. Whose it is will be known at its first visit.
  void started(std::uint32_t tid);
  /// There is no such thread, or it is a large owner's.
  void gone(std::uint32_t tid);

  [[nodiscard]] const std::map<std::uint32_t, LargeOwner>& large() const { return large_; }
  /// The threads of all others, in the order of their tids.
  [[nodiscard]] std::vector<std::uint32_t> tids() const;
  /// Of a turn's time, what visits of these may take. Each owner has the same.
  [[nodiscard]] double share_of_list() const;

 private:
  void forget_owner(std::optional<std::uint32_t> owner);

  std::map<std::uint32_t, std::optional<std::uint32_t>> threads_;  ///< owner by tid; empty: not known yet
  std::size_t unknown_ = 0;                                        ///< of these
  std::unordered_map<std::uint32_t, std::size_t> owners_;          ///< how many of these each has
  std::map<std::uint32_t, LargeOwner> large_;
  MonotonicTime round_began_{};
  MonotonicTime last_began_{};  ///< likewise, of the round before
};

}  // namespace flamed::daemon
