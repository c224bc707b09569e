// SPDX-License-Identifier: Apache-2.0
#include "daemon/daemon_sources.h"

#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "daemon/version.h"
#include "store/query/query.h"
#include "symbolizer/model/file_identity.h"

namespace flamed::daemon {
namespace {

/// Answers have all samples older than this.
constexpr std::int64_t kFreshNs = kNsPerSecond;
/// If ingest is behind, answers have only the samples that it has stored after this wait.
constexpr std::chrono::milliseconds kLongestAwait{200};
/// The same for the stacks of an exact measurement, for which somebody has waited for seconds.
constexpr std::chrono::milliseconds kLongestStacksAwait{2000};
/// A process's start is known to 10 ms, by a wall clock that may have been set since.
constexpr std::int64_t kRoughStartNs = kNsPerSecond;

}  // namespace

void DaemonSources::await_samples() const {
  parts_.stored.await({parts_.clock.monotonic().ns - kFreshNs}, kLongestAwait);
}

store::Snapshot DaemonSources::await_snapshot() const {
  await_samples();
  return parts_.store.snapshot();
}

store::Snapshot DaemonSources::with_history(const store::Snapshot& snapshot, std::span<const store::WallWindow> windows,
                                            const store::Detail& detail) const {
  return parts_.history == nullptr ? snapshot : parts_.history->past().with(snapshot, windows, detail);
}

/// The revision after await_samples(): otherwise a client's own drain would make its answer look old.
std::uint64_t DaemonSources::await_revision() const {
  await_samples();
  return parts_.store.revision();
}

std::string DaemonSources::version() const { return kVersion; }

SourceFile DaemonSources::source_file(const SourceQuestion& question) {
  symbolizer::SourceRequest request{question.process, question.file, question.viewer, question.groups};
  if (request.groups.size() > symbolizer::kMostSourceGroups) request.groups.resize(symbolizer::kMostSourceGroups);
  const Result<symbolizer::SourceCopy> copied = parts_.opener.copy_source(request);
  if (!copied) return {copied.error().message()};
  Result<std::string> text = read_fd(copied->text.get(), symbolizer::kMostSourceBytes);
  if (!text) return {text.error().message()};
  const symbolizer::ModulePtr module = parts_.modules.find(question.code);
  std::optional<std::int64_t> made_ns;
  if (module != nullptr && module->file) {
    if (const auto identity = symbolizer::identity_of(module->file.get())) made_ns = identity->version.modified_ns;
  } else if (question.started) {
    made_ns = question.started->ns + kRoughStartNs;
  }
  return {{}, std::move(text).value(), made_ns && copied->modified_ns > *made_ns};
}

std::optional<std::uint32_t> DaemonSources::user_of(std::int32_t pid) const {
  struct stat status {};
  // The directory's owner is the process's effective user even if the process is not dumpable; only the files in it
  // belong to root then (task_dump_owner()).
  if (pid <= 0 || ::stat(("/proc/" + std::to_string(pid)).c_str(), &status) != 0) return std::nullopt;
  return status.st_uid;
}

std::optional<api::OffCpuRefusal> DaemonSources::begin_off_cpu(const api::OffCpuRequest& request) {
  using Why = api::OffCpuRefusal::Why;
  const Status begun = parts_.off_cpu.begin({request.processes, request.length_ns, request.asked, request.is_limited,
                                             request.with_wakers, request.only_user});
  if (begun) return std::nullopt;
  return api::OffCpuRefusal{begun.error().code() == EBUSY ? Why::kBusy : Why::kUnavailable, begun.error().message(), 0};
}

std::optional<api::OffCpuAnswer> DaemonSources::take_off_cpu(WallTime asked) {
  const std::optional<OffCpuCapture::Outcome> outcome = parts_.off_cpu.take_outcome(asked);
  if (!outcome) return std::nullopt;
  parts_.stored.await(parts_.clock.monotonic(), kLongestStacksAwait);
  store::Selection selection;
  for (const std::int32_t process : outcome->processes) selection.processes.push_back({process, {}});
  const auto processes =
      store::selected_processes(parts_.store.snapshot(), selection, OffCpuCapture::kMostProcessesKnown);
  std::vector<std::string> wakers;
  store::Snapshot snapshot = parts_.off_cpu_intake.take_snapshot(*outcome, processes, parts_.clock, wakers);
  const std::int64_t offset_ns = parts_.clock.wall_offset_ns();
  return api::OffCpuAnswer{std::move(snapshot),
                           {{outcome->began.ns + offset_ns}, {outcome->ended.ns + offset_ns}},
                           outcome->warnings,
                           std::move(wakers)};
}

}  // namespace flamed::daemon
