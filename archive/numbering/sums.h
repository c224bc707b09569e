// SPDX-License-Identifier: Apache-2.0
//
// Sums: minutes of a session as sums of ten minutes.
//
//   for each minute that is over:
//     if (!sums.takes(minute)) write(sums.finish());
//     sums.add(snapshot, slot, minute, gaps);
//   write(sums.finish());
//
// One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "archive/codec/minute.h"
#include "archive/codec/sum.h"
#include "base/identity.h"
#include "store/model/gap.h"
#include "store/ring/slot.h"
#include "store/ring/snapshot.h"

namespace flamed::archive {

class Sums {
  /// What a stack is summed by: its sides, and how it ended.
  struct Kind {
    bool has_user = false;
    bool has_kernel = false;
    bool is_cut = false;
    std::uint32_t ended = 0;  ///< store::Truncation + 1; 0: whole
    friend auto operator<=>(const Kind&, const Kind&) = default;
  };

 public:
  /// Of the dictionary of a session what sums need.
  class Dictionary {
   public:
    /// Of each minute, in their order.
    void add(const Additions& additions);

   private:
    friend class Sums;
    struct Thread {
      std::uint32_t process = 0;
      std::uint32_t owner = store::kNoUser;
      bool is_hidden = false;
    };
    std::vector<Kind> frames_;                         ///< of a stack that has the frame alone
    std::vector<Kind> stacks_ = std::vector<Kind>(1);  ///< stack 0 has no frames
    std::vector<Thread> threads_;
    std::vector<ProcessState> processes_;  ///< the latest state
  };

  /// Whether the minute goes on with the sum that was begun, or begins one.
  [[nodiscard]] bool takes(const Minute& minute) const;
  /// A slot of the snapshot, as the minute that it became. `gaps`: those that came with it.
  void add(const store::Snapshot& snapshot, const store::Slot& slot, const Minute& minute,
           const std::vector<store::Gap>& gaps);
  /// The same of a minute that is on disk. The dictionary has what was added up to it.
  void add(const Minute& minute, const Dictionary& dictionary, const std::vector<store::Gap>& gaps);
  /// Of the minutes that were added since the last one. Empty: none were.
  std::optional<Sum> finish();

 private:
  struct Owner {
    std::uint32_t user = store::kNoUser;
    bool is_hidden = false;
    friend auto operator<=>(const Owner&, const Owner&) = default;
  };
  using Counts = std::map<std::pair<Owner, Kind>, std::uint64_t>;
  struct Process {
    ProcessState state;  ///< as of its last minute; `number` is not set
    Counts counts;
    std::uint64_t samples = 0;
  };
  /// Gives numbers in one dictionary.
  class Numbers {
   public:
    /// Of a process that is new, or that has changed.
    std::uint32_t process(ProcessState state);
    void add(std::uint32_t process, const Counts& counts, std::vector<Pair>& pairs);
    /// Since the last call.
    Additions take();
    [[nodiscard]] bool knows(const ProcessId& id) const { return processes_.contains(id); }

   private:
    struct Known {
      std::uint32_t number = 0;
      ProcessState state;
    };
    std::uint32_t thread(std::uint32_t process, Owner owner);
    std::uint32_t stack(const Kind& kind);
    std::uint32_t stack_on(std::uint32_t caller, std::uint32_t module, std::uint64_t offset);
    std::uint32_t frame(std::uint32_t module, std::uint64_t offset);

    Additions additions_;
    DictionarySize size_;
    std::unordered_map<ProcessId, Known> processes_;
    std::map<std::pair<std::uint32_t, Owner>, std::uint32_t> threads_;
    std::map<Kind, std::uint32_t> stacks_;
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> frames_;
  };
  /// Program, user and place of short processes.
  using Program = std::tuple<std::string, std::string, std::string, std::uint32_t, std::uint32_t, bool>;

  void begin(const Minute& minute, const std::vector<store::Gap>& gaps);
  [[nodiscard]] bool is_short(const ProcessId& id, const Process& process, std::uint64_t all) const;
  ProcessId several(const Program& program);

  Numbers numbers_;                       ///< of the session
  std::map<Program, ProcessId> several_;  ///< likewise
  std::uint32_t first_ = 0;
  std::optional<Minute> sum_;  ///< without pairs; empty: nothing was added
  std::vector<store::Gap> gaps_;
  std::map<ProcessId, Process> processes_;
};

}  // namespace flamed::archive
