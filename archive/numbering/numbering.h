// SPDX-License-Identifier: Apache-2.0
//
// Numbering: sealed slots of the store as minutes of one session. Gives numbers to what their samples refer to, in the
// order in which it is met. The store reuses its ids: the numbering compares each snapshot with the one before, and
// forgets the numbers of ids that mean something else now.
//
// One thread. Between two minutes it holds views of the snapshot's tables: chunks that the store changes meanwhile are
// kept twice. Besides that it takes 4 bytes for each id of the store, and
// 6 to 10 for each stack of the session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "archive/codec/additions.h"
#include "archive/codec/minute.h"
#include "archive/codec/samples.h"
#include "archive/codec/stack_places.h"
#include "base/identity.h"
#include "store/ring/call_tree.h"
#include "store/ring/process_table.h"
#include "store/ring/slot.h"
#include "store/ring/snapshot.h"
#include "store/ring/snapshot_data.h"
#include "store/ring/thread_table.h"

namespace flamed::archive {

class Numbering {
 public:
  using DescribeModule = std::function<Module(ModuleId)>;
  explicit Numbering(DescribeModule describe) : describe_(std::move(describe)) {}

  /// What a slot adds to the dictionary, and what then refers to it.
  struct Numbered {
    Additions additions;
    Minute minute;
    std::uint32_t first_frame = 0;  ///< the number of the first of `frames`
    std::vector<Frame> frames;      ///< those that are new with this call, as the store has them
  };
  /// The slot is of the snapshot; snapshots and slots come in their order. Both values must be written, or no more of
  /// this session.
  Numbered take(const store::Snapshot& snapshot, const store::Slot& slot, Ending ending = Ending::kOver);
  /// With the additions of the last call.
  [[nodiscard]] const StackPlaces& places() const { return places_; }

  /// Of so many minutes that were taken last, single samples can be asked for.
  static constexpr std::size_t kRemembered = 16;
  /// The single samples of such a minute, as long as memory has it as it was taken. Empty: it has not, or never had.
  [[nodiscard]] std::optional<std::vector<Sample>> samples_of(const store::SealedSlot& sealed) const;

 private:
  /// By id of the store: number + 1; 0: none.
  using Numbers = std::vector<std::uint32_t>;

  /// A minute that was taken.
  struct Taken {
    std::uint32_t sequence = 0;
    std::uint64_t pairs = 0;  ///< a hash of them
  };

  void follow(const store::SnapshotData& snapshot);
  /// True: an id means another process now.
  bool forget_reused_processes(const store::SnapshotData& snapshot);
  void forget_reused_threads(const store::SnapshotData& snapshot, bool has_other_processes);
  void forget_reused_stacks(const store::SnapshotData& snapshot);
  std::uint32_t stack_number(std::uint32_t id);
  std::uint32_t frame_number(std::uint32_t id);
  std::uint32_t module_number(ModuleId id);
  std::uint32_t thread_number(std::uint32_t id);
  std::uint32_t process_number(std::uint32_t id);
  void add_state(std::uint32_t process);

  const DescribeModule describe_;
  store::CallTree::View tree_;
  store::ThreadTable::Records::View thread_records_;
  store::ProcessTable::Records::View process_records_;
  store::GapLog::View gaps_;
  Numbers stacks_, frames_, threads_, processes_;
  std::unordered_map<ModuleId, std::uint32_t> modules_;
  DictionarySize size_;              ///< with additions_
  StackPlaces places_;               ///< likewise
  Additions additions_;              ///< since the last minute that is over
  std::vector<Frame> added_frames_;  ///< since the last call
  bool goes_on_ = false;             ///< the last minute is not over
  std::deque<Taken> taken_;
  std::vector<std::uint32_t> path_;  ///< scratch
};

}  // namespace flamed::archive
