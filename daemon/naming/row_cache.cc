// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/row_cache.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/file.h"
#include "symbolizer/ipc/wire.h"
#include "symbolizer/worker/kept_rows.h"

namespace flamed::daemon {
namespace {

constexpr std::string_view kUnfinished = ".new";
constexpr std::size_t kBootIdLimitBytes = 128;
/// One file takes at most 1 in so many bytes of the room.
constexpr std::uint64_t kMostOfAll = 2;
/// Of the file system: the last free bytes are for others.
constexpr std::uint64_t kFreeParts = 20;

std::int64_t ns_of(const timespec& time) { return time.tv_sec * kNsPerSecond + time.tv_nsec; }

/// Does a name look like one of name_of()? Other files in the folder are left alone.
bool is_name(std::string_view name) {
  return std::count(name.begin(), name.end(), '-') >= 4 &&
         name.find_first_not_of("0123456789abcdef-") == std::string_view::npos;
}

Status write_all(const Fd& file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Error::from_errno("write");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<RowCache>> RowCache::open(const std::string& folder, const Clock& clock,
                                                 const Options& options) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return Error::from_errno("cannot create " + folder);
  Fd directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory) return Error::from_errno("cannot open " + folder);
  struct stat status {};
  if (::fstat(directory.get(), &status) != 0) return Error::from_errno("cannot read " + folder);
  if (status.st_uid != ::geteuid() || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Error(folder + " can be written to by others; remove it");
  }
  if (::faccessat(directory.get(), ".", W_OK, AT_EACCESS) != 0) return Error::from_errno("cannot write to " + folder);
  Result<std::string> boot = read_file(options.boot_id, kBootIdLimitBytes);
  if (!boot) return std::move(boot).error();
  std::erase_if(*boot, [](char c) { return c == '-' || c == '\n'; });
  std::unique_ptr<RowCache> cache(new RowCache(std::move(directory), std::move(*boot), clock, options));
  cache->read_folder(folder);
  return cache;
}

void RowCache::read_folder(const std::string& path) {
  std::error_code error;
  std::vector<std::string> useless;
  for (std::filesystem::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    std::string name = at->path().filename().string();
    const bool is_unfinished =
        name.ends_with(kUnfinished) && is_name(std::string_view(name).substr(0, name.size() - kUnfinished.size()));
    struct stat status {};
    if ((!is_unfinished && !is_name(name)) ||
        ::fstatat(folder_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      continue;
    }
    // Names of an earlier boot have its id at their end.
    const bool is_of_other_boot = std::count(name.begin(), name.end(), '-') > 4 && !name.ends_with("-" + boot_);
    if (is_unfinished || is_of_other_boot || !S_ISREG(status.st_mode)) {
      useless.push_back(std::move(name));
      continue;
    }
    const auto bytes = static_cast<std::uint64_t>(status.st_size);
    entries_[std::move(name)] = {bytes, ns_of(status.st_mtim)};
    bytes_ += bytes;
  }
  for (const std::string& name : useless) ::unlinkat(folder_.get(), name.c_str(), 0);
  make_room(0);
}

std::string RowCache::name_of(const symbolizer::FileIdentity& file) const {
  const auto& [major, minor, inode, version] = file;
  const auto& [size, modified_ns, changed_ns] = version;
  std::array<char, 128> name{};
  std::snprintf(name.data(), name.size(), "%" PRIx32 "%06" PRIx32 "-%" PRIx64 "-%" PRIx64 "-%" PRIx64 "-%" PRIx64,
                major, minor, inode, size, static_cast<std::uint64_t>(modified_ns),
                static_cast<std::uint64_t>(changed_ns));
  return major == 0 ? std::string(name.data()) + "-" + boot_ : name.data();
}

Fd RowCache::find(const symbolizer::FileIdentity& file) {
  std::lock_guard lock(mutex_);
  const auto found = entries_.find(name_of(file));
  if (found == entries_.end()) return Fd();
  Fd kept(::openat(folder_.get(), found->first.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  if (!kept || ::fstat(kept.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    remove(found->first);
    return Fd();
  }
  // The next start finds out by this which ones are in use.
  static_cast<void>(::futimens(kept.get(), nullptr));
  found->second.used_ns = clock_.wall().ns;
  return kept;
}

void RowCache::keep(const symbolizer::FileIdentity& file, const symbolizer::SourcedRows& rows) {
  const symbolizer::WireWriter text = symbolizer::kept_rows_of(rows);
  std::lock_guard lock(mutex_);
  const std::string name = name_of(file);
  if (rows.source.ranges.empty() || !may_write(text.size())) return remove(name);
  remove(name);
  make_room(text.size());
  const std::string unfinished = name + std::string(kUnfinished);
  const auto write = [&]() -> Status {
    const Fd to(
        ::openat(folder_.get(), unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!to) return Error::from_errno("open");
    for (const std::span<const std::byte> piece : text.pieces()) {
      if (Status written = write_all(to, piece); !written) return written;
    }
    if (::renameat(folder_.get(), unfinished.c_str(), folder_.get(), name.c_str()) != 0) {
      return Error::from_errno("rename");
    }
    return {};
  };
  written_in_hour_ += text.size();
  if (const Status written = write(); !written) {
    ::unlinkat(folder_.get(), unfinished.c_str(), 0);
    if (!std::exchange(has_complained_, true)) {
      spdlog::warn("unwind rows can't be kept for the next start: {}", written.error().message());
    }
    return;
  }
  entries_[name] = {text.size(), clock_.wall().ns};
  bytes_ += text.size();
}

bool RowCache::may_write(std::uint64_t bytes) {
  constexpr std::int64_t kHourNs = 60 * kNsPerMinute;
  const MonotonicTime now = clock_.monotonic();
  if (now.ns - hour_began_.ns >= kHourNs) {
    hour_began_ = now;
    written_in_hour_ = 0;
  }
  if (bytes > options_.max_bytes / kMostOfAll || written_in_hour_ + bytes > options_.max_bytes_an_hour) return false;
  struct statvfs system {};
  return ::fstatvfs(folder_.get(), &system) == 0 && system.f_bavail * system.f_frsize > bytes &&
         system.f_bavail > system.f_blocks / kFreeParts;
}

void RowCache::make_room(std::uint64_t bytes) {
  while (!entries_.empty() && bytes_ + bytes > options_.max_bytes) {
    const auto oldest = std::min_element(entries_.begin(), entries_.end(), [](const auto& a, const auto& b) {
      return a.second.used_ns < b.second.used_ns;
    });
    remove(std::string(oldest->first));
  }
}

void RowCache::remove(const std::string& name) {
  const auto found = entries_.find(name);
  if (found == entries_.end()) return;
  ::unlinkat(folder_.get(), name.c_str(), 0);
  bytes_ -= found->second.bytes;
  entries_.erase(found);
}

RowCache::Stats RowCache::stats() const {
  std::lock_guard lock(mutex_);
  return {entries_.size(), bytes_};
}

}  // namespace flamed::daemon
