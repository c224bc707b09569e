// SPDX-License-Identifier: Apache-2.0
#include "archive/reading/past.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <limits>
#include <optional>
#include <utility>

#include "archive/codec/stretch.h"
#include "store/query/query.h"
#include "store/query/slot_selection.h"
#include "store/ring/snapshot_data.h"

namespace flamed::archive {
namespace {

using store::SealedSlot;
using store::Slot;
using store::SnapshotData;

constexpr std::chrono::seconds kPatience{1};
/// A query of all that may be read takes less.
constexpr std::chrono::seconds kLongRead{20};
/// Of a slot that only says that something is retained, in no run of slots.
constexpr std::uint32_t kNoSequence = PastSpace::kFirstSequence - 1;

/// How far a window reaches back that asks for everything.
constexpr std::int64_t kReachNs = 24 * 60 * kNsPerMinute;
constexpr std::int64_t kYearNs = 365 * kReachNs;

/// The sequence of the snapshot's oldest slot.
std::uint32_t oldest_in(const SnapshotData& recent) {
  if (!recent.sealed->empty()) return recent.sealed->front().slot->sequence;
  return recent.open.empty() ? 1 : recent.open.front().sequence;
}

template <typename Row>
bool overlap(const Row& row, const store::WallWindow& window) {
  return row.start < window.to && window.from < row.end;
}

/// A byte of a database of minutes takes so many in memory.
constexpr std::uint64_t kUnpacked = 13;

/// Of a window, so much must be on disk alone to be read from sums: of less, ten minutes are much, and memory has room
/// for its minutes.
constexpr std::int64_t kCoarseNs = kReachNs;
constexpr std::int64_t kCoarseStepsNs = kReachNs / 4;
/// Up to so much short-lived processes are told apart.
constexpr std::int64_t kEachNs = 2 * kReachNs;

/// Shares of the budget. Minutes leave one for what queries add, names and sums of slots. Where all of them have no
/// room in any case it is larger, for little questions that pages ask in turns with the one for the graph. Of those,
/// this much stays.
constexpr std::size_t kShareBesideMinutes = 8;
constexpr std::size_t kShareBesideTooMany = 6;
constexpr std::size_t kShareOfOthers = 10;

/// Of the windows, what is before all that is in memory.
std::int64_t only_on_disk_ns(const SnapshotData& recent, std::span<const store::WallWindow> windows) {
  std::optional<WallTime> known;
  for (const SealedSlot& sealed : *recent.sealed) {
    known = std::min(known.value_or(sealed.slot->bounds.wall_start()), sealed.slot->bounds.wall_start());
  }
  std::int64_t longest = 0;
  for (const store::WallWindow& window : windows) {
    longest = std::max(longest, std::min(window.to, known.value_or(window.to)).ns - window.from.ns);
  }
  return longest;
}

store::Snapshot warned(const store::Snapshot& recent, std::string warning) {
  auto data = std::make_shared<SnapshotData>(recent.data());
  data->warnings.push_back(std::move(warning));
  return store::Snapshot(std::move(data));
}

/// The slot of a minute that was not read. Its place on the monotonic clock is before `until`.
SealedSlot empty_slot(const MinuteIndex::Row& row, MonotonicTime until, std::int64_t period_ns) {
  Slot slot;
  slot.sequence = kNoSequence;
  slot.bounds = {{until.ns - (row.end.ns - row.start.ns)}, until, row.end.ns - until.ns, period_ns};
  return {std::make_shared<const Slot>(std::move(slot))};
}

/// The same before `until`: the monotonic clock of another boot counts from elsewhere.
SealedSlot before(const SealedSlot& sealed, MonotonicTime until) {
  const std::int64_t ahead = sealed.slot->bounds.end.ns - until.ns;
  if (ahead <= 0) return sealed;
  Slot slot = *sealed.slot;
  slot.bounds.start.ns -= ahead;
  slot.bounds.end.ns -= ahead;
  slot.bounds.wall_offset_ns += ahead;
  SealedSlot moved{std::make_shared<const Slot>(std::move(slot))};
  if (sealed.log != nullptr) moved.log = std::make_shared<const store::SampleLog>(sealed.log->earlier_by(ahead));
  return moved;
}

/// Says since when somebody reads.
class Reading {
 public:
  explicit Reading(std::atomic<std::chrono::steady_clock::time_point>& since) : since_(since) {
    since_ = std::chrono::steady_clock::now();
  }
  ~Reading() { since_ = std::chrono::steady_clock::time_point(); }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

 private:
  std::atomic<std::chrono::steady_clock::time_point>& since_;
};

/// The snapshot's own slots after that sequence. The first one is cut to the start of sampling, as the snapshot's
/// `since` does where nothing is before it.
void add_own_slots(SnapshotData& data, std::uint32_t after, std::vector<SealedSlot>& slots) {
  for (const SealedSlot& sealed : *data.sealed) {
    if (sealed.slot->sequence <= after) continue;
    slots.push_back(sealed);
    if (data.since <= sealed.slot->bounds.start) continue;
    Slot cut = *sealed.slot;
    cut.bounds.start = std::min(cut.bounds.end, data.since);
    slots.back().slot = std::make_shared<const Slot>(std::move(cut));
  }
  for (store::OpenSlot::View& open : data.open) {
    open.bounds.start = std::max(open.bounds.start, std::min(open.bounds.end, data.since));
  }
}

}  // namespace

void Past::look() {
  const std::lock_guard lock(mutex_);
  const Reading reading(reading_since_);
  static_cast<void>(refresh());
  index_.close();
}

Status Past::refresh() {
  if (coming_.valid()) index_ = coming_.get();
  Status looked = index_.refresh();
  has_looked_ = looked.ok();
  note_files(looked);
  return looked;
}

void Past::note_files(const Status& looked) {
  std::vector<std::string> problems;
  // There is no folder before the first minute is written.
  if (!looked && looked.error().code() != ENOENT) problems.push_back(looked.error().message());
  for (const Error& error : index_.unusable()) {
    if (error.code() != EBADMSG && error.code() != ENOTSUP) problems.push_back(error.message());
  }
  const std::lock_guard lock(problems_mutex_);
  file_problems_ = std::move(problems);
  std::erase_if(unreadable_sums_, [&](const auto& sums) { return !index_.has(sums.first); });
  std::erase_if(minute_problems_, [&](const auto& minute) { return !index_.has(minute.first.first); });
}

/// What was read before the one that can't be is good.
void Past::note_sums(const Part& part, PastSpace::Processes processes, const Error& error) {
  const auto first = std::find_if(part.sums.begin(), part.sums.end(),
                                  [&](const MinuteIndex::Sum* sum) { return !space_->has(*sum, processes); });
  unreadable_sums_.insert_or_assign((*first)->session, UnreadableSums{(*first)->id, error.code() == EBADMSG});
}

void Past::note_minute(const MinuteIndex::Row& row, const Status& loaded) {
  const std::lock_guard lock(problems_mutex_);
  if (loaded) {
    minute_problems_.erase({row.session, row.id});
  } else {
    minute_problems_.insert_or_assign({row.session, row.id}, loaded.error().message());
  }
}

std::vector<std::string> Past::problems() const {
  const auto since = reading_since_.load();
  const auto took = std::chrono::steady_clock::now() - since;
  std::vector<std::string> problems;
  if (since != std::chrono::steady_clock::time_point() && took > kLongRead) {
    problems.push_back("the disk has not answered for " +
                       std::to_string(std::chrono::duration_cast<std::chrono::seconds>(took).count()) + " s");
  }
  const std::lock_guard lock(problems_mutex_);
  problems.insert(problems.end(), file_problems_.begin(), file_problems_.end());
  if (!minute_problems_.empty()) {
    problems.push_back(std::to_string(minute_problems_.size()) +
                       " minutes could not be read: " + minute_problems_.rbegin()->second);
  }
  return problems;
}

bool Past::is_in(const SnapshotData& recent, const MinuteIndex::Row& row) const {
  if (index_.session(row.session).run != options_.run) return false;
  return row.first_sequence() >= oldest_in(recent);
}

bool Past::knows_all_before(const SnapshotData& recent) const {
  const std::uint32_t oldest = oldest_in(recent);
  // Before its successor is known, a minute may be known as it was before it was over.
  const auto is_after = [&](const MinuteIndex::Row& row) {
    return row.sequence >= oldest && index_.session(row.session).run == options_.run;
  };
  return has_looked_ && (oldest == 1 || std::any_of(index_.rows().rbegin(), index_.rows().rend(), is_after));
}

/// Of the sums that are not in memory as a whole.
std::vector<const MinuteIndex::Sum*> Past::sums_in(const SnapshotData& recent,
                                                   std::span<const store::WallWindow> windows) const {
  std::vector<const MinuteIndex::Sum*> sums;
  for (const MinuteIndex::Sum& sum : index_.sums()) {
    const auto is_in_it = [&](const store::WallWindow& window) { return overlap(sum, window); };
    if (std::none_of(windows.begin(), windows.end(), is_in_it)) continue;
    if (!index_.counts(sum.session, MinuteIndex::Prefer::kStretches)) continue;
    const auto unreadable = unreadable_sums_.find(sum.session);
    if (unreadable != unreadable_sums_.end() && unreadable->second.from <= sum.id) continue;
    const bool is_of_this_run = index_.session(sum.session).run == options_.run;
    if (!is_of_this_run || sum.first < oldest_in(recent)) sums.push_back(&sum);
  }
  return sums;
}

bool Past::are_too_many(const SnapshotData& recent, std::span<const store::WallWindow> windows) const {
  std::uint64_t bytes = 0;
  for (const MinuteIndex::Row& row : index_.rows()) {
    const auto is_in_it = [&](const store::WallWindow& window) { return overlap(row, window); };
    const bool is_read = index_.counts(row.session, MinuteIndex::Prefer::kMinutes) && !is_in(recent, row) &&
                         std::any_of(windows.begin(), windows.end(), is_in_it);
    if (is_read) bytes += index_.bytes_of(row);
  }
  return bytes > options_.budget_bytes / kUnpacked;
}

bool Past::has(const Part& part, PastSpace::Processes processes) const {
  if (part.minute != nullptr) return space_->has(*part.minute);
  return std::all_of(part.sums.begin(), part.sums.end(),
                     [&](const MinuteIndex::Sum* sum) { return space_->has(*sum, processes); });
}

std::size_t Past::newest_bytes(const Plan& plan) const {
  std::size_t bytes = 0;
  for (std::size_t i = plan.wanted.size(); i-- > 0 && has(plan.wanted[i], plan.processes);) {
    const Part& part = plan.wanted[i];
    if (part.minute != nullptr) bytes += space_->bytes_of(*part.minute);
    for (const MinuteIndex::Sum* sum : part.sums) bytes += space_->bytes_of(*sum, plan.processes);
  }
  return bytes;
}

bool Past::is_beyond_budget(const Plan& plan) const {
  std::uint64_t packed = 0;
  for (const Part& part : plan.wanted) {
    if (part.minute != nullptr) packed += index_.bytes_of(*part.minute);
  }
  return packed > options_.budget_bytes;
}

Status Past::load(const Part& part, PastSpace::Processes processes) {
  if (part.minute == nullptr) return space_->load(index_, part.sums, processes);
  Status loaded = space_->load(index_, *part.minute);
  note_minute(*part.minute, loaded);
  return loaded;
}

Past::Plan Past::plan(const SnapshotData& recent, std::span<const store::WallWindow> windows,
                      const store::Detail& detail) const {
  Plan plan;
  plan.before.resize(windows.size(), nullptr);
  std::vector<store::WallWindow> asked(windows.begin(), windows.end());
  for (store::WallWindow& window : asked) {
    const auto is_before = [&](const MinuteIndex::Row& row) { return row.start.ns - kYearNs <= window.from.ns; };
    if (std::none_of(index_.rows().begin(), index_.rows().end(), is_before)) {
      window.from = std::max(window.from, WallTime{window.to.ns - kReachNs});
    }
  }
  std::vector<const MinuteIndex::Sum*> sums;
  const std::int64_t on_disk_ns = only_on_disk_ns(recent, asked);
  if (detail.only_processes && on_disk_ns >= (detail.step_ns >= kStretchNs ? kCoarseStepsNs : kCoarseNs)) {
    sums = sums_in(recent, asked);
  }
  plan.has_sums = !sums.empty();
  if (plan.has_sums || (!detail.only_minutes && are_too_many(recent, asked))) {
    plan.prefer = MinuteIndex::Prefer::kStretches;
  }
  if (plan.has_sums && (detail.each_process || on_disk_ns <= kEachNs)) {
    plan.processes = PastSpace::Processes::kEach;
  }
  auto sum = sums.begin();
  const auto add_sums_until = [&](const MinuteIndex::Row* row) {
    for (; sum != sums.end(); ++sum) {
      const auto place = [](const auto& of, std::uint32_t sequence) { return std::pair(of.session, sequence); };
      if (row != nullptr && place(*row, row->sequence) <= place(**sum, (*sum)->last)) return;
      const bool goes_on = !plan.wanted.empty() && !plan.wanted.back().sums.empty() &&
                           plan.wanted.back().sums.back()->session == (*sum)->session;
      if (!goes_on) plan.wanted.emplace_back();
      plan.wanted.back().sums.push_back(*sum);
    }
  };
  for (const MinuteIndex::Row& row : index_.rows()) {
    if (!index_.counts(row.session, plan.prefer)) continue;
    add_sums_until(&row);
    if (sum != sums.end() && (*sum)->has(row)) continue;
    if (is_in(recent, row)) continue;
    bool is_wanted = false;
    for (std::size_t i = 0; i < asked.size(); ++i) {
      const MinuteIndex::Row*& last = plan.before[i];
      if (overlap(row, asked[i])) is_wanted = true;
      if (row.end <= asked[i].from && (last == nullptr || last->end <= row.end)) last = &row;
    }
    if (is_wanted) plan.wanted.push_back({.minute = &row});
  }
  add_sums_until(nullptr);
  plan.before.erase(std::remove(plan.before.begin(), plan.before.end(), nullptr), plan.before.end());
  return plan;
}

void Past::begin_space(const SnapshotData& recent) {
  const PastSpace::First first = space_ != nullptr ? space_->next() : PastSpace::First{};
  space_ = std::make_unique<PastSpace>(recent, PastSpace::Boot{options_.boot_id, options_.has_kernel, options_.stays},
                                       first);
  const std::lock_guard lock(names_mutex_);
  names_.erase(std::remove_if(names_.begin(), names_.end(), [](const auto& names) { return names.expired(); }),
               names_.end());
  names_.push_back(space_->names());
}

void Past::add_restarts(std::optional<WallTime> began, std::vector<store::Gap>& gaps) const {
  constexpr std::int64_t kShortestNs = kNsPerSecond / 10;  // some samples
  const auto add = [&](WallTime from, WallTime to) {
    if (to.ns - from.ns >= kShortestNs) gaps.push_back({from, to, store::GapReason::kNotRunning});
  };
  const MinuteIndex::Row* last = nullptr;
  const auto run_of = [&](const MinuteIndex::Row& row) { return index_.session(row.session).run; };
  for (const MinuteIndex::Row& row : index_.rows()) {
    if (!index_.counts(row.session, MinuteIndex::Prefer::kMinutes)) continue;
    if (last != nullptr && run_of(*last) != run_of(row)) add(last->end, row.start);
    last = &row;
  }
  if (began && last != nullptr && run_of(*last) != options_.run) add(last->end, *began);
}

store::Snapshot Past::with(const store::Snapshot& recent, std::span<const store::WallWindow> windows,
                           const store::Detail& detail) {
  const std::optional<store::WallWindow> retained = store::retained_window(recent);
  // Or ahead: the clock may have been set back since.
  const auto reaches_back = [&](const store::WallWindow& window) {
    return !retained || window.from < retained->from || retained->to < window.from;
  };
  if (std::none_of(windows.begin(), windows.end(), reaches_back)) return recent;
  const std::unique_lock lock(mutex_, kPatience);
  const bool is_coming =
      lock.owns_lock() && coming_.valid() && coming_.wait_for(kPatience) != std::future_status::ready;
  if (!lock.owns_lock() || is_coming) {
    return warned(recent, "The history on disk is busy, or its disk does not answer: only what is in memory is shown.");
  }
  const Reading reading(reading_since_);
  std::erase_if(unreadable_sums_, [](const auto& sums) { return !sums.second.is_damaged; });
  return read(recent, windows, detail);
}

store::Snapshot Past::read(const store::Snapshot& recent, std::span<const store::WallWindow> windows,
                           const store::Detail& detail) {
  const std::optional<store::WallWindow> retained = store::retained_window(recent);
  const Status looked = knows_all_before(recent.data()) ? Status() : refresh();
  if (!looked) {
    if (looked.error().code() == ENOENT) return recent;
    return warned(recent, "The history on disk can't be read: " + looked.error().message() + ".");
  }
  Plan plan = this->plan(recent.data(), windows, detail);
  const auto counts = [&](const MinuteIndex::Row& row) { return index_.counts(row.session, plan.prefer); };
  const auto first = std::find_if(index_.rows().begin(), index_.rows().end(), counts);
  if (!retained && first != index_.rows().end()) {
    // Nothing else says from when to when there are minutes.
    const auto last = std::find_if(index_.rows().rbegin(), index_.rows().rend(), counts);
    for (const MinuteIndex::Row* row : {&*first, &*last}) {
      const auto is_wanted = [&](const Part& part) { return part.minute == row; };
      if (std::none_of(plan.wanted.begin(), plan.wanted.end(), is_wanted)) plan.before.push_back(row);
    }
  }
  if (plan.wanted.empty() && plan.before.empty()) {
    index_.close();
    return recent;
  }

  // A fresh space has the newest of what is wanted, and little else, such as the sums of a month. So it is after a
  // question that had no room for the others: asked again, it reads nothing.
  const bool may_stay = space_ != nullptr && space_->is_above(recent.data());
  const bool is_beyond = is_beyond_budget(plan);
  const std::size_t newest = may_stay ? newest_bytes(plan) : 0;
  std::size_t others = may_stay ? space_->loaded_bytes() - newest : 0;
  bool is_fresh = newest != 0 && others <= options_.budget_bytes / kShareOfOthers;
  bool has_any = is_fresh;  // one minute is read in any case
  const auto begin_fresh = [&] {
    begin_space(recent.data());
    others = 0;
    is_fresh = true;
    has_any = false;
    is_filled_ = false;
  };
  if (!is_fresh && (!may_stay || is_beyond)) begin_fresh();
  const auto is_full = [&](const Part& part) {
    if (is_fresh && is_filled_) return true;
    const std::size_t next = part.minute != nullptr ? space_->dictionary_bytes(*part.minute) : 0;
    if (plan.has_sums || !is_fresh) return space_->bytes() + next > options_.budget_bytes;
    const std::size_t beside = options_.budget_bytes / (is_beyond ? kShareBesideTooMany : kShareBesideMinutes);
    return space_->bytes() + next > options_.budget_bytes - beside + others;
  };
  std::optional<WallTime> left_out_until;
  std::size_t unreadable = 0;
  std::string why;
  for (std::size_t i = plan.wanted.size(); i-- > 0;) {
    const Part& part = plan.wanted[i];
    if (!has(part, plan.processes) && is_full(part) && (has_any || !is_fresh)) {
      if (is_fresh && plan.processes == PastSpace::Processes::kTogether) {
        left_out_until = part.minute != nullptr ? part.minute->end : part.sums.back()->end;
        is_filled_ = true;
        break;
      }
      if (is_fresh) plan.processes = PastSpace::Processes::kTogether;
      begin_fresh();
      unreadable = 0;
      i = plan.wanted.size();
      continue;
    }
    const Status loaded = load(part, plan.processes);
    if (!loaded && part.minute == nullptr) {
      note_sums(part, plan.processes, loaded.error());
      return read(recent, windows, detail);
    }
    if (!loaded) {
      ++unreadable;
      why = loaded.error().message();
    } else {
      has_any = true;
    }
  }
  index_.close();
  bytes_ = space_->bytes();

  struct Held {
    std::vector<SealedSlot> slots;
    std::shared_ptr<PastNames> names;  ///< as long as somebody may ask for them
  };
  auto held = std::make_shared<Held>();
  held->names = space_->names();
  auto data = std::make_shared<SnapshotData>(recent.data());
  for (const MinuteIndex::Row* row : plan.before) held->slots.push_back(empty_slot(*row, data->since, data->period_ns));
  std::uint32_t own_until = 0;
  const auto take = [&](const SealedSlot& slot, WallTime end) {
    held->slots.push_back(before(slot, data->until));
    data->on_disk_until = std::max(data->on_disk_until, std::optional(end));
  };
  for (const Part& part : plan.wanted) {
    if (!has(part, plan.processes)) {
      const WallTime start = part.minute != nullptr ? part.minute->start : part.sums.front()->start;
      if (left_out_until) data->left_out_from = std::min(data->left_out_from.value_or(start), start);
      continue;
    }
    const auto take_own = [&](const MinuteIndex::SessionKey& session, std::uint32_t last) {
      if (index_.session(session).run == options_.run) own_until = std::max(own_until, last);
    };
    if (part.minute != nullptr) {
      take(space_->slot(*part.minute), part.minute->end);
      if (part.minute->first) take_own(part.minute->session, part.minute->sequence);
    }
    for (const MinuteIndex::Sum* sum : part.sums) {
      take(space_->slot(*sum, plan.processes), sum->end);
      take_own(sum->session, sum->last);
    }
  }
  add_own_slots(*data, own_until, held->slots);
  data->since = {std::numeric_limits<std::int64_t>::min() / 2};
  data->sealed = std::shared_ptr<const std::vector<SealedSlot>>(held, &held->slots);
  space_->join(*data);
  auto gaps = std::make_shared<std::vector<store::Gap>>(*data->gaps);
  if (oldest_in(recent.data()) == 1) {
    add_restarts(retained ? std::optional(retained->from) : std::nullopt, *gaps);
  }
  data->gaps = std::move(gaps);
  if (plan.has_sums && plan.processes == PastSpace::Processes::kTogether && space_->has_several()) {
    data->warnings.emplace_back(
        "Short-lived processes are shown together, one for each program, in so long a window: ask for less than two "
        "days to tell them apart.");
  }
  if (left_out_until) {
    data->warnings.push_back("Minutes up to " + store::to_text(*left_out_until) +
                             " are left out: reading so much of the history takes too much memory. Ask for a shorter "
                             "window.");
  }
  if (unreadable != 0) {
    data->warnings.push_back(std::to_string(unreadable) + " minutes of the history on disk can't be read: " + why +
                             ".");
  }
  return store::Snapshot(std::move(data));
}

void Past::name(std::span<const Frame> frames, std::span<std::shared_ptr<const InlineChain>> chains) const {
  std::vector<std::shared_ptr<PastNames>> all;
  {
    const std::lock_guard lock(names_mutex_);
    for (const std::weak_ptr<PastNames>& names : names_) {
      if (auto held = names.lock()) all.push_back(std::move(held));
    }
  }
  for (const auto& names : all) names->name(frames, chains);
}

}  // namespace flamed::archive
