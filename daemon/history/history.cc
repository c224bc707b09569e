// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/history.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "archive/codec/additions.h"
#include "archive/codec/minute.h"
#include "archive/codec/names.h"
#include "archive/codec/samples.h"
#include "archive/codec/stretch.h"
#include "archive/codec/sum.h"
#include "base/keyed_hash.h"
#include "store/ring/snapshot_data.h"

namespace flamed::daemon {
namespace {

/// Of the end of a session, single samples are written: they take three times as much as all else in their minutes.
constexpr std::int64_t kSampledNs = 10 * kNsPerMinute;
/// So many take half a second at the end, and 20 MB.
constexpr std::size_t kMostSamples = std::size_t{1} << 22;

/// When a minute is written as it is so far: then at most 60 s are on no disk. The minute before is there by then, 30 s
/// after its end at the latest: it is sealed 5 to 10 s after that, and its frames are named for 15 s, or a bit longer.
constexpr std::int64_t kSoFarNs = 35 * kNsPerSecond;

/// kthreadd, the parent of all.
constexpr std::int32_t kKernelThreads = 2;

/// So many are made coarser at once, once a minute.
constexpr int kCoarsenMinutes = 60;
/// After a disk was full or failed.
constexpr std::int64_t kCoarsenAgainNs = 60 * kNsPerMinute;

/// On the monotonic clock.
std::int64_t next_so_far(const Clock& clock) {
  const std::int64_t into = ((clock.wall().ns - kSoFarNs) % kNsPerMinute + kNsPerMinute) % kNsPerMinute;
  return clock.monotonic().ns + kNsPerMinute - into;
}

archive::ModuleKind kind_of(symbolizer::ModuleKind kind) {
  switch (kind) {
    case symbolizer::ModuleKind::kKernel:
      return archive::ModuleKind::kKernel;
    case symbolizer::ModuleKind::kVdso:
      return archive::ModuleKind::kVdso;
    case symbolizer::ModuleKind::kFile:
      return archive::ModuleKind::kFile;
    case symbolizer::ModuleKind::kAnonymous:
      break;
  }
  return archive::ModuleKind::kAnonymous;
}

/// As of archive::Minute: sampling may have begun within the slot's minute.
WallTime start_of(const store::SlotBounds& bounds, MonotonicTime since) {
  const bool is_within = bounds.start < since && since < bounds.end;
  return is_within ? WallTime{since.ns + bounds.wall_offset_ns} : bounds.wall_start();
}

archive::Archive::Options& with_run(archive::Archive::Options& options) {
  options.run = static_cast<std::int64_t>(random_hash_key());
  return options;
}

}  // namespace

/// The disk may not answer as long as it lives.
class History::WaitForDisk {
 public:
  explicit WaitForDisk(History& history) : history_(history) { history.note_wait(history.parts_.clock.wall()); }
  ~WaitForDisk() { history_.note_wait(std::nullopt); }
  WaitForDisk(const WaitForDisk&) = delete;
  WaitForDisk& operator=(const WaitForDisk&) = delete;

 private:
  History& history_;
};

History::History(Parts parts, std::string folder, archive::Archive::Options options,
                 std::future<archive::MinuteIndex> index)
    : parts_(std::move(parts)),
      folder_(std::move(folder)),
      archive_(folder_, with_run(options)),
      past_(folder_, {.boot_id = options.boot_id, .run = options.run, .stays = parts_.stays}, std::move(index)),
      names_({parts_.symbolizer, parts_.clock, parts_.may_name}) {}

void History::run(const std::stop_token& stop) {
  past_.look();
  std::uint32_t newest = 0;
  std::int64_t due_ns = next_so_far(parts_.clock);
  while (!stop.stop_requested()) {
    const std::int64_t longest_ns = std::max<std::int64_t>(due_ns - parts_.clock.monotonic().ns, 0);
    const auto sealed = parts_.store.await_sealed(newest, stop, std::chrono::nanoseconds(longest_ns));
    if (sealed) {
      newest = *sealed;
      write(stop);
    }
    // Also if the minute before took so long.
    if (stop.stop_requested() || parts_.clock.monotonic().ns < due_ns) continue;
    write_so_far(stop);
    if (!stop.stop_requested()) coarsen();
    due_ns = next_so_far(parts_.clock);
  }
  coarsening_.reset();
  write(stop);
  end_session();
  const std::lock_guard lock(mutex_);
  has_ended_ = true;
  ended_.notify_all();
}

void History::await_end(std::chrono::seconds most) {
  std::unique_lock lock(mutex_);
  ended_.wait_for(lock, most, [&] { return has_ended_; });
}

void History::write(const std::stop_token& stop) {
  const store::Snapshot snapshot = parts_.store.snapshot();
  for (const store::SealedSlot& sealed : *snapshot.data().sealed) {
    if (sealed.slot->sequence <= written_) continue;
    const Status written = write(snapshot, *sealed.slot, Ending::kOver, stop);
    note(written);
    if (!written) return;
  }
}

void History::write_so_far(const std::stop_token& stop) {
  // Minutes that could not be written when they were sealed.
  write(stop);
  const MonotonicTime now = parts_.clock.monotonic();
  parts_.await_samples(now);
  const store::Snapshot snapshot = parts_.store.snapshot();
  const std::vector<store::OpenSlot::View>& open = snapshot.data().open;
  // What is before it comes within seconds, and no number of its additions may be below theirs.
  if (open.size() != 1 || open.front().sequence != written_ + 1 || open.front().quality.taken() == 0) return;
  note(write(snapshot, open.front().until(now), Ending::kSoFar, stop));
}

void History::end_session() { end_session(parts_.store.snapshot()); }

void History::end_session(const store::Snapshot& snapshot) {
  if (!numbering_) return;
  write_sum();
  write_states();
  write_samples(snapshot);
  archive_.end_session();
  numbering_.reset();
}

void History::write_sum() {
  std::optional<archive::Sum> sum = sums_ ? sums_->finish() : std::nullopt;
  if (!sum) return;
  const Result<archive::SumBlocks> blocks = encode(*sum);
  const WaitForDisk wait(*this);
  const Status added = blocks ? archive_.add_sum(*blocks) : blocks.error();
  if (added) return;
  spdlog::warn("long windows will be answered slower, since sums of minutes are not written: {}",
               added.error().message());
  // The next one would refer to this one's dictionary.
  sums_.reset();
}

void History::keep_states(const archive::Additions& additions) {
  for (const archive::ProcessState& state : additions.processes) {
    // A kernel worker is called as what it works at.
    const bool is_worker = state.info.parent_pid == kKernelThreads && !state.info.ended;
    if (state.number < additions.before.processes && !is_worker) later_states_.insert_or_assign(state.number, state);
  }
}

void History::write_states() {
  if (later_states_.empty() || !last_minute_) return;
  std::vector<archive::ProcessState> states;
  for (const auto& [number, state] : later_states_) states.push_back(state);
  Result<std::vector<std::byte>> block = archive::encode_states(std::move(states));
  const WaitForDisk wait(*this);
  const Status added = block ? archive_.add_states({last_minute_->sequence, last_minute_->start, std::move(*block)})
                             : Status(block.error());
  if (added) {
    later_states_.clear();
  } else {
    spdlog::warn("when some processes ended is not written to disk now: {}", added.error().message());
  }
}

void History::write_samples(const store::Snapshot& snapshot) {
  const std::vector<store::SealedSlot>& sealed = *snapshot.data().sealed;
  std::vector<archive::PeriodFile::LaterBlock> blocks;
  std::size_t count = 0;
  std::optional<MonotonicTime> newest;
  for (auto slot = sealed.rbegin(); slot != sealed.rend() && count < kMostSamples; ++slot) {
    if (slot->slot->sequence > written_) continue;
    if (!newest) newest = slot->slot->bounds.end;
    if (newest->ns - slot->slot->bounds.end.ns >= kSampledNs) break;
    const std::optional<std::vector<archive::Sample>> samples = numbering_->samples_of(*slot);
    if (!samples) continue;
    Result<std::vector<std::byte>> block = encode(std::span<const archive::Sample>(*samples));
    if (!block) continue;
    count += samples->size();
    blocks.push_back({slot->slot->sequence, start_of(slot->slot->bounds, snapshot.data().since), std::move(*block)});
  }
  const WaitForDisk wait(*this);
  if (const Status added = archive_.add_samples(blocks); !added) {
    spdlog::warn("windows of less than a minute will be rounded to minutes, since single samples are not written: {}",
                 added.error().message());
  }
}

void History::coarsen() {
  const bool may_try = !coarsen_after_ || *coarsen_after_ <= parts_.clock.monotonic();
  if (!may_try || !parts_.may_name()) return;
  const WaitForDisk wait(*this);
  const Status done = coarsen_next();
  if (done) return;
  coarsening_.reset();
  spdlog::warn("minutes of history get no stretches, and take more space when they are old: {}",
               done.error().message());
  const int code = done.error().code();
  if (code == EBADMSG || code == ENOTSUP) {
    archive_.keep_minutes(coarse_number_);
  } else {
    coarsen_after_ = MonotonicTime{parts_.clock.monotonic().ns + kCoarsenAgainNs};
  }
}

Status History::coarsen_next() {
  if (archive_.has_old_minutes()) {
    const auto nobody_reads = past_.pause();
    past_.look_again();
    archive_.unlink_old_minutes();
  }
  if (coarsening_ == nullptr) {
    const std::optional<std::uint64_t> number = archive_.next_to_coarsen();
    if (!number) return {};
    coarse_number_ = *number;
    Result<std::unique_ptr<archive::Coarsening>> begun = archive::Coarsening::begin(folder_, *number);
    if (!begun) return std::move(begun).error();
    coarsening_ = std::move(*begun);
  }
  for (int minute = 0; minute < kCoarsenMinutes; ++minute) {
    const Result<bool> is_whole = coarsening_->step();
    if (!is_whole) return is_whole.error();
    if (!*is_whole) continue;
    const auto nobody_reads = past_.pause();
    past_.look_again();
    Status added = archive_.add_stretches(coarse_number_);
    coarsening_.reset();
    return added;
  }
  return {};
}

void History::note_wait(std::optional<WallTime> since) {
  const std::lock_guard lock(mutex_);
  state_.waits_since = since;
}

Status History::write(const store::Snapshot& snapshot, const store::Slot& slot, Ending ending,
                      const std::stop_token& stop) {
  const WallTime start = start_of(slot.bounds, snapshot.data().since);
  if (archive_.would_end_session(start)) end_session(snapshot);
  const Result<bool> is_new_session = [&] {
    const auto nobody_reads = past_.pause();
    const WaitForDisk wait(*this);
    return archive_.prepare(start);
  }();
  if (!is_new_session) return is_new_session.error();
  if (*is_new_session || !numbering_) {
    numbering_.emplace([this](ModuleId id) { return describe(id); });
    sums_.emplace();
    names_.begin_session();
    new_names_.clear();
    later_states_.clear();
    last_minute_.reset();
  }
  archive::Numbering::Numbered numbered = numbering_->take(snapshot, slot, ending);
  numbered.minute.cpus = parts_.cpus();
  numbered.minute.cpu_ns_accounted = parts_.machine_cpu_ns({start, slot.bounds.wall_end()});
  const Result<std::vector<std::byte>> additions = encode(numbered.additions);
  const Result<std::vector<std::byte>> pairs = encode(numbered.minute, numbering_->places());
  if (!additions || !pairs) {
    archive_.end_session();
  } else {
    const std::vector<std::byte> names = name_frames(numbered, stop);
    if (ending == Ending::kOver && sums_ && !sums_->takes(numbered.minute)) write_sum();
    const auto stretch_of = [](WallTime time) { return time.ns / archive::kStretchNs; };
    if (last_minute_ && stretch_of(last_minute_->start) != stretch_of(start)) write_states();
    const WaitForDisk wait(*this);
    if (Status appended =
            archive_.append(numbered.minute, {*additions, *pairs, names, {}, names_from(numbered.additions)}, ending);
        !appended) {
      return appended;
    }
    keep_states(numbered.additions);
    if (ending == Ending::kOver) last_minute_ = {slot.sequence, start, {}};
    if (ending == Ending::kOver && sums_) sums_->add(snapshot, slot, numbered.minute, numbered.additions.gaps);
  }
  if (ending == Ending::kOver) {
    new_names_.clear();
    std::lock_guard lock(mutex_);
    state_.missed_minutes += slot.sequence - written_ - 1;
    written_ = slot.sequence;
    // Too large for a block; another attempt would fail as well.
    if (!additions || !pairs) ++state_.missed_minutes;
  }
  if (!additions) return additions.error();
  return pairs ? Status() : pairs.error();
}

/// Since the last minute that is over. Empty: there are none.
std::vector<std::byte> History::name_frames(const archive::Numbering::Numbered& numbered, const std::stop_token& stop) {
  names_.add(numbered.first_frame, numbered.frames);
  for (archive::Name& name : names_.take(stop)) new_names_.push_back(std::move(name));
  if (new_names_.empty()) return {};
  Result<std::vector<std::byte>> block = encode(std::span<const archive::Name>(new_names_));
  return block ? std::move(*block) : std::vector<std::byte>();
}

/// PeriodFile::Blocks::names_from
std::optional<std::uint32_t> History::names_from(const archive::Additions& additions) const {
  std::uint32_t lowest = additions.before.frames;
  for (const archive::Name& name : new_names_) lowest = std::min(lowest, name.frame);
  return lowest < additions.before.frames ? std::optional(lowest) : std::nullopt;
}

archive::Module History::describe(ModuleId id) const {
  const symbolizer::ModulePtr module = parts_.modules.find(id);
  if (module == nullptr) return {};
  return {kind_of(module->kind), module->path, module->owner};
}

void History::note(const Status& written) {
  std::lock_guard lock(mutex_);
  state_.archive = archive_.stats();
  if (written) {
    if (state_.problem) spdlog::info("history is written to {} again", folder_);
    state_.problem.reset();
    return;
  }
  const bool is_same = state_.problem && state_.problem->reason == written.error().message();
  if (!is_same) spdlog::warn("history is not written: {}", written.error().message());
  const WallTime since = state_.problem ? state_.problem->since : parts_.clock.wall();
  state_.problem = State::Problem{written.error().message(), since};
}

History::State History::state() const {
  std::lock_guard lock(mutex_);
  return state_;
}

}  // namespace flamed::daemon
