// SPDX-License-Identifier: Apache-2.0
//
// Past: answers from what is on disk. Gives a snapshot of the store the minutes that are only in the archive, as slots
// like its own, so that every query works on both alike. Only those before an orderly end have single samples.
//
// Any thread. A thread that reads the disk holds a lock which neither sampling nor a query of memory takes; another one
// that needs it waits for a second at most.
//
// Dictionaries and minutes that were read stay within a budget of memory for the next query, and all of them go when it
// is used up.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "archive/reading/minute_index.h"
#include "archive/reading/past_names.h"
#include "archive/reading/past_space.h"
#include "store/model/selection.h"
#include "store/ring/snapshot.h"

namespace flamed::archive {

class Past {
 public:
  struct Options {
    std::string boot_id;     ///< whose processes the snapshots have
    std::int64_t run = 0;    ///< PeriodFile::Session::run of this process
    bool has_kernel = true;  ///< frames of that boot's kernel can be named; otherwise as they were called
    /// Whether what is at an address of that kernel is there until the next boot; otherwise it is named as it was
    /// called. Null: all of it is.
    std::function<bool(std::uint64_t address)> stays{};
    std::size_t budget_bytes = std::size_t{64} << 20;
  };
  /// `index`: of the folder as it was a moment ago, if it is being read already.
  Past(std::string folder, Options options, std::future<MinuteIndex> index = {})
      : index_(std::move(folder)), coming_(std::move(index)), options_(std::move(options)) {}
  Past(MinuteIndex index, Options options) : index_(std::move(index)), options_(std::move(options)) {}
  Past(const Past&) = delete;
  Past& operator=(const Past&) = delete;

  /// Looks which minutes there are, so that the first query need not.
  void look();

  /// The snapshot with those minutes of the windows that it does not have. The same snapshot if it has all; with a
  /// warning if some can't be read. A window that begins a year or more before all that is kept, as with from=0,
  /// reaches back for a day. Of a long window minutes are there as sums of ten, as far as `detail` allows it and there
  /// are any, or as stretches where its minutes would have no room; those that memory has as well are left out of it
  /// then.
  [[nodiscard]] store::Snapshot with(const store::Snapshot& recent, std::span<const store::WallWindow> windows,
                                     const store::Detail& detail = {});

  /// Fills the chains of frames for which is_past() is true. They stay null if the snapshot with them is gone.
  void name(std::span<const Frame> frames, std::span<std::shared_ptr<const InlineChain>> chains) const;

  /// While it is held, no database is open for reading. Closing a descriptor of a file drops all locks that the process
  /// has on it (fcntl(2)), so nobody may open a database besides SQLite while SQLite has it open.
  [[nodiscard]] std::unique_lock<std::timed_mutex> pause() { return std::unique_lock(mutex_); }

  /// There are other databases now: the next query looks for them again. Only while it's paused.
  void look_again() { has_looked_ = false; }

  /// Why something could not be read when it was needed last, a sentence for each cause; empty: everything could, or it
  /// was never needed. Damaged databases and such of another version are not among them. Does not wait for the disk.
  [[nodiscard]] std::vector<std::string> problems() const;

  /// Memory that is held for the next query.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  /// Of what is to be read, in the order of writing: a minute, or sums of one session.
  struct Part {
    const MinuteIndex::Row* minute = nullptr;
    std::vector<const MinuteIndex::Sum*> sums{};
  };
  struct Plan {
    std::vector<Part> wanted;
    std::vector<const MinuteIndex::Row*> before;  ///< the last minute before each window
    MinuteIndex::Prefer prefer = MinuteIndex::Prefer::kMinutes;
    bool has_sums = false;
    PastSpace::Processes processes = PastSpace::Processes::kTogether;
  };

  store::Snapshot read(const store::Snapshot& recent, std::span<const store::WallWindow> windows,
                       const store::Detail& detail);
  [[nodiscard]] bool has(const Part& part, PastSpace::Processes processes) const;
  /// Of those of the plan's parts that are in memory, from the newest on.
  [[nodiscard]] std::size_t newest_bytes(const Plan& plan) const;
  /// Whether the plan's minutes have no room even packed. Then what other questions have read goes first.
  [[nodiscard]] bool is_beyond_budget(const Plan& plan) const;
  Status load(const Part& part, PastSpace::Processes processes);
  Status refresh();
  void note_files(const Status& looked);
  void note_sums(const Part& part, PastSpace::Processes processes, const Error& error);
  void note_minute(const MinuteIndex::Row& row, const Status& loaded);
  [[nodiscard]] Plan plan(const store::SnapshotData& recent, std::span<const store::WallWindow> windows,
                          const store::Detail& detail) const;
  [[nodiscard]] std::vector<const MinuteIndex::Sum*> sums_in(const store::SnapshotData& recent,
                                                             std::span<const store::WallWindow> windows) const;
  /// Whether the minutes of the windows would take more memory than may be used.
  [[nodiscard]] bool are_too_many(const store::SnapshotData& recent, std::span<const store::WallWindow> windows) const;
  [[nodiscard]] bool is_in(const store::SnapshotData& recent, const MinuteIndex::Row& row) const;
  [[nodiscard]] bool knows_all_before(const store::SnapshotData& recent) const;
  void begin_space(const store::SnapshotData& recent);
  /// `began`: when this run's first minute did, if there is one.
  void add_restarts(std::optional<WallTime> began, std::vector<store::Gap>& gaps) const;

  std::timed_mutex mutex_;  ///< guards the members below
  MinuteIndex index_;
  std::future<MinuteIndex> coming_;  ///< takes the place of index_, unless it has
  bool has_looked_ = false;
  bool is_filled_ = false;  ///< something had no room in space_: asked again, a question gets as much as before
  const Options options_;
  std::unique_ptr<PastSpace> space_;  ///< null: nothing was read yet
  /// A session's sums from one on, by its id: each needs the dictionary of those before it. Minutes answer instead.
  struct UnreadableSums {
    std::int64_t from = 0;
    bool is_damaged = false;  ///< otherwise they are tried again with the next query
  };
  std::map<MinuteIndex::SessionKey, UnreadableSums> unreadable_sums_;
  std::atomic<std::size_t> bytes_ = 0;

  mutable std::mutex problems_mutex_;  ///< guards the two below; not held while the disk is read
  std::vector<std::string> file_problems_;
  std::map<std::pair<MinuteIndex::SessionKey, std::int64_t>, std::string> minute_problems_;
  /// Since when somebody reads; the clock's epoch: nobody does.
  std::atomic<std::chrono::steady_clock::time_point> reading_since_{};

  mutable std::mutex names_mutex_;  ///< guards names_
  std::vector<std::weak_ptr<PastNames>> names_;
};

}  // namespace flamed::archive
