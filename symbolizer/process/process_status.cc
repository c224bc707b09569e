// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/process/process_status.h"

#include <algorithm>
#include <charconv>
#include <vector>

namespace flamed::symbolizer {
namespace {

/// The numbers of the line that begins with `key`, which ends in ':'. Empty if it is missing or has other words.
std::vector<std::uint64_t> numbers_of(std::string_view text, std::string_view key, int base) {
  std::size_t at = 0;
  while (text.substr(at, key.size()) != key) {
    at = text.find('\n', at);
    if (at == std::string_view::npos) return {};
    ++at;
  }
  std::string_view line = text.substr(at + key.size());
  line = line.substr(0, line.find('\n'));
  std::vector<std::uint64_t> numbers;
  for (;;) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (line.empty()) return numbers;
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number, base);
    if (error != std::errc{}) return {};
    numbers.push_back(number);
    line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  }
}

std::optional<ProcessStatus::Ids> ids_of(std::string_view text, std::string_view key) {
  const std::vector<std::uint64_t> numbers = numbers_of(text, key, 10);
  if (numbers.size() != 4) return std::nullopt;
  const auto id = [&](std::size_t i) { return static_cast<std::uint32_t>(numbers[i]); };
  return ProcessStatus::Ids{id(0), id(1), id(2), id(3)};
}

}  // namespace

std::optional<ProcessStatus> parse_process_status(std::string_view text) {
  const std::optional<ProcessStatus::Ids> uid = ids_of(text, "Uid:");
  const std::optional<ProcessStatus::Ids> gid = ids_of(text, "Gid:");
  const std::vector<std::uint64_t> pids = numbers_of(text, "NSpid:", 10);
  const std::vector<std::uint64_t> caught = numbers_of(text, "SigCgt:", 16);
  if (!uid || !gid || pids.empty() || caught.size() != 1) return std::nullopt;
  ProcessStatus status{*uid, *gid, static_cast<std::int32_t>(pids.back()), caught.front()};
  for (const std::uint64_t group : numbers_of(text, "Groups:", 10)) {
    status.groups.push_back(static_cast<std::uint32_t>(group));
  }
  const std::vector<std::uint64_t> capabilities = numbers_of(text, "CapPrm:", 16);
  status.capabilities = capabilities.size() == 1 ? capabilities.front() : ~std::uint64_t{0};
  return status;
}

}  // namespace flamed::symbolizer
