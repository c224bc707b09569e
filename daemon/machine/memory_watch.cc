// SPDX-License-Identifier: Apache-2.0
#include "daemon/machine/memory_watch.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/file.h"

namespace flamed::daemon {
namespace {

constexpr std::size_t kMostBytes = 64U << 10;
/// In cgroup v1 "no limit" is the largest multiple of a page; no machine has an exbibyte.
constexpr std::uint64_t kNoLimit = 1ULL << 60;

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;  // "max"
  return number;
}

/// From the beginning of an open file, whose content the kernel generates at each read.
std::optional<std::uint64_t> read_number(const Fd& file) {
  std::array<char, 64> text{};
  const ssize_t size = file ? ::pread(file.get(), text.data(), text.size(), 0) : 0;
  return size > 0 ? parse_number({text.data(), static_cast<std::size_t>(size)}) : std::nullopt;
}

Fd open_file(const std::string& path) { return Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)); }

/// Sum of the lines "NAME NUMBER" of memory.stat.
std::uint64_t sum_of(std::string_view stat, const std::array<std::string_view, 2>& names) {
  std::uint64_t sum = 0;
  while (!stat.empty()) {
    const std::size_t end = std::min(stat.find('\n'), stat.size());
    const std::string_view line = stat.substr(0, end);
    stat.remove_prefix(std::min(end + 1, stat.size()));
    const std::size_t blank = line.find(' ');
    if (blank == std::string_view::npos) continue;
    if (std::find(names.begin(), names.end(), line.substr(0, blank)) == names.end()) continue;
    sum += parse_number(line.substr(blank + 1)).value_or(0);
  }
  return sum;
}

bool has_memory_files(const std::string& directory) {
  return ::access((directory + "/memory.current").c_str(), R_OK) == 0 ||
         ::access((directory + "/memory.usage_in_bytes").c_str(), R_OK) == 0;
}

}  // namespace

std::optional<std::string> find_memory_group(std::string_view proc_cgroup, const std::string& root) {
  while (!proc_cgroup.empty()) {
    // hierarchy:controllers:path
    const std::size_t end = std::min(proc_cgroup.find('\n'), proc_cgroup.size());
    const std::string_view line = proc_cgroup.substr(0, end);
    proc_cgroup.remove_prefix(std::min(end + 1, proc_cgroup.size()));
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const bool is_second_version = line.substr(0, first) == "0" && controllers.empty();
    if (!is_second_version && controllers != "memory") continue;
    const std::string mount = is_second_version ? root : root + "/memory";
    // In a container the path may be the host's, while the container's own group is mounted.
    for (const std::string& directory : {mount + std::string(line.substr(second + 1)), mount}) {
      if (has_memory_files(directory)) return directory;
    }
  }
  return std::nullopt;
}

std::optional<std::string> own_memory_group() {
  const Result<std::string> text = read_file("/proc/self/cgroup", kMostBytes);
  return text ? find_memory_group(*text, "/sys/fs/cgroup") : std::nullopt;
}

MemoryWatch::MemoryWatch(const std::optional<std::string>& group) {
  if (!group) return;
  stat_path_ = *group + "/memory.stat";
  used_ = open_file(*group + "/memory.current");
  is_second_version_ = static_cast<bool>(used_);
  if (!is_second_version_) used_ = open_file(*group + "/memory.usage_in_bytes");
  for (const char* name : {"/memory.high", "/memory.max", "/memory.limit_in_bytes"}) {
    if (Fd limit = open_file(*group + name)) limits_.push_back(std::move(limit));
  }
}

std::optional<MemoryWatch::Reading> MemoryWatch::read() const {
  std::uint64_t limit = kNoLimit;
  for (const Fd& file : limits_) limit = std::min(limit, read_number(file).value_or(kNoLimit));
  if (limit == kNoLimit) return std::nullopt;
  const std::optional<std::uint64_t> used = read_number(used_);
  if (!used) return std::nullopt;
  std::uint64_t files = 0;
  // The kernel sums over all CPUs for it: only read if it matters.
  if (*used > limit / 2) {
    const Result<std::string> stat = read_file(stat_path_, kMostBytes);
    if (stat && is_second_version_) files = sum_of(*stat, {"inactive_file", "active_file"});
    if (stat && !is_second_version_) files = sum_of(*stat, {"total_inactive_file", "total_active_file"});
  }
  return Reading{*used - std::min(*used, files), limit};
}

std::size_t MemoryWatch::to_give_back(const Reading& reading) {
  if (reading.used_bytes <= reading.limit_bytes / 16 * 15) return 0;
  return reading.used_bytes - reading.limit_bytes / 8 * 7;
}

}  // namespace flamed::daemon
