// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/process/proc_folder.h"

#include <array>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <system_error>

#include "base/file.h"
#include "symbolizer/process/proc_text.h"

namespace flamed::symbolizer {
namespace {

constexpr std::size_t kStatLimitBytes = 4096;

/// Visits each entry whose name is a number, until `visit(number)` is false.
template <typename Visit>
void visit_numbers(const std::string& folder, Visit&& visit) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::int32_t number = 0;
    const auto [rest, problem] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (problem != std::errc{} || rest != name.data() + name.size()) continue;
    if (!visit(number)) return;
  }
}

}  // namespace

std::string proc_path(const std::string& proc, std::int32_t pid, std::string_view name) {
  std::string path = proc + "/" + std::to_string(pid) + "/";
  path += name;
  return path;
}

std::vector<std::int32_t> running_pids(const std::string& proc) {
  std::vector<std::int32_t> pids;
  visit_numbers(proc, [&](std::int32_t pid) {
    pids.push_back(pid);
    return true;
  });
  return pids;
}

bool is_alive(const std::string& proc, const ProcessId& process) {
  std::array<char, kStatLimitBytes> buffer;
  const std::optional<StatLine> stat = parse_stat(read_once(proc_path(proc, process.pid, "stat"), buffer));
  return stat && stat->start_ticks == process.start_ticks && stat->state != 'Z' && stat->state != 'X';
}

std::optional<std::int32_t> other_thread(const std::string& proc, std::int32_t pid) {
  std::optional<std::int32_t> other;
  visit_numbers(proc_path(proc, pid, "task"), [&](std::int32_t tid) {
    if (tid != pid) other = tid;
    return !other;
  });
  return other;
}

}  // namespace flamed::symbolizer
