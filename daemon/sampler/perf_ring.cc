// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler/perf_ring.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdint>
#include <ctime>
#include <string>
#include <utility>

#include "daemon/machine/locked_memory.h"
#include "daemon/sampler/perf_event.h"

namespace flamed::daemon {
namespace {

perf_event_attr ring_attributes(const PerfRing::Options& options) {
  perf_event_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_DUMMY;
  attributes.sample_type = PERF_SAMPLE_TIME;
  attributes.read_format = PERF_FORMAT_TOTAL_TIME_RUNNING;
  attributes.sample_id_all = 1;
  attributes.use_clockid = 1;
  attributes.clockid = CLOCK_MONOTONIC;
  attributes.disabled = 1;
  attributes.watermark = 1;
  attributes.wakeup_watermark = static_cast<std::uint32_t>(options.data_bytes / 2);
  if (options.side_band) {
    attributes.mmap = 1;
    attributes.mmap2 = 1;
    attributes.comm = 1;
    attributes.comm_exec = 1;
    attributes.task = 1;
  }
  return attributes;
}

}  // namespace

Result<PerfRing> PerfRing::open(int cpu, const Options& options) {
  Result<Fd> event = open_perf_event(ring_attributes(options), cpu, "perf buffer");
  if (!event) return std::move(event).error();

  const auto page_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  Result<MappedMemory> memory = MappedMemory::map(
      event->get(), page_bytes + options.data_bytes, MappedMemory::Access::kReadAndWrite,
      "the perf buffer of " + std::to_string(options.data_bytes) + " bytes on CPU " + std::to_string(cpu));
  if (!memory) return explain_perf_memory(memory.error());
  // The kernel writes data_head with a release, and reads data_tail with an acquire: see the comment on struct
  // perf_event_mmap_page (linux/perf_event.h).
  auto* control = reinterpret_cast<perf_event_mmap_page*>(memory->data());
  const RecordRing records({memory->data() + page_bytes, options.data_bytes},
                           reinterpret_cast<const std::uint64_t*>(&control->data_head),
                           reinterpret_cast<std::uint64_t*>(&control->data_tail));
  return PerfRing(cpu, std::move(event).value(), std::move(memory).value(), records);
}

PerfRing::PerfRing(int cpu, Fd event, MappedMemory memory, RecordRing records)
    : cpu_(cpu), event_(std::move(event)), memory_(std::move(memory)), records_(std::move(records)) {}

Status PerfRing::enable() {
  if (::ioctl(event_.get(), PERF_EVENT_IOC_ENABLE, 0) != 0) {
    return Error::from_errno("enabling the perf buffer on CPU " + std::to_string(cpu_));
  }
  return {};
}

}  // namespace flamed::daemon
