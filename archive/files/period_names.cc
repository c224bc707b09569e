// SPDX-License-Identifier: Apache-2.0
#include "archive/files/period_names.h"

#include <dirent.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "base/handle.h"

namespace flamed::archive {
namespace {

constexpr std::string_view kBegin = "history-";
constexpr std::string_view kEnd = ".db";
constexpr std::size_t kDigits = 8;

using Directory = Handle<DIR*, ::closedir>;

std::optional<std::uint64_t> number_of(std::string_view name) {
  if (name.size() < kBegin.size() + kEnd.size() || name.substr(0, kBegin.size()) != kBegin) return std::nullopt;
  name.remove_prefix(kBegin.size());
  if (name.substr(name.size() - kEnd.size()) != kEnd) return std::nullopt;
  name.remove_suffix(kEnd.size());
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size() || name.size() < kDigits) return std::nullopt;
  return number;
}

}  // namespace

std::string period_path(const std::string& folder, std::uint64_t number) {
  const std::string digits = std::to_string(number);
  const std::string zeros(digits.size() < kDigits ? kDigits - digits.size() : 0, '0');
  return folder + "/" + std::string(kBegin) + zeros + digits + std::string(kEnd);
}

Result<std::vector<std::uint64_t>> list_periods(const std::string& folder) {
  const Directory directory(::opendir(folder.c_str()));
  if (!directory) return Error::from_errno("cannot read " + folder);
  std::vector<std::uint64_t> numbers;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): this thread's own directory
  while (const dirent* entry = ::readdir(directory.get())) {
    if (const auto number = number_of(entry->d_name)) numbers.push_back(*number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace flamed::archive
