// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtimes/runtime_namer.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/handle.h"
#include "symbolizer/model/reading_purpose.h"

namespace flamed::daemon {

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
  const Result<std::shared_ptr<const Fd>> memory = memories_.open(request.owner);
  if (!memory && (request.copies.empty() || memories_.is_stuck(request.owner.user))) return memory.error();
  const SystemClock clock;
  const MonotonicTime began = clock.monotonic();
  Result<std::vector<symbolizer::RuntimeAnswer>> names = reader_.read_runtime_functions(
      {memory ? (*memory)->get() : -1, request.owner.user}, request.where, request.codes, request.copies);
  if (!names) memories_.note_failure(request.owner, names.error(), clock.monotonic().ns - began.ns);
  return names;
}

}  // namespace flamed::daemon
