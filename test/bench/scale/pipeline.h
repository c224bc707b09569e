// SPDX-License-Identifier: Apache-2.0
//
// Pipeline: the daemon's own path of a sample through user space, from the bytes in the perf buffers to the store, with
// a manual clock and the unwind tables in plain memory. Reads nothing from the machine.
#pragma once

#include <fcntl.h>
#include <linux/perf_event.h>

#include <cstring>
#include <ctime>
#include <span>
#include <stop_token>
#include <vector>

#include "base/clock.h"
#include "daemon/flow/ingest.h"
#include "daemon/sampler/event_batch.h"
#include "daemon/unwind/unwind_publisher.h"
#include "store/ring/store.h"
#include "symbolizer/process/module_table.h"
#include "symbolizer/process/process_details.h"
#include "symbolizer/process/process_tracker.h"
#include "test/bench/scale/synthetic_host.h"
#include "test/support/manual_clock.h"
#include "test/unit/daemon/unwind/fake_unwind_maps.h"

namespace flamed::bench {

/// CPU time of this thread, so that the figures hold on a busy machine too.
inline double cpu_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

class Pipeline {
 public:
  struct Took {
    double decode_ns = 0;  ///< from bytes to a batch in the order of time
    double ingest_ns = 0;  ///< from there to the store, with the work once per drain
  };

  /// One drain of the host's rings, at the end of a second.
  Took drain(const std::vector<std::vector<std::byte>>& rings) {
    clock.advance_ns(kNsPerSecond);
    const double begin = cpu_ns();
    batch_.clear();
    for (std::size_t cpu = 0; cpu < rings.size(); ++cpu) {
      const std::span<const std::byte> ring = rings[cpu];
      for (std::size_t at = 0; at < ring.size();) {
        perf_event_header header;
        std::memcpy(&header, ring.data() + at, sizeof(header));
        append(ring.subspan(at, header.size), cpu);
        at += header.size;
      }
    }
    finish_batch();
    const double decoded = cpu_ns();
    ingest.apply(batch_);
    return {decoded - begin, cpu_ns() - decoded};
  }

  /// Reports started processes. Returns the time that it took.
  double enter(const SyntheticHost& host) {
    double took = 0;
    for (std::size_t process = 0; process < host.processes(); ++process) {
      const auto records = host.birth(process, clock.monotonic());
      clock.advance_ns(kNsPerMs);
      const double begin = cpu_ns();
      batch_.clear();
      for (const SyntheticHost::Record& record : records) append(record, 0);
      finish_batch();
      ingest.apply(batch_);
      took += cpu_ns() - begin;
    }
    return took;
  }

  /// Replaces the `modules` thread: every requested file is found.
  void open_modules() {
    std::stop_source stopped;
    stopped.request_stop();
    while (const auto request = modules.next_request(stopped.get_token())) {
      if (request->jit_owner)
        modules.finish_jit(*request->jit_owner, {});
      else
        modules.finish(*request, Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)));
    }
  }

  ManualClock clock{MonotonicTime{1000 * kNsPerSecond}, WallTime{1'767'268'800 * kNsPerSecond}};
  store::Store store{{}, clock, kNsPerSecond / SyntheticHost::kHertz};
  symbolizer::ModuleTable modules{4096, clock};
  symbolizer::ProcessTracker processes{modules, clock, kNoProc};
  test::FakeUnwindMaps maps;
  daemon::UnwindPublisher publisher{maps, 128U << 20, clock};
  symbolizer::ProcessDetails details{symbolizer::CommandLines::kFull, kNoProc, {kNoProc}};
  daemon::Ingest ingest{processes, details, modules, store, clock, {.unwind = &publisher}};

 private:
  static constexpr const char* kNoProc = "/nonexistent";

  void append(std::span<const std::byte> record, std::size_t cpu) {
    daemon::RecordHead head = daemon::read_head(record);
    head.cpu = static_cast<std::uint16_t>(cpu);
    batch_.append(head);
  }
  void finish_batch() {
    batch_.sort_and_split(clock.monotonic(), later_);
    batch_.drained_at = clock.monotonic();
  }

  daemon::EventBatch batch_;
  daemon::EventBatch later_;
};

}  // namespace flamed::bench
