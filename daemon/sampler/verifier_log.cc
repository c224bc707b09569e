// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler/verifier_log.h"

#include <algorithm>
#include <array>
#include <vector>

namespace flamed::daemon {
namespace {

/// The verifier's lines after its reason (print_verification_stats() in kernel/bpf/verifier.c).
bool is_statistics(std::string_view line) {
  constexpr std::array<std::string_view, 3> kBegin{"processed ", "verification time ", "stack depth "};
  return std::any_of(kBegin.begin(), kBegin.end(), [&](std::string_view begin) { return line.starts_with(begin); });
}

/// "18: (7b) *(u64 *)(r0 +8) = r1"
bool is_instruction(std::string_view line) {
  const std::size_t digits = line.find_first_not_of("0123456789");
  return digits != 0 && digits != std::string_view::npos && line.substr(digits).starts_with(": (");
}

std::string_view without_last_newline(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  return text;
}

/// `text` has no newline at its end.
std::string_view last_lines(std::string_view text, std::size_t most) {
  std::size_t at = text.size();
  for (std::size_t i = 0; i < most; ++i) {
    if (at == 0) return text;
    at = text.rfind('\n', at - 1);
    if (at == std::string_view::npos) return text;
  }
  return text.substr(at + 1);
}

std::size_t lines_of(std::string_view text) {
  if (text.empty()) return 0;
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + (text.ends_with('\n') ? 0 : 1);
}

/// " R0_w=map_value(id=0,off=0,ks=4,vs=8,imm=0) R10=fp0", " frame1: R0=...": kernels before 5.17 write such lines
/// before the reason (check_mem_region_access()).
bool is_registers(std::string_view line) { return line.starts_with(" R") || line.starts_with(" frame"); }

}  // namespace

VerifierLog keep_verifier_log(std::string_view program, std::string_view log) {
  VerifierLog kept;
  kept.program = program;
  kept.bytes = log.size();
  kept.lines = lines_of(log);
  std::string_view end = log;
  if (log.size() > VerifierLog::kMostBytes) {
    // From the first whole line on.
    const std::size_t cut = log.size() - VerifierLog::kMostBytes;
    const std::size_t newline = log.find('\n', cut - 1);
    const bool has_whole_line = newline < log.size() - 1;
    end.remove_prefix(has_whole_line ? newline + 1 : cut);
  }
  kept.text = without_last_newline(end);
  kept.cut_lines = kept.lines - lines_of(end);
  return kept;
}

std::string reason(const VerifierLog& log) {
  constexpr std::size_t kMostLines = 2;  // later lines are about states
  std::string_view rest = log.text;
  std::vector<std::string_view> last_first;
  while (!rest.empty()) {
    const std::string_view line = last_lines(rest, 1);
    if (is_instruction(line)) break;
    if (!line.empty() && !is_statistics(line) && !is_registers(line)) last_first.push_back(line);
    rest.remove_suffix(std::min(line.size() + 1, rest.size()));
  }
  std::string reason;
  for (std::size_t i = 0; i < std::min(kMostLines, last_first.size()); ++i) {
    reason += (i == 0 ? "" : ", ") + std::string(last_first[last_first.size() - 1 - i]);
  }
  return reason;
}

std::string describe_end(const VerifierLog& log) {
  const std::string which = log.lines <= VerifierLog::kLastLines
                                ? "its log"
                                : "the last " + std::to_string(VerifierLog::kLastLines) + " of " +
                                      std::to_string(log.lines) +
                                      " lines of its log (--log-level debug logs all of them)";
  return "the kernel's verifier refuses the program " + log.program + ": " + reason(log) + "; " + which + ":\n" +
         std::string(last_lines(log.text, VerifierLog::kLastLines));
}

std::string describe_whole(const VerifierLog& log) {
  std::string text = "the verifier's log of the program " + log.program + ", " + std::to_string(log.lines) +
                     " lines, " + std::to_string(log.bytes) + " bytes";
  if (log.cut_lines != 0) {
    text += ", without the first " + std::to_string(log.cut_lines) + " lines (the last " +
            std::to_string(VerifierLog::kMostBytes) + " bytes are kept)";
  }
  return text + ":\n" + log.text;
}

}  // namespace flamed::daemon
