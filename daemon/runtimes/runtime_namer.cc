// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtimes/runtime_namer.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/clock.h"

namespace flamed::daemon {
namespace {

/// A reading of less than this did not wait for a file system.
constexpr std::int64_t kStuckNs = kNsPerSecond;

}  // namespace

std::vector<RuntimeNamer::Answer> RuntimeNamer::take_answers() {
  const std::lock_guard lock(mutex_);
  return std::exchange(answers_, {});
}

void RuntimeNamer::run(const std::stop_token& stop) {
  const symbolizer::ReadingFor samples(symbolizer::ReadingPurpose::kSamples);
  while (!stop.stop_requested()) {
    std::optional<Request> request = requests_.pop(stop);
    if (!request) return;
    Result<std::vector<symbolizer::RuntimeAnswer>> names = read(*request);
    std::size_t named = 0;
    if (names) {
      named = static_cast<std::size_t>(std::count_if(names->begin(), names->end(),
                                                     [](const auto& answer) { return !answer.function.name.empty(); }));
    }
    named_ += named;
    unnamed_ += request->codes.size() - named;
    const std::lock_guard lock(mutex_);
    answers_.push_back({std::move(*request), std::move(names)});
  }
}

Result<std::vector<symbolizer::RuntimeAnswer>> RuntimeNamer::read(const Request& request) {
  const auto stuck = stuck_.find(request.user);
  if (stuck != stuck_.end() && stuck->second >= kMostStuck) {
    return Error("memory of processes of its user does not answer", ETIMEDOUT);
  }
  const Result<int> memory = memory_of(request);
  if (!memory && request.copies.empty()) return memory.error();
  const SystemClock clock;
  const MonotonicTime began = clock.monotonic();
  Result<std::vector<symbolizer::RuntimeAnswer>> names = reader_.read_runtime_functions(
      {memory ? *memory : -1, request.user}, request.where, request.codes, request.copies);
  const bool is_slow = clock.monotonic().ns - began.ns >= kStuckNs;
  if (!names && names.error().code() != EAGAIN && is_slow) ++stuck_[request.user];
  return names;
}

Result<int> RuntimeNamer::memory_of(const Request& request) {
  const auto found = open_.find(request.process);
  if (found != open_.end() && found->second.exec_id == request.exec_id) return found->second.file.get();
  Result<Fd> memory = opener_.open_memory(request.process);
  if (!memory) return std::move(memory).error();
  if (found != open_.end()) {
    found->second = {request.exec_id, std::move(memory).value()};
    return found->second.file.get();
  }
  if (opened_.size() >= kMostOpen) {
    open_.erase(opened_.front());
    opened_.pop_front();
  }
  opened_.push_back(request.process);
  return open_.emplace(request.process, Memory{request.exec_id, std::move(memory).value()}).first->second.file.get();
}

}  // namespace flamed::daemon
