// SPDX-License-Identifier: Apache-2.0
//
// WaitProgram: bpf/waits/waits.bpf.c loaded into the kernel. Each turn() visits threads of this host, in the order of
// their tids, from where the last one ended; threads that are in another wait than at their last visit leave a record.
// Each owner may have a share of a round, and threads may be visited by a list instead.
//
// Belongs to the thread that makes the turns, except records(), which belongs to the reader.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>

#include "base/clock.h"
#include "base/handle.h"
#include "base/result.h"
#include "bpf/visits.h"
#include "daemon/sampler/record_ring.h"

struct bpf_link;

namespace flamed::daemon {

class WaitProgram {
 public:
  struct Options {
    bool with_shares = true;  ///< Limits::allowance_ns has an effect
    bool with_list = true;    ///< set_list(), if the kernel has what it needs
  };
  static Result<WaitProgram> load(const Options& options);
  static Result<WaitProgram> load() { return load({}); }
  WaitProgram(WaitProgram&&) noexcept;
  ~WaitProgram();

  enum class Turn : std::uint8_t {
    kPaused,  ///< its time or its stacks are used up, or the ring of records has no more room
    kEnded,   ///< after the last thread: the next turn begins with the first one
  };
  struct Limits {
    std::int64_t longest_ns = 0;  ///< from the first visit on; one is made in any case
    /// The turn ends with so many threads whose stacks are to be read at once; not 0.
    std::uint32_t new_stacks = std::numeric_limits<std::uint32_t>::max();
    /// So many of those that have waited for long may have theirs read.
    std::uint32_t old_stacks = std::numeric_limits<std::uint32_t>::max();
    bool without_own = false;  ///< leave out the threads of this process and its children
    std::int64_t allowance_ns = std::numeric_limits<std::int64_t>::max();  ///< of each owner, in a round
    bool counts_owners = false;  ///< how many threads they have; owners with very many are large
  };
  Result<Turn> turn(const Limits& limits);

  /// A round over the threads of a list instead, between the turns of the others. Begins with set_list().
  Result<Turn> turn_of_list(const Limits& limits);
  /// Since 6.2.
  [[nodiscard]] bool can_visit_list() const;
  /// At most FLAMED_MOST_LISTED.
  void set_list(std::span<const std::uint32_t> tids);
  /// In the same places. Those that are gone have the tid 0.
  [[nodiscard]] std::span<const flamed_listed_thread> list() const;

  /// Owners that the last turn has found to be large.
  [[nodiscard]] std::span<const std::uint32_t> new_large() const;
  /// A large owner's threads are not visited by the list.
  void set_large(std::uint32_t owner, bool is_large);
  /// In the round that has ended last, or that is going on.
  [[nodiscard]] flamed_owner_share share(std::uint32_t owner) const;
  /// The stack of the wait that this thread is in is read later, again.
  void read_again(std::uint32_t tid);

  /// Visits, to be read by read_head() and parse_visit().
  [[nodiscard]] RecordRing& records();
  /// Since it was loaded.
  [[nodiscard]] flamed_visit_counts counts() const;

 private:
  struct Loaded;
  static Result<WaitProgram> load_once(const Options& options, bool is_last);
  Result<Turn> read(Fd& round, const bpf_link* link, const Limits& limits);
  explicit WaitProgram(std::unique_ptr<Loaded> loaded);
  std::unique_ptr<Loaded> loaded_;
};

}  // namespace flamed::daemon
