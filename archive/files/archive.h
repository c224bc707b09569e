// SPDX-License-Identifier: Apache-2.0
//
// Archive: a folder with a file for each period. Appends minutes to the newest, puts stretches in the place of old
// minutes, and unlinks the oldest. One thread.
//
//   while (there are minutes) {
//     Result<bool> is_new_session = archive.prepare(start of the minute);
//     if (!is_new_session) ...           // not now, and why; try again later
//     if (*is_new_session) ...           // number from the beginning
//     Status appended = archive.append(minute, blocks);    // or end_session()
//   }
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "archive/codec/minute.h"
#include "archive/codec/sum.h"
#include "archive/files/period_file.h"
#include "archive/files/period_names.h"
#include "base/clock.h"
#include "base/handle.h"
#include "base/result.h"

namespace flamed::archive {

class Archive {
 public:
  struct Options {
    std::uint64_t max_bytes = std::uint64_t{1} << 30;
    std::int64_t max_age_ns = 30 * 24 * 60 * kNsPerMinute;
    /// Of a file. It goes on for four times as long while it has fewer than `quiet_bytes`.
    std::int64_t period_ns = 6 * 60 * kNsPerMinute;
    std::uint64_t quiet_bytes = std::uint64_t{2} << 20;
    /// Older minutes are to be replaced by their stretches. By what was recorded, a bit later than by the clock.
    std::int64_t fine_ns = 2 * 24 * 60 * kNsPerMinute;
    std::string boot_id;
    std::int64_t run = 0;  ///< PeriodFile::Session::run
    std::string program;   ///< name and version
    std::string host;      ///< its name
    /// Nothing is written when less than 1 / `least_free` of the file system is free.
    std::uint64_t least_free = 20;
  };
  /// Creates the folder, but not its parents, with the first prepare().
  Archive(std::string folder, Options options) : folder_(std::move(folder)), options_(std::move(options)) {}
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;

  /// Whether a minute that starts then would end the session that is open, since it belongs to another file.
  [[nodiscard]] bool would_end_session(WallTime start) const {
    return file_ != nullptr && (!belongs(start) || file_->is_held());
  }

  /// Makes a file ready for a minute that starts then. True: the minute begins a session, with an empty dictionary. An
  /// Error says why nothing can be written now.
  Result<bool> prepare(WallTime start);

  /// The minute is on the disk, or an Error says why not; then the next one begins a session.
  Status append(const Minute& minute, const PeriodFile::Blocks& blocks, Ending ending = Ending::kOver);

  /// Single samples of minutes of the open session.
  Status add_samples(std::span<const PeriodFile::SamplesBlock> blocks);

  /// A sum of minutes of the open session.
  Status add_sum(const SumBlocks& sum);

  /// The oldest file whose minutes are to be replaced by their stretches. Empty: there is none, or no room now.
  [[nodiscard]] std::optional<std::uint64_t> next_to_coarsen() const;
  /// Puts the database at unfinished_path(), which is whole and on the disk, in the place of the file's minutes. At any
  /// moment one of them is there. Meanwhile nobody else in this process may open either.
  Status replace(std::uint64_t number);
  /// The minutes stay: something of them can't be read.
  void keep_minutes(std::uint64_t number);

  /// The next minute begins a session: this one was not appended.
  void end_session() { begins_session_ = true; }

  struct Stats {
    std::size_t files = 0;
    std::uint64_t bytes = 0;
    std::uint64_t minutes = 0;          ///< that are over, appended since the start
    std::uint64_t files_unlinked = 0;   ///< since the start
    std::optional<WallTime> oldest;     ///< the first minute of the oldest file that can be read
    std::vector<std::string> unusable;  ///< "history-00000007.db: damaged: ..."
  };
  [[nodiscard]] const Stats& stats() const { return stats_; }

 private:
  struct Entry {
    Period period;
    std::uint64_t bytes = 0;
    std::optional<Recorded> recorded{};  ///< empty: nothing, or it can't be read
    std::string problem{};               ///< why it can't be read
    bool keeps_minutes = false;          ///< see keep_minutes()
  };

  Status add_to_session(const std::function<Status()>& add);
  Status open_folder();
  Status read_folder();
  Status begin_file(bool may_continue, WallTime start);
  [[nodiscard]] bool belongs(WallTime start) const;
  [[nodiscard]] bool was_removed() const;
  [[nodiscard]] Status check_room() const;
  void measure_newest();
  void keep_limits();
  [[nodiscard]] std::optional<WallTime> believed_now() const;
  void unlink_oldest();
  void tell();
  [[nodiscard]] std::string path_of(const Period& period) const;

  const std::string folder_;
  const Options options_;
  Fd folder_fd_, lock_;
  std::deque<Entry> entries_;         ///< ascending; the last one is open if file_ is set
  std::unique_ptr<PeriodFile> file_;  ///< null: to be opened
  bool begins_session_ = true;
  Stats stats_;
};

}  // namespace flamed::archive
