// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtimes/hotspot_namer.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "symbolizer/model/reading_purpose.h"

namespace flamed::daemon {

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
    if (!names) {
      const std::int64_t took_ns = clock.monotonic().ns - began.ns;
      jvms_.memories().note_failure(request->jvm.owner, names.error(), took_ns);
    }
    const std::lock_guard lock(mutex_);
    answers_.push_back({std::move(*request), began, std::move(names)});
  }
}

Result<symbolizer::HotSpotNames> HotSpotNamer::read(const Request& request) {
  const Result<std::shared_ptr<const OpenJvms::Jvm>> jvm = jvms_.open(request.jvm);
  if (!jvm) return jvm.error();
  return reader_.read_hotspot_names({(*jvm)->memory->get(), request.jvm.owner.user}, (*jvm)->layout, (*jvm)->base,
                                    request.question);
}

}  // namespace flamed::daemon
