// SPDX-License-Identifier: Apache-2.0
//
// PastSpace: minutes from disk as sealed slots, and what they refer to, with ids above those of the store's snapshots.
// It only grows; when it is too large, its owner begins a new one. One thread; what it gives to snapshots never
// changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "archive/codec/additions.h"
#include "archive/codec/minute.h"
#include "archive/codec/stack_places.h"
#include "archive/files/period_reader.h"
#include "archive/reading/minute_index.h"
#include "archive/reading/past_names.h"
#include "base/result.h"
#include "store/containers/budget.h"
#include "store/ring/call_tree.h"
#include "store/ring/process_table.h"
#include "store/ring/slot.h"
#include "store/ring/slot_sums.h"
#include "store/ring/snapshot_data.h"
#include "store/ring/thread_table.h"

namespace flamed::archive {

class PastSpace {
 public:
  /// Slots have sequences from here on, which the store's never reach.
  static constexpr std::uint32_t kFirstSequence = 1U << 31;
  /// Those of sums have others.
  static constexpr std::uint32_t kFirstSum = 3U << 30;
  /// What a space must not share with the one before it.
  struct First {
    std::uint32_t sequence = kFirstSequence;
    std::uint32_t sum = kFirstSum;
    std::uint32_t module = kFirstPastModule;
    std::uint64_t kernel_frame = 1;
  };
  /// The boot of the snapshot's processes.
  struct Boot {
    std::string id;
    bool has_kernel = true;                              ///< frames of its kernel are not named here
    std::function<bool(std::uint64_t address)> stays{};  ///< as in Past::Options
  };
  PastSpace(const store::SnapshotData& recent, Boot boot, First first);
  PastSpace(const PastSpace&) = delete;
  PastSpace& operator=(const PastSpace&) = delete;

  /// Whether the ids of the snapshot are below this space's.
  [[nodiscard]] bool is_above(const store::SnapshotData& recent) const;

  /// Reads the minute, unless it is there already, and of its session's dictionary what is missing.
  Status load(MinuteIndex& index, const MinuteIndex::Row& row);
  [[nodiscard]] bool has(const MinuteIndex::Row& row) const { return slots_.contains({row.session, row.id}); }
  /// Of a minute that was loaded.
  [[nodiscard]] const store::SealedSlot& slot(const MinuteIndex::Row& row) const {
    return slots_.at({row.session, row.id}).slot;
  }

  /// How short-lived processes are in a sum: several of a program together, or each for itself.
  enum class Processes : std::uint8_t { kTogether, kEach };
  /// Reads sums of one session, ascending, unless they are there already. An Error: one of them can't be read.
  Status load(MinuteIndex& index, std::span<const MinuteIndex::Sum* const> sums, Processes processes);
  [[nodiscard]] bool has(const MinuteIndex::Sum& sum, Processes processes) const {
    return sum_slots_.contains({sum.session, sum.id, processes});
  }
  /// Of a sum that was loaded.
  [[nodiscard]] const store::SealedSlot& slot(const MinuteIndex::Sum& sum, Processes processes) const {
    return sum_slots_.at({sum.session, sum.id, processes}).slot;
  }
  /// Whether a slot has processes that stand for several.
  [[nodiscard]] bool has_several() const { return !several_.empty(); }

  /// Adds what the slots refer to. Processes that the snapshot has as well are the same ones.
  void join(store::SnapshotData& data);

  [[nodiscard]] const std::shared_ptr<PastNames>& names() const { return names_; }
  [[nodiscard]] std::size_t bytes() const;
  /// Of them, those of what was loaded: without what queries have added.
  [[nodiscard]] std::size_t loaded_bytes() const { return loaded_bytes_; }
  /// Of a minute or a sum that was loaded, with what it has brought to the dictionary.
  [[nodiscard]] std::size_t bytes_of(const MinuteIndex::Row& row) const {
    return slots_.at({row.session, row.id}).bytes;
  }
  [[nodiscard]] std::size_t bytes_of(const MinuteIndex::Sum& sum, Processes processes) const {
    return sum_slots_.at({sum.session, sum.id, processes}).bytes;
  }
  /// What the minute's dictionary is going to take, unless it was read: as much as the one before.
  [[nodiscard]] std::size_t dictionary_bytes(const MinuteIndex::Row& row) const {
    return dictionaries_.contains(row.session) ? 0 : last_dictionary_;
  }
  /// For the next space.
  [[nodiscard]] First next() const { return next_; }

 private:
  /// By number in the session: the id here.
  using Ids = std::vector<std::uint32_t>;
  struct Dictionary {
    DictionarySize size;
    std::int64_t read_until = 0, names_until = 0;
    Ids modules, frames, stacks, threads, processes;
    std::vector<std::shared_ptr<const std::string>> module_names;
    std::vector<bool> several;             ///< by number of a process: it stands for several
    std::vector<bool> threads_of_several;  ///< by number
    std::uint32_t names = 0;               ///< PastNames::add_dictionary()
    std::uint64_t boot = 0;                ///< 0: this one; otherwise a number that tells boots apart
    std::optional<Error> problem{};
  };
  struct ProcessKey {
    std::uint64_t boot = 0;
    ProcessId id;
    friend bool operator==(const ProcessKey&, const ProcessKey&) = default;
  };
  struct HashOfProcess {
    std::size_t operator()(const ProcessKey& key) const { return std::hash<ProcessId>()(key.id) + key.boot; }
  };
  using ThreadKey = std::tuple<std::uint32_t, std::int32_t, std::string, std::uint32_t, bool>;

  /// A number of several short processes of one program, user and place, in whatever session.
  using Program = std::tuple<std::uint64_t, std::string, std::string, std::string, std::uint32_t, std::uint32_t, bool>;

  Status add_sum(const PeriodReader::SumBlocks& blocks, const MinuteIndex::Sum& row, Processes processes,
                 Dictionary& known);
  struct Loaded {
    store::SealedSlot slot;
    std::size_t bytes = 0;
  };
  void note_bytes(Loaded& loaded, std::size_t before);
  [[nodiscard]] Dictionary dictionary_of(std::uint64_t boot) const;
  /// Of each process that a later minute than its first says more of.
  struct LaterState {
    std::int64_t row = 0;
    ProcessState state;
  };
  using LaterStates = std::unordered_map<ProcessId, LaterState>;
  /// Read once: what this run writes afterwards, its own snapshots know, as long as they have the process.
  Status read_states(PeriodReader& reader, const MinuteIndex::SessionKey& session);
  Dictionary& dictionary_in(std::map<MinuteIndex::SessionKey, Dictionary>& dictionaries, const MinuteIndex& index,
                            const MinuteIndex::SessionKey& session) const;
  /// As the histogram of a slot has them.
  static void add_entries(const Minute& minute, const Dictionary& known, std::vector<store::HistogramEntry>& entries);
  Status read_dictionary(MinuteIndex& index, const MinuteIndex::Row& row, Dictionary& known);
  void add(const Additions& additions, Dictionary& known, MinuteIndex::SessionKey session, std::int64_t minute);
  void add_frame(const FrameAddition& added, Dictionary& known, std::vector<PastNames::NewFrame>& to_name);
  void add_process(const ProcessState& state, Dictionary& known, std::pair<MinuteIndex::SessionKey, std::int64_t> from);
  void add_thread(const ThreadAddition& added, Dictionary& known);
  [[nodiscard]] std::uint32_t owner_of(std::uint32_t user, const Dictionary& known) const;
  [[nodiscard]] store::SharedValue<std::string> shared(std::string_view text);
  void give_sums(store::SnapshotData& data, std::unordered_map<std::uint32_t, std::uint32_t> same);

  const Boot boot_;
  const std::uint32_t first_sequence_, first_sum_;
  First next_;
  store::Budget budget_{SIZE_MAX};
  const std::uint32_t node_base_, frame_base_, thread_base_, process_base_;
  store::CallTree::Nodes nodes_{budget_};
  store::CallTree::Frames frames_{budget_};
  store::ThreadTable::Records threads_{budget_};
  store::ProcessTable::Records processes_{budget_};
  std::uint32_t hidden_ = 0;
  std::shared_ptr<PastNames> names_ = std::make_shared<PastNames>();
  std::map<MinuteIndex::SessionKey, Dictionary> dictionaries_, sum_dictionaries_;
  std::map<MinuteIndex::SessionKey, LaterStates> later_states_;
  /// Of the session whose minutes were read last: minutes are read a session after the other, and places are found anew
  /// sooner than there is room for those of all.
  struct Places {
    MinuteIndex::SessionKey session;
    std::int64_t read_until = 0;
    StackPlaces stacks;
  };
  std::optional<Places> places_;
  std::map<std::pair<MinuteIndex::SessionKey, std::int64_t>, Loaded> slots_;
  std::map<std::tuple<MinuteIndex::SessionKey, std::int64_t, Processes>, Loaded> sum_slots_;
  std::unordered_map<ProcessKey, std::uint32_t, HashOfProcess> process_ids_;
  std::map<Program, std::uint64_t> several_;  ///< ProcessId::start_ticks
  std::unordered_map<std::uint32_t, std::pair<MinuteIndex::SessionKey, std::int64_t>> state_from_;  ///< by process
  std::map<ThreadKey, std::uint32_t> thread_ids_;
  std::unordered_map<std::string, store::SharedValue<std::string>> texts_;
  std::vector<store::Gap> gaps_;
  std::unordered_map<std::uint32_t, std::uint32_t> same_;  ///< of the last snapshot, see join()
  std::shared_ptr<store::SlotSums> sums_, side_sums_;      ///< of snapshots with these; null: there was none
  std::size_t slot_bytes_ = 0, text_bytes_ = 0, later_state_bytes_ = 0, loaded_bytes_ = 0;
  std::size_t last_dictionary_ = 0;  ///< what a session's took when its first minute was read
};

}  // namespace flamed::archive
