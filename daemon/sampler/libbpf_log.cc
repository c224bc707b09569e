// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler/libbpf_log.h"

#include <bpf/libbpf.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <utility>

namespace flamed::daemon {
namespace {

/// The format with which libbpf 1.0 to 1.7 prints a verifier's log. Its arguments are used directly: the log may have
/// megabytes.
constexpr std::string_view kVerifierLog = "libbpf: prog '%s': -- BEGIN PROG LOAD LOG --\n%s-- END PROG LOAD LOG --\n";
constexpr std::string_view kPrefix = "libbpf: ";
/// Warnings that don't name the cause, or guess at one.
constexpr std::array<std::string_view, 5> kEmptyWords{
    "failed to load object ", "failed to load BPF skeleton ", "Failed to bump RLIMIT_MEMLOCK ",
    "permission error while running as root", "Error in bpf_object__probe_loading()"};

thread_local LibbpfLog* listening = nullptr;

int print(libbpf_print_level level, const char* format, va_list arguments) {
  if (level != LIBBPF_WARN) return 0;
  if (listening == nullptr) return std::vfprintf(stderr, format, arguments);
  listening->capture(format, arguments);
  return 0;
}

}  // namespace

LibbpfLog::LibbpfLog() {
  [[maybe_unused]] static const libbpf_print_fn_t replaced = ::libbpf_set_print(&print);
  listening = this;
}

LibbpfLog::~LibbpfLog() { listening = nullptr; }

void LibbpfLog::capture(const char* format, va_list arguments) {
  if (format == kVerifierLog) {
    const char* const program = va_arg(arguments, const char*);
    const char* const log = va_arg(arguments, const char*);
    refused_ = keep_verifier_log(program, log);
    return;
  }
  std::array<char, 1024> line{};
  const int length = std::vsnprintf(line.data(), line.size(), format, arguments);
  std::string_view words(line.data(), std::min(line.size() - 1, static_cast<std::size_t>(std::max(length, 0))));
  while (words.ends_with('\n')) words.remove_suffix(1);
  if (words.starts_with(kPrefix)) words.remove_prefix(kPrefix.size());
  const bool is_empty = std::any_of(kEmptyWords.begin(), kEmptyWords.end(),
                                    [&](std::string_view begin) { return words.starts_with(begin); });
  if (!is_empty) complaint_ = words;
}

Error LibbpfLog::error(std::string_view what, int code) const {
  if (refused_) {
    return Error(std::string(what) + ": the kernel's verifier refuses the program " + refused_->program + ": " +
                     reason(*refused_),
                 EINVAL);
  }
  Error error = Error::from_errno(what, code);
  return complaint_.empty() ? error : Error(error.message() + "; libbpf says: " + complaint_, code);
}

Status LibbpfLog::load(std::string_view what, Level level, const std::function<int()>& load) {
  complaint_.clear();
  refused_.reset();
  const int code = load();
  if (code == 0) return {};
  if (refused_) {
    if (level == Level::kError) spdlog::error("{}", describe_end(*refused_));
    if (spdlog::should_log(spdlog::level::debug)) spdlog::debug("{}", describe_whole(*refused_));
  }
  return error(what, -code);
}

}  // namespace flamed::daemon
