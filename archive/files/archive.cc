// SPDX-License-Identifier: Apache-2.0
#include "archive/files/archive.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

namespace flamed::archive {
namespace {

/// What belongs to a database, besides itself.
constexpr std::array<const char*, 2> kBeside = {"-wal", "-shm"};
/// Of a host that does little most of a file is its dictionary, which each file repeats.
constexpr std::int64_t kQuietPeriods = 4;
/// A clock that was wrong for less recorded time than this deletes nothing.
constexpr std::int64_t kBelievedAfterNs = 24 * 60 * kNsPerMinute;

std::uint64_t disk_bytes(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? static_cast<std::uint64_t>(status.st_blocks) * 512 : 0;
}

std::uint64_t bytes_with_log(const std::string& path) {
  std::uint64_t bytes = disk_bytes(path);
  for (const char* beside : kBeside) bytes += disk_bytes(path + beside);
  return bytes;
}

void unlink_with_log(const std::string& path) {
  ::unlink(path.c_str());
  for (const char* beside : kBeside) ::unlink((path + beside).c_str());
}

}  // namespace

std::string Archive::minutes_of(const Entry& entry) const { return period_path(folder_, {entry.number}); }

std::string Archive::stretches_of(const Entry& entry) const { return period_path(folder_, {entry.number, true}); }

std::uint64_t Archive::bytes_of(const Entry& entry) const {
  return bytes_with_log(minutes_of(entry)) + bytes_with_log(stretches_of(entry));
}

Result<bool> Archive::prepare(WallTime start) {
  if (lock_ && was_removed()) {
    file_.reset();
    lock_.reset();
  }
  if (!lock_) {
    if (const Status opened = open_folder(); !opened) return opened.error();
  }
  if (const Status room = check_room(); !room) return room.error();
  const bool is_first = file_ == nullptr;
  if (is_first || would_end_session(start)) {
    file_.reset();
    end_session();
    if (const Status begun = begin_file(is_first, start); !begun) return begun.error();
  }
  if (begins_session_) file_->begin_session({options_.boot_id, options_.run, options_.program, options_.host});
  return begins_session_;
}

/// Somebody has removed the folder, or its newest file: what is written there would be lost.
bool Archive::was_removed() const {
  struct stat here {};
  struct stat held {};
  if (::stat((folder_ + "/lock").c_str(), &here) != 0 || ::fstat(lock_.get(), &held) != 0) return true;
  if (here.st_ino != held.st_ino || here.st_dev != held.st_dev) return true;
  return file_ != nullptr && ::access(minutes_of(entries_.back()).c_str(), F_OK) != 0;
}

Status Archive::open_folder() {
  if (::mkdir(folder_.c_str(), 0750) != 0 && errno != EEXIST) return Error::from_errno("cannot create " + folder_);
  Fd folder(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder || ::fchmod(folder.get(), 0750) != 0) return Error::from_errno("cannot open " + folder_);
  Fd lock(::openat(folder.get(), "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock) return Error::from_errno("cannot open " + folder_ + "/lock");
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return Error("another flamed writes to " + folder_, EBUSY);
    return Error::from_errno("cannot lock " + folder_ + "/lock");
  }
  folder_fd_ = std::move(folder);
  if (Status read = read_folder(); !read) return read;
  lock_ = std::move(lock);
  return {};
}

Status Archive::read_folder() {
  entries_.clear();
  const Result<Periods> found = list_periods(folder_);
  if (!found) return found.error();
  for (const std::string& leftover : found->leftovers) unlink_with_log(leftover);
  for (const Period& period : found->periods) {
    if (entries_.empty() || entries_.back().number != period.number) entries_.push_back({period.number});
    Entry& entry = entries_.back();
    const Result<std::optional<Recorded>> recorded = read_recorded(period_path(folder_, period));
    if (!recorded) {
      entry.problem = recorded.error().message();
    } else if (*recorded) {
      entry.recorded = *recorded;
    }
    if (period.is_coarse) {
      entry.has_stretches = recorded.ok();  // others are made anew, if there are minutes
    } else {
      entry.has_minutes = true;
    }
  }
  for (Entry& entry : entries_) entry.bytes = bytes_of(entry);
  tell();
  return {};
}

/// Opens the newest file if it is whole and the minute belongs to it, or creates one.
Status Archive::begin_file(bool may_continue, WallTime start) {
  const auto may_grow = [&](const Entry& newest) {
    return newest.has_minutes && !newest.has_stretches && newest.bytes <= options_.most_resumed_bytes;
  };
  if (may_continue && !entries_.empty() && may_grow(entries_.back())) {
    Result<std::unique_ptr<PeriodFile>> newest = PeriodFile::open(minutes_of(entries_.back()));
    if (newest) {
      file_ = std::move(*newest);
      entries_.back().recorded = file_->recorded();
      entries_.back().problem.clear();
      if (belongs(start)) return {};
      file_.reset();
    } else if (newest.error().code() == EBADMSG || newest.error().code() == ENOTSUP) {
      entries_.back().problem = newest.error().message();
    } else {
      return std::move(newest).error();
    }
  }
  const Entry next{.number = entries_.empty() ? 1 : entries_.back().number + 1, .has_minutes = true};
  Result<std::unique_ptr<PeriodFile>> created = PeriodFile::open(minutes_of(next));
  if (!created) return std::move(created).error();
  file_ = std::move(*created);
  entries_.push_back(next);
  measure_newest();
  return {};
}

/// Whether the open file's period has the minute. A file takes at most an eighth of the bytes, so that unlinking the
/// oldest does not unlink most.
bool Archive::belongs(WallTime start) const {
  const std::optional<Recorded>& recorded = file_->recorded();
  if (!recorded) return true;
  const std::int64_t since_first_ns = start.ns - recorded->first.ns;
  const std::int64_t period_ns =
      file_->bytes() < options_.quiet_bytes ? kQuietPeriods * options_.period_ns : options_.period_ns;
  return recorded->first <= start && since_first_ns < period_ns && entries_.back().bytes < options_.max_bytes / 8;
}

Status Archive::check_room() const {
  struct statvfs system {};
  if (::fstatvfs(folder_fd_.get(), &system) != 0) return Error::from_errno(folder_);
  if (system.f_bavail < system.f_blocks / options_.least_free) {
    return Error(
        "less than 1/" + std::to_string(options_.least_free) + " of the file system of " + folder_ + " is free",
        ENOSPC);
  }
  return {};
}

Status Archive::append(const Minute& minute, const PeriodFile::Blocks& blocks, Ending ending) {
  const Status appended = file_->append(minute, blocks, ending);
  begins_session_ = !appended;
  if (!appended) {
    Error error = Error(appended.error()).with_context(minutes_of(entries_.back()));
    // A damaged one is not written again: a new one follows it.
    file_.reset();
    return error;
  }
  if (ending == Ending::kOver) ++stats_.minutes;
  measure_newest();
  keep_limits();
  tell();
  return {};
}

Status Archive::add_samples(std::span<const PeriodFile::LaterBlock> blocks) {
  return add_to_session([&] { return file_->add_samples(blocks); });
}

Status Archive::add_states(const PeriodFile::LaterBlock& block) {
  return add_to_session([&] { return file_->add_states(block); });
}

Status Archive::add_sum(const SumBlocks& sum) {
  return add_to_session([&] { return file_->add_sum(sum); });
}

Status Archive::add_to_session(const std::function<Status()>& add) {
  if (file_ == nullptr || begins_session_) return {};
  if (const Status added = add(); !added) {
    return Error(added.error()).with_context(minutes_of(entries_.back()));
  }
  measure_newest();
  tell();
  return {};
}

void Archive::measure_newest() {
  Entry& newest = entries_.back();
  newest.recorded = file_->recorded();
  newest.bytes = bytes_of(newest);
}

void Archive::keep_limits() {
  std::uint64_t bytes = 0;
  for (const Entry& entry : entries_) bytes += entry.bytes;
  // The rest is for what the next minutes add before they are measured.
  const std::uint64_t limit = options_.max_bytes - options_.max_bytes / 16;
  while (entries_.size() > 1 && bytes > limit) {
    bytes -= entries_.front().bytes;
    unlink_oldest();
  }
  const std::optional<WallTime> now = believed_now();
  while (now && entries_.size() > 1) {
    // A file that can't be read is as old as the next one that can.
    const auto known = std::find_if(entries_.begin(), entries_.end() - 1,
                                    [](const Entry& entry) { return entry.recorded.has_value(); });
    if (known == entries_.end() - 1 || now->ns - known->recorded->last.ns < options_.max_age_ns) break;
    unlink_oldest();
  }
}

/// The lowest start of the files with the last day of recorded time.
std::optional<WallTime> Archive::believed_now() const {
  std::optional<WallTime> lowest;
  std::int64_t recorded_ns = 0;
  for (auto entry = entries_.rbegin(); entry != entries_.rend() && recorded_ns < kBelievedAfterNs; ++entry) {
    if (!entry->recorded) continue;
    recorded_ns += entry->recorded->total_ns;
    lowest = std::min(lowest.value_or(entry->recorded->first), entry->recorded->first);
  }
  return lowest;
}

std::optional<std::uint64_t> Archive::next_to_coarsen() const {
  if (!lock_ || entries_.empty() || !check_room()) return std::nullopt;
  const std::optional<WallTime> now = believed_now();
  const auto may_get_some = [&](const Entry& entry) {
    return entry.has_minutes && !entry.has_stretches && !entry.keeps_minutes && entry.recorded &&
           (entry.bytes > options_.quiet_bytes || is_old(entry, now));
  };
  const auto found = std::find_if(entries_.begin(), entries_.end() - 1, may_get_some);
  return found == entries_.end() - 1 ? std::nullopt : std::optional(found->number);
}

Status Archive::add_stretches(std::uint64_t number) {
  const auto entry =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& one) { return one.number == number; });
  const std::string unfinished = unfinished_path(folder_, number);
  const std::string path = period_path(folder_, {number, true});
  // Meanwhile there may have been no room for the oldest one.
  if (entry == entries_.end() || ::rename(unfinished.c_str(), path.c_str()) != 0) {
    Error error = entry == entries_.end() ? Error("its minutes are gone", ENOENT) : Error::from_errno("rename");
    ::unlink(unfinished.c_str());
    return std::move(error).with_context(path);
  }
  // The minutes may go once the name is on the disk.
  if (::fsync(folder_fd_.get()) != 0) return Error::from_errno(folder_);
  entry->has_stretches = true;
  entry->problem.clear();
  entry->bytes = bytes_of(*entry);
  tell();
  return {};
}

void Archive::keep_minutes(std::uint64_t number) {
  for (Entry& entry : entries_) entry.keeps_minutes = entry.keeps_minutes || entry.number == number;
}

bool Archive::is_old(const Entry& entry, std::optional<WallTime> now) const {
  return entry.recorded && now && now->ns - entry.recorded->last.ns >= options_.fine_ns - kBelievedAfterNs;
}

bool Archive::has_old_minutes(const Entry& entry, std::optional<WallTime> now) const {
  return entry.has_minutes && entry.has_stretches && is_old(entry, now);
}

bool Archive::has_old_minutes() const {
  const std::optional<WallTime> now = believed_now();
  return lock_ &&
         std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) { return has_old_minutes(entry, now); });
}

void Archive::unlink_old_minutes() {
  const std::optional<WallTime> now = believed_now();
  for (Entry& entry : entries_) {
    if (!has_old_minutes(entry, now)) continue;
    unlink_with_log(minutes_of(entry));
    entry.has_minutes = false;
    entry.bytes = bytes_of(entry);
  }
  tell();
}

void Archive::unlink_oldest() {
  unlink_with_log(minutes_of(entries_.front()));
  unlink_with_log(stretches_of(entries_.front()));
  entries_.pop_front();
  ++stats_.files_unlinked;
}

void Archive::tell() {
  stats_.files = entries_.size();
  stats_.bytes = 0;
  stats_.oldest.reset();
  stats_.unusable.clear();
  for (const Entry& entry : entries_) {
    stats_.bytes += entry.bytes;
    if (!stats_.oldest && entry.recorded) stats_.oldest = entry.recorded->first;
    if (!entry.problem.empty()) stats_.unusable.push_back(entry.problem);
  }
}

}  // namespace flamed::archive
