// SPDX-License-Identifier: Apache-2.0
//
// ProcessTable: the processes in slots, and the running ones. Writer only, except the views, which are immutable and
// may be used on any thread. Must not outlive its Budget.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/identity.h"
#include "base/keyed_hash.h"
#include "store/containers/budget.h"
#include "store/containers/id_index.h"
#include "store/containers/shared_array.h"
#include "store/containers/shared_value.h"
#include "store/model/process_info.h"

namespace flamed::store {

/// The owner of a thread.
struct Owner {
  std::uint32_t user = kNoUser;
  bool is_hidden = false;  ///< hidden from that user: StackSample::is_hidden

  friend bool operator==(const Owner&, const Owner&) = default;
};

/// A ProcessInfo in 104 bytes: on a host that starts processes all day, a day names hundreds of thousands, and nearly
/// all of them share their strings.
struct ProcessRecord {
  static constexpr std::int64_t kNoTime = std::numeric_limits<std::int64_t>::min();

  /// Properties of processes by cgroup.
  struct Place {
    std::string cgroup, unit, container;
  };

  ProcessId id;
  std::uint32_t owner = kNoUser;  ///< of its last sample; next to the id, since each sample is compared with both
  std::uint32_t uid = kNoUser;
  SharedValue<std::string> comm;        ///< null in an unused place
  SharedValue<std::string> executable;  ///< the others are null if not known
  SharedValue<std::string> command_line;
  SharedValue<Place> place;
  std::uint64_t cgroup_id = 0;
  std::uint64_t parent_start_ticks = 0;
  std::int64_t started_ns = kNoTime;
  std::int64_t ended_ns = kNoTime;
  std::int32_t parent_pid = 0;
  std::uint32_t threads = 0;   ///< its rows in the ThreadTable
  std::uint32_t children = 0;  ///< processes in the table whose parent it is
  bool only_sampled = false;   ///< update() was never called for it
  bool is_hidden = false;      ///< StackSample::is_hidden of its last sample
  bool has_run = false;        ///< one of its samples is of CPU time
  bool has_waited = false;     ///< one of its samples is of waiting time

  [[nodiscard]] bool in_use() const { return static_cast<bool>(comm); }
  /// Its user: from its last sample, else from /proc; kNoUser if not known.
  [[nodiscard]] std::uint32_t user() const { return owner != kNoUser ? owner : uid; }
  [[nodiscard]] ProcessInfo info() const;
};
static_assert(sizeof(ProcessRecord) == 104);

class ProcessTable {
 public:
  using Records = SharedArray<ProcessRecord, 64>;

  explicit ProcessTable(Budget& budget) : budget_(budget), records_(budget), index_(budget) {}
  ~ProcessTable();
  ProcessTable(const ProcessTable&) = delete;
  ProcessTable& operator=(const ProcessTable&) = delete;

  /// For a new thread of the process. `comm` is the thread's name, used for the process until update(). Empty if there
  /// is no room.
  std::optional<std::uint32_t> add_thread(ProcessId id, std::string_view comm, bool main_thread,
                                          std::uint32_t sequence);
  void remove_thread(std::uint32_t process);
  /// To be called for each sample of the process.
  void note_sample(std::uint32_t process, Owner owner, bool is_waiting) {
    const ProcessRecord& known = records_[process];
    if (known.owner == owner.user && known.is_hidden == owner.is_hidden &&
        (is_waiting ? known.has_waited : known.has_run)) {
      return;
    }
    ProcessRecord& record = records_.writable(process);
    record.owner = owner.user;
    record.is_hidden = owner.is_hidden;
    (is_waiting ? record.has_waited : record.has_run) = true;
  }

  /// False if there is no room.
  bool update(const ProcessInfo& info, std::uint32_t sequence);
  /// Records the end of a process that update() was called for. False: it was not, or the process is forgotten.
  bool end(ProcessId id, WallTime ended, std::uint32_t sequence);

  [[nodiscard]] const ProcessRecord& operator[](std::uint32_t process) const { return records_[process]; }

  /// Reclaims processes without threads, once they have ended (or were only known from samples) and `sequence` is two
  /// past their last update: their last samples may still arrive. With `even_running` also running ones. Parents stay
  /// as long as their children, so that a process can be found by any ancestor.
  void sweep(std::uint32_t sequence, bool even_running);

  [[nodiscard]] Records::View view() { return records_.view(); }
  [[nodiscard]] std::size_t size() const { return records_.size(); }

 private:
  using SharedString = SharedValue<std::string>;
  using SharedPlace = SharedValue<ProcessRecord::Place>;

  [[nodiscard]] std::uint32_t find(ProcessId id) const;
  std::optional<std::uint32_t> create(ProcessId id);
  void set_parent(std::uint32_t process, ProcessId parent, std::uint32_t sequence);
  void forget_parent(std::uint32_t process);
  SharedString share(std::string_view text);
  SharedString share_command_line(std::string_view text);
  SharedPlace share_place(const ProcessInfo& info);
  static std::size_t bytes_of(std::string_view text);
  static std::size_t bytes_of(const std::string& key, const ProcessRecord::Place& place);
  void forget_unused_strings();

  Budget& budget_;
  Records records_;
  IdIndex index_;
  std::unordered_map<std::string_view, SharedString, KeyedTextHash> strings_;        ///< keys view into the values
  std::unordered_map<std::string_view, SharedString, KeyedTextHash> command_lines_;  ///< likewise
  std::size_t command_line_bytes_ = 0;
  unsigned sweeps_ = 0;  ///< number of sweeps without effect
  std::unordered_map<std::string, SharedPlace, KeyedTextHash> places_;
};

}  // namespace flamed::store
