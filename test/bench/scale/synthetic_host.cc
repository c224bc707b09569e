// SPDX-License-Identifier: Apache-2.0
#include "test/bench/scale/synthetic_host.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/identity.h"
#include "test/unit/daemon/sampler/record_bytes.h"

namespace flamed::bench {
namespace {

constexpr std::int32_t kFirstPid = 100'000;
constexpr std::uint64_t kFirstStartTicks = 5'000;
constexpr std::int32_t kThreads = 4;

constexpr std::size_t kTimeAt = offsetof(flamed_record, time_ns);
constexpr std::size_t kSampleAt = offsetof(flamed_record, sample);

template <typename T>
void put(std::byte* at, const T& value) {
  std::memcpy(at, &value, sizeof(value));
}

}  // namespace

SyntheticHost::SyntheticHost(const Recording& recording, std::size_t processes, std::size_t cpus, Shares shares)
    : recording_(recording), processes_(processes), shares_(shares), rings_(cpus) {}

std::vector<SyntheticHost::Record> SyntheticHost::birth(std::size_t process, MonotonicTime time) const {
  const Recording::Process& original = recording_.processes[process % recording_.processes.size()];
  const std::int32_t pid = kFirstPid + static_cast<std::int32_t>(process) * kThreads;
  std::vector<Record> records = {test::task_record(PERF_RECORD_FORK, time, pid, 1, pid),
                                 test::comm_record({time.ns + 1}, pid, pid, original.comm, true)};
  for (const Recording::Mapping& mapping : original.mappings) {
    records.push_back(test::mapping_record({time.ns + 2}, pid, mapping.start, mapping.length, mapping.file_offset,
                                           mapping.inode, mapping.path));
  }
  return records;
}

std::size_t SyntheticHost::choose(std::minstd_rand& random) const {
  if (shares_ == Shares::kEven) return random() % processes_;
  // The inverse of the distribution function of the density 1/x between 1 and processes_ + 1.
  const double unit = static_cast<double>(random() - std::minstd_rand::min()) /
                      static_cast<double>(std::minstd_rand::max() - std::minstd_rand::min());
  const auto rank = static_cast<std::size_t>(std::pow(static_cast<double>(processes_ + 1), unit));
  return std::min(rank, processes_) - 1;
}

void SyntheticHost::sample_second(MonotonicTime start, std::uint64_t seed) {
  std::minstd_rand random(static_cast<std::uint32_t>(seed * 2 + 1));
  constexpr std::int64_t kPeriodNs = kNsPerSecond / kHertz;
  for (std::size_t cpu = 0; cpu < rings_.size(); ++cpu) {
    std::vector<std::byte>& ring = rings_[cpu];
    ring.clear();
    for (int i = 0; i < kHertz; ++i) {
      const std::size_t process = choose(random);
      const Recording::Process& original = recording_.processes[process % recording_.processes.size()];
      const Record& record = original.samples[random() % original.samples.size()];
      const std::size_t at = ring.size();
      ring.insert(ring.end(), record.begin(), record.end());
      const std::int32_t pid = kFirstPid + static_cast<std::int32_t>(process) * kThreads;
      const auto tid = static_cast<std::uint32_t>(pid + static_cast<std::int32_t>(random() % kThreads));
      put(ring.data() + at + kTimeAt, start.ns + i * kPeriodNs + static_cast<std::int64_t>(cpu) * 1'000);
      std::byte* const sample = ring.data() + at + kSampleAt;
      put(sample + offsetof(flamed_sample, tgid), static_cast<std::uint32_t>(pid));
      put(sample + offsetof(flamed_sample, tid), tid);
      put(sample + offsetof(flamed_sample, start_boottime_ns), (kFirstStartTicks + process) * ProcessId::kNsPerTick);
    }
  }
}

}  // namespace flamed::bench
