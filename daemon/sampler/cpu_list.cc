// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler/cpu_list.h"

#include <charconv>
#include <string>

namespace flamed::daemon {
namespace {

/// No kernel is built for more (CONFIG_NR_CPUS).
constexpr int kMaxCpu = 65'536;

bool parse_cpu(std::string_view& text, int& cpu) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), cpu);
  if (error != std::errc{} || cpu < 0 || cpu >= kMaxCpu) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

}  // namespace

Result<std::vector<int>> parse_cpu_list(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  const Error malformed("not a list of CPUs: '" + std::string(text) + "'");
  std::vector<int> cpus;
  while (!text.empty()) {
    int first = 0;
    if (!parse_cpu(text, first)) return malformed;
    int last = first;
    if (!text.empty() && text.front() == '-') {
      text.remove_prefix(1);
      if (!parse_cpu(text, last)) return malformed;
    }
    if (last < first || (!cpus.empty() && first <= cpus.back())) return malformed;
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    if (text.empty()) break;
    if (text.front() != ',' || text.size() == 1) return malformed;
    text.remove_prefix(1);
  }
  return cpus;
}

}  // namespace flamed::daemon
