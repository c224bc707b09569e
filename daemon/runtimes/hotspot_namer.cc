// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtimes/hotspot_namer.h"

#include <cerrno>
#include <utility>

namespace flamed::daemon {
namespace {

/// A reading of less than this did not wait for a file system.
constexpr std::int64_t kStuckNs = kNsPerSecond;

}  // namespace

std::vector<HotSpotNamer::Answer> HotSpotNamer::take_answers() {
  const std::lock_guard lock(mutex_);
  return std::exchange(answers_, {});
}

void HotSpotNamer::run(const std::stop_token& stop) {
  const symbolizer::ReadingFor samples(symbolizer::ReadingPurpose::kSamples);
  const SystemClock clock;
  while (!stop.stop_requested()) {
    std::optional<Request> request = requests_.pop(stop);
    if (!request) return;
    const MonotonicTime began = clock.monotonic();
    Result<symbolizer::HotSpotNames> names = read(*request);
    const bool is_slow = clock.monotonic().ns - began.ns >= kStuckNs;
    if (!names && names.error().code() != EAGAIN && is_slow) ++stuck_[request->user];
    const std::lock_guard lock(mutex_);
    answers_.push_back({std::move(*request), began, std::move(names)});
  }
}

Result<symbolizer::HotSpotNames> HotSpotNamer::read(const Request& request) {
  const auto stuck = stuck_.find(request.user);
  if (stuck != stuck_.end() && stuck->second >= kMostStuck) {
    return Error("memory of processes of its user does not answer", ETIMEDOUT);
  }
  const Result<const Open*> found = open(request);
  if (!found) return found.error();
  const Open& process = **found;
  return reader_.read_hotspot_names({process.memory.get(), request.user}, process.module.layout, process.base,
                                    request.question);
}

Result<const HotSpotNamer::Open*> HotSpotNamer::open(const Request& request) {
  const auto found = open_.find(request.process);
  if (found != open_.end() && found->second.exec_id == request.exec_id) return &found->second;
  const symbolizer::ModulePtr library = modules_.find(request.library);
  if (library == nullptr || !library->file) return Error("its library is not open yet", EAGAIN);
  Result<Fd> memory = opener_.open_memory(request.process);
  if (!memory) return std::move(memory).error();
  Result<std::optional<symbolizer::HotSpotModule>> module =
      reader_.find_hotspot(library->file.get(), {memory->get(), request.user}, request.mapping);
  if (!module) return std::move(module).error();
  if (!*module) return Error("it is not HotSpot");
  const std::uint64_t base = (*module)->base_of(request.mapping.start, request.mapping.file_offset);
  Open process{request.exec_id, std::move(memory).value(), **std::move(module), base};
  if (found != open_.end()) {
    found->second = std::move(process);
    return &found->second;
  }
  if (opened_.size() >= kMostOpen) {
    open_.erase(opened_.front());
    opened_.pop_front();
  }
  opened_.push_back(request.process);
  return &open_.emplace(request.process, std::move(process)).first->second;
}

}  // namespace flamed::daemon
