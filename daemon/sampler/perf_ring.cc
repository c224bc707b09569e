// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler/perf_ring.h"

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <ctime>
#include <string>
#include <utility>

#include "daemon/sampler/perf_event.h"

namespace flamed::daemon {
namespace {

perf_event_attr ring_attributes(const PerfRing::Options& options) {
  perf_event_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_BPF_OUTPUT;
  attributes.sample_type = PERF_SAMPLE_RAW | PERF_SAMPLE_TIME;
  attributes.sample_period = 1;
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

perf_event_mmap_page* control(std::byte* memory) { return reinterpret_cast<perf_event_mmap_page*>(memory); }

}  // namespace

Result<PerfRing> PerfRing::open(int cpu, const Options& options) {
  Result<Fd> event = open_perf_event(ring_attributes(options), cpu, "perf buffer");
  if (!event) return std::move(event).error();

  const auto page_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* memory = ::mmap(nullptr, page_bytes + options.data_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, event->get(), 0);
  if (memory == MAP_FAILED) {
    const int code = errno;
    Error error = Error::from_errno(
        "mmap of the perf buffer of " + std::to_string(options.data_bytes) + " bytes on CPU " + std::to_string(cpu),
        code);
    if (code == EPERM) {
      return Error(error.message() + " (locked memory is limited: raise LimitMEMLOCK or kernel.perf_event_mlock_kb)",
                   ENOMEM);
    }
    return error;
  }
  return PerfRing(cpu, std::move(event).value(), static_cast<std::byte*>(memory), page_bytes, options.data_bytes);
}

PerfRing::PerfRing(int cpu, Fd event, std::byte* memory, std::size_t page_bytes, std::size_t data_bytes)
    : cpu_(cpu), event_(std::move(event)), memory_(memory), page_bytes_(page_bytes), data_bytes_(data_bytes) {}

PerfRing::PerfRing(PerfRing&& other) noexcept
    : cpu_(other.cpu_),
      event_(std::move(other.event_)),
      memory_(std::exchange(other.memory_, nullptr)),
      page_bytes_(other.page_bytes_),
      data_bytes_(other.data_bytes_),
      wrapped_(std::move(other.wrapped_)),
      broken_(other.broken_),
      was_full_(other.was_full_) {}

PerfRing& PerfRing::operator=(PerfRing&& other) noexcept {
  if (this == &other) return *this;
  unmap();
  cpu_ = other.cpu_;
  event_ = std::move(other.event_);
  memory_ = std::exchange(other.memory_, nullptr);
  page_bytes_ = other.page_bytes_;
  data_bytes_ = other.data_bytes_;
  wrapped_ = std::move(other.wrapped_);
  broken_ = other.broken_;
  was_full_ = other.was_full_;
  return *this;
}

PerfRing::~PerfRing() { unmap(); }

void PerfRing::unmap() {
  if (memory_ != nullptr) ::munmap(memory_, page_bytes_ + data_bytes_);
  memory_ = nullptr;
}

Status PerfRing::enable() {
  if (::ioctl(event_.get(), PERF_EVENT_IOC_ENABLE, 0) != 0) {
    return Error::from_errno("enabling the perf buffer on CPU " + std::to_string(cpu_));
  }
  return {};
}

// data_head is written by the kernel with a release, data_tail is read by it with an acquire: the contract in the
// comment on struct perf_event_mmap_page (linux/perf_event.h).
std::uint64_t PerfRing::read_head() const { return __atomic_load_n(&control(memory_)->data_head, __ATOMIC_ACQUIRE); }
std::uint64_t PerfRing::read_tail() const { return control(memory_)->data_tail; }
void PerfRing::write_tail(std::uint64_t tail) {
  __atomic_store_n(&control(memory_)->data_tail, tail, __ATOMIC_RELEASE);
}

std::span<const std::byte> PerfRing::record_at(std::uint64_t position, std::uint64_t head) {
  const std::byte* data = memory_ + page_bytes_;
  const std::size_t start = position & (data_bytes_ - 1);

  // Records are multiples of 8 bytes and so is the ring: a header never runs over the end.
  perf_event_header header;
  std::memcpy(&header, data + start, sizeof(header));
  const std::size_t size = header.size;
  if (size < sizeof(header) || size > head - position) return {};

  if (start + size <= data_bytes_) return {data + start, size};
  wrapped_.resize(size);
  const std::size_t first = data_bytes_ - start;
  std::memcpy(wrapped_.data(), data + start, first);
  std::memcpy(wrapped_.data() + first, data, size - first);
  return wrapped_;
}

}  // namespace flamed::daemon
