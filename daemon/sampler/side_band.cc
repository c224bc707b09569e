// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler/side_band.h"

#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "bpf/events.h"
#include "daemon/sampler/perf_event.h"

namespace flamed::daemon {
namespace {

/// Records of mappings and names begin with it.
std::int32_t pid_of(const RecordHead& head) {
  std::int32_t pid = 0;
  if (head.body.size() >= sizeof(pid)) std::memcpy(&pid, head.body.data(), sizeof(pid));
  return pid;
}

/// The effective user; FLAMED_NO_OWNER where it is gone.
std::uint32_t owner_of_process(std::int32_t pid) {
  struct stat status {};
  return ::stat(("/proc/" + std::to_string(pid)).c_str(), &status) == 0 ? status.st_uid : FLAMED_NO_OWNER;
}

bool begins_program(const RecordHead& head) { return head.kind == RecordKind::kComm && head.comm_is_exec; }

}  // namespace

SideBand::SideBand(const Clock& clock) : SideBand(clock, {}, owner_of_process) {}

Result<SideBand::Buffer> SideBand::open(int cpu, bool may_do_without) {
  PerfRing::Options options;
  options.side_band = is_told_;
  Result<PerfRing> ring = PerfRing::open(cpu, options);
  if (!ring && options.side_band && may_do_without) {
    // One step down: samples without news of mappings, which are then read from /proc.
    options.side_band = false;
    if (Result<PerfRing> plain = PerfRing::open(cpu, options)) {
      is_told_ = false;
      ring = std::move(plain);
    }
  }
  if (!ring) return std::move(ring).error();
  const MonotonicTime opened = clock_.monotonic();
  if (const Status enabled = ring->enable(); !enabled) return Error(enabled.error());
  return Buffer{std::move(ring).value(), opened, opened};
}

std::vector<int> SideBand::prove(std::span<Buffer* const> buffers) {
  std::vector<int> events;
  events.reserve(buffers.size());
  for (const Buffer* buffer : buffers) events.push_back(buffer->ring.fd());
  const std::vector<int> dead = find_dead_events(events);
  std::vector<int> cpus;
  for (Buffer* buffer : buffers) {
    buffer->is_proven = std::find(dead.begin(), dead.end(), buffer->ring.fd()) == dead.end();
    if (!buffer->is_proven) cpus.push_back(buffer->ring.cpu());
  }
  return cpus;
}

MonotonicTime SideBand::drain(RecordRing& records, int cpu, MonotonicTime whole_until, EventBatch& batch) {
  const std::uint64_t broken_before = records.broken();
  const MonotonicTime now = clock_.monotonic();
  records.look();
  records.drain([&](std::span<const std::byte> record) {
    ++read_;
    RecordHead head = read_head(record);
    head.cpu = static_cast<std::uint16_t>(cpu);
    switch (head.kind) {
      case RecordKind::kMalformed:
      case RecordKind::kLost:
        note_loss(whole_until);
        break;
      case RecordKind::kSample:
      case RecordKind::kOther:
        break;
      default:
        whole_until = head.time;
        follow_programs(head);
        if (is_within_share(head))
          batch.append(head);
        else
          ++skipped_;
    }
  });
  // The kernel says that it refused a record only with the next one that it writes, which is too late for this batch.
  if (records.was_full() || records.broken() != broken_before) {
    note_loss(whole_until);
    return whole_until;
  }
  return std::max(whole_until, now);
}

/// Tells the shares of programs that begin and processes that end.
void SideBand::follow_programs(const RecordHead& head) {
  if (begins_program(head)) shares_.began_program(pid_of(head));
  if (head.kind != RecordKind::kExit) return;
  const std::optional<TaskRecord> task = parse_task(head.body);
  if (task && task->pid == task->tid) shares_.ended(task->pid);
}

/// Takes mappings and names off the share. All else is always read.
bool SideBand::is_within_share(const RecordHead& head) {
  const bool counts = head.kind == RecordKind::kMapping || (head.kind == RecordKind::kComm && !begins_program(head));
  return !counts || shares_.admits(pid_of(head), head.time);
}

void SideBand::report(EventBatch& batch) {
  const std::vector<SideBandShares::Muted> muted = shares_.take_muted();
  muted_ = muted.size();
  report_muted(muted);
  batch.muted.insert(batch.muted.end(), muted.begin(), muted.end());
  batch.has_side_band = is_told_;
  batch.side_band_lost_from = std::exchange(lost_from_, std::nullopt);
}

/// Not of each, since there may be very many.
void SideBand::report_muted(std::span<const SideBandShares::Muted> muted) {
  if (muted.empty()) return;
  const MonotonicTime now = clock_.monotonic();
  for (const SideBandShares::Muted& process : muted) {
    if (!process.is_new || (told_of_muted_ && now.ns - told_of_muted_->ns < kNsPerMinute)) continue;
    told_of_muted_ = now;
    spdlog::warn(
        "process {}{} maps code or changes its name so often that this is skipped from now on ({} times since the "
        "last drain); what it has mapped is read from /proc, and some of its stacks are cut",
        process.pid,
        process.user == FLAMED_NO_OWNER ? ", which has ended," : " of user " + std::to_string(process.user),
        process.skipped);
  }
}

}  // namespace flamed::daemon
