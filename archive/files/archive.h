// SPDX-License-Identifier: Apache-2.0
//
// Archive: a folder with a file for each period. Appends minutes to the newest, puts stretches beside those of the
// others and in the place of old ones, and unlinks the oldest. One thread.
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
    /// A larger file is not written on after a restart, so that it gets stretches: until then its minutes are in no
    /// memory.
    std::uint64_t most_resumed_bytes = std::uint64_t{2} << 20;
    /// Of older minutes only the stretches stay. By what was recorded, a bit later than by the clock.
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
  Status add_samples(std::span<const PeriodFile::LaterBlock> blocks);

  /// Later states of processes of the open session.
  Status add_states(const PeriodFile::LaterBlock& block);

  /// A sum of minutes of the open session.
  Status add_sum(const SumBlocks& sum);

  /// The oldest file that is to get stretches: it is not written any more, and has more than `quiet_bytes` or is old.
  /// Empty: there is none, or no room now.
  [[nodiscard]] std::optional<std::uint64_t> next_to_coarsen() const;
  /// Puts the database at unfinished_path(), which is whole and on the disk, beside the file's minutes.
  Status add_stretches(std::uint64_t number);
  /// The file gets no stretches: something of its minutes can't be read.
  void keep_minutes(std::uint64_t number);
  /// Whether there are minutes that are old, and have stretches.
  [[nodiscard]] bool has_old_minutes() const;
  /// Unlinks them. Meanwhile nobody else in this process may open them.
  void unlink_old_minutes();

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
    std::uint64_t number = 0;
    bool has_minutes = false, has_stretches = false;  ///< one of them, or both
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
  [[nodiscard]] std::string minutes_of(const Entry& entry) const;
  [[nodiscard]] std::string stretches_of(const Entry& entry) const;
  [[nodiscard]] std::uint64_t bytes_of(const Entry& entry) const;
  [[nodiscard]] bool is_old(const Entry& entry, std::optional<WallTime> now) const;
  [[nodiscard]] bool has_old_minutes(const Entry& entry, std::optional<WallTime> now) const;

  const std::string folder_;
  const Options options_;
  Fd folder_fd_, lock_;
  std::deque<Entry> entries_;         ///< ascending; the last one is open if file_ is set
  std::unique_ptr<PeriodFile> file_;  ///< null: to be opened
  bool begins_session_ = true;
  Stats stats_;
};

}  // namespace flamed::archive
