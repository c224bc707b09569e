// SPDX-License-Identifier: Apache-2.0
#include "daemon/reader.h"

#include <utility>

namespace flamed::daemon {
namespace {

constexpr int kDrainPeriodMs = 1000;

}  // namespace

Reader::Reader(Sampler& sampler, BatchQueues& queues, const Clock& clock)
    : sampler_(sampler), queues_(queues), clock_(clock), last_drain_ns_(clock.monotonic().ns) {}

void Reader::run(const std::stop_token& stop) {
  const std::stop_callback wake(stop, [this] { sampler_.wake(); });
  while (!stop.stop_requested()) {
    sampler_.wait(kDrainPeriodMs);
    drain_once();
    sampler_.check_cpus();
  }
  sampler_.stop();
  drain_once();
}

void Reader::drain_once() {
  if (batch_ == nullptr) {
    batch_ = queues_.empty.try_pop().value_or(nullptr);
    if (batch_ == nullptr) batch_ = std::make_unique<EventBatch>();
    sampler_.drain(*batch_);
  }
  // A refused batch is kept and offered again; until then the rings are left alone.
  if (queues_.full.try_push(std::move(batch_))) batch_ = nullptr;
  last_drain_ns_ = clock_.monotonic().ns;
}

}  // namespace flamed::daemon
