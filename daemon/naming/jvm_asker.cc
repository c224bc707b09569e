// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/jvm_asker.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <iterator>
#include <optional>
#include <utility>

#include "symbolizer/process/jvm_attach.h"

namespace flamed::daemon {
namespace {

constexpr std::int64_t kAskAgainNs = kNsPerMinute;
constexpr std::int64_t kAskAgainAfterFailureNs = 10 * kNsPerMinute;
constexpr std::chrono::seconds kLimit{5};

}  // namespace

bool JvmAsker::want(const ProcessId& jvm) {
  const MonotonicTime now = clock_.monotonic();
  std::lock_guard lock(mutex_);
  // Processes that may be asked again need no entry.
  for (auto it = not_before_.begin(); it != not_before_.end();) {
    it = it->second <= now ? not_before_.erase(it) : std::next(it);
  }
  if (not_before_.count(jvm) != 0 || !queue_.try_push(ProcessId(jvm))) return false;
  not_before_[jvm] = {now.ns + kAskAgainNs};
  return true;
}

void JvmAsker::run(const std::stop_token& stop) {
  while (const std::optional<ProcessId> jvm = queue_.pop(stop)) {
    if (stop.stop_requested()) return;
    ask(*jvm);
  }
}

void JvmAsker::ask(const ProcessId& jvm) {
  ++asked_;
  const Status answered = symbolizer::ask_for_perf_map(jvm, "/proc", kLimit);
  if (!answered) {
    ++failed_;
    spdlog::info("process {} gave no perf map: {}", jvm.pid, answered.error().message());
    std::lock_guard lock(mutex_);
    not_before_[jvm] = {clock_.monotonic().ns + kAskAgainAfterFailureNs};
  }
  modules_.note_jvm(jvm, answered ? std::string() : answered.error().message());
}

}  // namespace flamed::daemon
