// SPDX-License-Identifier: Apache-2.0
#include "archive/files/period_names.h"

#include <dirent.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "base/handle.h"

namespace flamed::archive {
namespace {

constexpr std::string_view kBegin = "history-";
constexpr std::string_view kCoarse = "-10min";
constexpr std::string_view kEnd = ".db";
constexpr std::string_view kUnfinished = ".new";
/// Of SQLite.
constexpr std::string_view kLog = "-wal";
constexpr std::string_view kIndexOfLog = "-shm";
constexpr std::size_t kDigits = 8;

using Directory = Handle<DIR*, ::closedir>;

bool take_end(std::string_view& name, std::string_view end) {
  if (!name.ends_with(end)) return false;
  name.remove_suffix(end.size());
  return true;
}

std::optional<Period> period_of(std::string_view name) {
  if (!name.starts_with(kBegin) || !take_end(name, kEnd)) return std::nullopt;
  Period period;
  period.is_coarse = take_end(name, kCoarse);
  name.remove_prefix(std::min(kBegin.size(), name.size()));
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), period.number);
  if (error != std::errc() || end != name.data() + name.size() || name.size() < kDigits) return std::nullopt;
  return period;
}

}  // namespace

std::string period_path(const std::string& folder, const Period& period) {
  const std::string digits = std::to_string(period.number);
  const std::string zeros(digits.size() < kDigits ? kDigits - digits.size() : 0, '0');
  return folder + "/" + std::string(kBegin) + zeros + digits + std::string(period.is_coarse ? kCoarse : "") +
         std::string(kEnd);
}

std::string unfinished_path(const std::string& folder, std::uint64_t number) {
  return period_path(folder, {number, true}) + std::string(kUnfinished);
}

Result<Periods> list_periods(const std::string& folder) {
  const Directory directory(::opendir(folder.c_str()));
  if (!directory) return Error::from_errno("cannot read " + folder);
  Periods found;
  std::vector<std::pair<Period, std::string>> logs;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): this thread's own directory
  while (const dirent* entry = ::readdir(directory.get())) {
    std::string_view name = entry->d_name;
    if (const auto period = period_of(name)) {
      found.periods.push_back(*period);
    } else if (take_end(name, kUnfinished) && period_of(name)) {
      found.leftovers.push_back(folder + "/" + entry->d_name);
    } else if (take_end(name, kLog) || take_end(name, kIndexOfLog)) {
      if (const auto of = period_of(name)) logs.emplace_back(*of, folder + "/" + entry->d_name);
    }
  }
  std::sort(found.periods.begin(), found.periods.end());
  for (const auto& [period, path] : logs) {
    if (!std::binary_search(found.periods.begin(), found.periods.end(), period)) found.leftovers.push_back(path);
  }
  return found;
}

}  // namespace flamed::archive
