// SPDX-License-Identifier: Apache-2.0
#include "store/query/slot_selection.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "store/query/query.h"

namespace flamed::store {
namespace {

// A client that asks for "until now" reads the clock a moment before or after the snapshot is taken.
constexpr std::int64_t kSlackNs = 2 * kNsPerSecond;
// A window that a client repeats from an answer is in whole milliseconds.
constexpr std::int64_t kToldNs = kNsPerMs;
// Lengths of the runs of slots with sums, each a fraction of the one before: any hour needs at most six of each, a day
// twenty of the longest.
constexpr std::array<std::size_t, 4> kRuns{256, 64, 16, 4};

void widen(std::optional<WallWindow>& window, const WallWindow& by) {
  if (!window) {
    window = by;
  } else {
    window->from = std::min(window->from, by.from);
    window->to = std::max(window->to, by.to);
  }
}

/// Keeps the order within a thread.
void group_by_thread(std::vector<HistogramEntry>& entries) {
  if (entries.empty()) return;
  const auto by_thread = [](const HistogramEntry& a, const HistogramEntry& b) { return a.thread < b.thread; };
  const auto [least, most] = std::minmax_element(entries.begin(), entries.end(), by_thread);
  const std::uint32_t first = least->thread;
  std::vector<std::uint32_t> next(most->thread - first + 2, 0);
  for (const HistogramEntry& entry : entries) ++next[entry.thread - first + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  std::vector<HistogramEntry> grouped(entries.size());
  for (const HistogramEntry& entry : entries) grouped[next[entry.thread - first]++] = entry;
  entries = std::move(grouped);
}

/// Counts the samples of each entry in [from, to). Reads the samples outside instead if these are fewer; `all` are the
/// entries' counts of all samples.
template <typename Log>
void count_inside(const Log& log, MonotonicTime from, MonotonicTime to, std::vector<std::uint32_t>& all) {
  const MonotonicTime first = log.first();
  const MonotonicTime end{log.last().ns + 1};
  const std::int64_t inside_ns = std::min(to, end).ns - std::max(from, first).ns;
  if (2 * inside_ns > end.ns - first.ns) {
    const auto leave_out = [&](std::uint32_t entry) { --all[entry]; };
    if (first < from) log.for_each_entry(first, from, leave_out);
    if (to < end) log.for_each_entry(to, end, leave_out);
    return;
  }
  std::fill(all.begin(), all.end(), 0U);
  log.for_each_entry(from, to, [&](std::uint32_t entry) { ++all[entry]; });
}

/// A slot's window. The first slot is cut to the start of sampling, an open one to now.
WallWindow window_of(const SlotBounds& bounds, const SnapshotData& snapshot) {
  const MonotonicTime start = std::max(bounds.start, std::min(bounds.end, snapshot.since));
  const MonotonicTime end = std::max(start, std::min(bounds.end, snapshot.until));
  return {{start.ns + bounds.wall_offset_ns}, {end.ns + bounds.wall_offset_ns}};
}

}  // namespace

std::string to_text(WallTime time) {
  std::int64_t seconds = time.ns / kNsPerSecond;
  if (time.ns % kNsPerSecond < 0) --seconds;
  std::time_t when = seconds;
  std::tm parts{};
  if (::gmtime_r(&when, &parts) == nullptr) return std::to_string(seconds) + " s since 1970";
  char text[64];
  return {text, std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

std::optional<WallWindow> retained_window(const Snapshot& snapshot) {
  std::optional<WallWindow> retained;
  const SnapshotData& data = snapshot.data();
  for (const SealedSlot& slot : *data.sealed) widen(retained, window_of(slot.slot->bounds, data));
  for (const OpenSlot::View& slot : data.open) widen(retained, window_of(slot.bounds, data));
  return retained;
}

bool keeps_single_samples(const Snapshot& snapshot, const WallWindow& window) {
  Selection selection{window};
  QueryBudget unlimited;
  return !SlotSelection(snapshot.data(), selection, unlimited, SlotSelection::Want::kSamples).has_no_samples();
}

SlotSelection::SlotSelection(const SnapshotData& snapshot, const Selection& selection, QueryBudget& budget, Want want)
    : snapshot_(snapshot), budget_(budget), filter_(snapshot, selection), part_(selection.part) {
  if (part_) want = Want::kSamples;
  const WallWindow& asked = selection.window;
  facts_.measure = snapshot.measure;
  facts_.disk_account = snapshot.disk_account;
  facts_.asked = asked;
  facts_.used = asked;
  facts_.period_ns = snapshot.period_ns;
  facts_.only_user = snapshot.only_user;

  std::optional<WallWindow> retained;
  std::vector<WallWindow> windows;  // of slots_
  std::vector<const Quality*> qualities;
  const auto consider = [&](Touched slot, const Quality& quality) {
    const WallWindow window = window_of(slot.bounds, snapshot);
    widen(retained, window);
    const std::int64_t offset_ns = slot.bounds.wall_offset_ns;
    slot.from = {asked.from.ns - offset_ns};
    slot.to = {asked.to.ns - offset_ns};
    slot.complete = !slot.exact || slot.logged == 0 || (!part_ && slot.from <= slot.first && slot.last < slot.to);
    slot.window = window;
    if (asked.to <= asked.from) return;
    const bool overlaps = window.from < asked.to && asked.from < window.to;
    // Late samples are in a slot after their own minute, as waits are that ended in it; all others are within their
    // slot.
    const bool has_late = slot.exact && slot.logged != 0 && slot.first < slot.to && slot.from <= slot.last;
    if (!overlaps && !has_late) return;
    slot.lost = quality.lost_total();
    slots_.push_back(std::move(slot));
    windows.push_back(overlaps ? window : WallWindow{asked.from, asked.from});
    qualities.push_back(&quality);
  };
  const bool has_waits = snapshot.measure != Measure::kCpu;
  for (const SealedSlot& sealed : *snapshot.sealed) {
    Touched slot{.bounds = sealed.slot->bounds, .sealed = &sealed};
    if (has_waits && sealed.wait_log != nullptr) {
      slot.read_log(*sealed.wait_log);
      slot.is_waiting = true;
    } else if (sealed.log != nullptr) {
      slot.read_log(*sealed.log);
    }
    consider(std::move(slot), sealed.slot->quality);
  }
  for (const OpenSlot::View& open : snapshot.open) {
    Touched slot{.bounds = open.bounds, .open = &open};
    if (has_waits && open.wait_log) {
      slot.read_log(*open.wait_log);
      slot.is_waiting = true;
    } else if (open.log.whole()) {
      slot.read_log(open.log);
    }
    consider(std::move(slot), open.quality);
  }

  std::size_t begin = 0;
  std::size_t end = slots_.size();
  if (want == Want::kSamples) {
    while (end > 0 && !slots_[end - 1].exact) --end;
    for (begin = end; begin > 0 && slots_[begin - 1].exact;) --begin;
    none_exact_ = begin == end && !slots_.empty();
  }
  const bool shortened = end - begin < slots_.size() && !none_exact_;
  std::optional<WallWindow> used;
  Quality quality;
  for (std::size_t i = begin; i < end; ++i) {
    WallWindow window = windows[i];
    if (slots_[i].exact) {
      window.from = std::max(window.from, asked.from);
      window.to = std::min(window.to, asked.to);
    }
    if (window.from < window.to) widen(used, window);
    windows[i] = window;
    quality += *qualities[i];
  }
  if (!snapshot.only_user) {
    facts_.quality.lost = quality.lost;
  } else if (quality.lost_total() != 0) {
    facts_.warnings.emplace_back(
        "Samples of the machine were lost in the window, and some of them may belong to the selection.");
  }
  if (used) facts_.used = *used;
  if (begin < end) facts_.resolution_ns = std::max(resolution_ns(begin), resolution_ns(end - 1));
  slots_.erase(slots_.begin() + static_cast<std::ptrdiff_t>(end), slots_.end());
  slots_.erase(slots_.begin(), slots_.begin() + static_cast<std::ptrdiff_t>(begin));
  if (begin < end) unify_periods(std::span(windows).subspan(begin, end - begin));
  if (begin < end && snapshot.measure != Measure::kCpu) add_long_waits();
  count_pending();
  warn(retained);
  if (!selection.tids.empty() || !selection.comms.empty()) warn_of_threads();
  find_gaps();
  if (shortened) {
    facts_.warnings.push_back("Samples are kept one by one only from " + to_text(facts_.used.from) + " to " +
                              to_text(facts_.used.to) + " of the window: the rest is left out.");
  }
}

void SlotSelection::unify_periods(std::span<const WallWindow> windows) {
  std::map<std::int64_t, std::int64_t> ns_of;  // by period
  std::int64_t all_ns = 0;
  std::int64_t unit_ns = 0;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const std::int64_t ns = std::max<std::int64_t>(windows[i].to.ns - windows[i].from.ns, 0);
    ns_of[slots_[i].bounds.period_ns] += ns;
    all_ns += ns;
    unit_ns = std::gcd(unit_ns, slots_[i].bounds.period_ns);
  }
  for (const auto& [period_ns, ns] : ns_of) {
    const double share = all_ns > 0 ? static_cast<double>(ns) / static_cast<double>(all_ns) : 1;
    facts_.periods.push_back({period_ns, share});
  }
  unit_ns = std::max<std::int64_t>(unit_ns, 1);
  facts_.period_ns = unit_ns;
  for (Touched& slot : slots_)
    slot.weight = static_cast<std::uint64_t>(std::exchange(slot.bounds.period_ns, unit_ns) / unit_ns);
}

Error SlotSelection::no_samples_error() {
  return Error(
      "the samples of this window are no longer kept one by one: ask for a later window, or for an answer that needs "
      "only the minutes' counts",
      ENODATA);
}

bool SlotSelection::extract(Touched& slot) {
  if (std::exchange(slot.extracted, true)) return true;
  if (slot.open == nullptr && slot.sealed == nullptr) return extract_long_waits(slot);
  return slot.open != nullptr ? extract_open(slot) : extract_sealed(slot);
}

void SlotSelection::count_in_window(const Touched& slot, std::vector<std::uint32_t>& counts) const {
  if (!slot.is_waiting) {
    return slot.open != nullptr ? count_samples(slot, slot.open->log, counts)
                                : count_samples(slot, *slot.sealed->log, counts);
  }
  std::fill(counts.begin(), counts.end(), 0U);
  for_each_logged_wait(slot, [&](const LoggedWait& wait) {
    for_each_part_of(slot, wait, [&](MonotonicTime, MonotonicTime, std::uint64_t units) {
      counts[wait.entry] += static_cast<std::uint32_t>(units);
    });
  });
}

template <typename Log>
void SlotSelection::count_samples(const Touched& slot, const Log& log, std::vector<std::uint32_t>& counts) const {
  if (!part_) {
    count_inside(log, slot.from, slot.to, counts);
    return;
  }
  std::fill(counts.begin(), counts.end(), 0U);
  log.for_each(slot.from, slot.to, [&](const LoggedSample& sample) {
    if (is_in_part(slot, sample)) ++counts[sample.entry];
  });
}

bool SlotSelection::extract_open(Touched& slot) {
  const OpenSlot::View& open = *slot.open;
  if (!budget_.visit(open.entry_count + (slot.complete ? 0 : slot.logged))) return false;
  std::vector<std::uint32_t> ids;
  open.entries.for_each_below(open.entry_count, [&](std::uint32_t id, const HistogramEntry& entry) {
    if (!filter_.wants(entry.thread)) return;
    slot.entries.push_back(entry);
    if (!slot.complete) ids.push_back(id);
  });
  if (slot.entries.empty()) return true;
  if (!slot.complete) {
    std::vector<std::uint32_t> counts(open.entry_count, 0);
    for (std::size_t i = 0; i < ids.size(); ++i) counts[ids[i]] = slot.entries[i].count;
    count_in_window(slot, counts);
    std::size_t left = 0;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      HistogramEntry entry = slot.entries[i];
      entry.count = counts[ids[i]];
      if (entry.count != 0) slot.entries[left++] = entry;
    }
    slot.entries.resize(left);
  }
  group_by_thread(slot.entries);
  return true;
}

bool SlotSelection::extract_sealed(Touched& slot) {
  const Histogram& histogram = slot.sealed->slot->histogram;
  if (!budget_.visit(histogram.entry_count() + slot.logged)) return false;
  struct Wanted {
    std::size_t place = 0;  ///< the log's number of its first stack
    std::size_t stacks = 0;
  };
  std::vector<Wanted> wanted;
  std::size_t place = 0;
  if (filter_.wants_all()) slot.entries.reserve(histogram.entry_count());
  histogram.for_each_thread_counted([&](std::uint32_t thread, std::span<const std::uint8_t> bytes, std::size_t stacks) {
    if (filter_.wants(thread)) {
      wanted.push_back({place, stacks});
      Histogram::for_each_stack(bytes, [&](StackRef ref, std::uint64_t samples) {
        slot.entries.push_back({thread, ref.key(), static_cast<std::uint32_t>(samples)});
      });
    }
    place += stacks;
  });
  if (wanted.empty()) return true;
  std::vector<std::uint32_t> counts(histogram.entry_count(), 0);
  auto all = slot.entries.cbegin();
  for (const Wanted& thread : wanted) {
    for (std::size_t i = 0; i < thread.stacks; ++i) counts[thread.place + i] = (all++)->count;
  }
  count_in_window(slot, counts);
  auto from = slot.entries.cbegin();
  auto to = slot.entries.begin();
  for (const Wanted& thread : wanted) {
    for (std::size_t i = 0; i < thread.stacks; ++i, ++from) {
      const std::uint32_t samples = counts[thread.place + i];
      if (samples != 0) *to++ = {from->thread, from->stack_key, samples};
    }
  }
  slot.entries.erase(to, slot.entries.end());
  return true;
}

void SlotSelection::add_long_waits() {
  collect_long_waits();
  if (long_waits_.empty()) return;
  const WallWindow& used = facts_.used;
  const std::int64_t offset_ns = slots_.back().bounds.wall_offset_ns;
  const MonotonicTime from{used.from.ns - offset_ns};
  const MonotonicTime to{used.to.ns - offset_ns};
  Touched slot{.bounds = {from, to, offset_ns, facts_.period_ns}};
  slot.exact = true;
  slot.is_waiting = true;
  slot.logged = long_waits_.size();
  slot.first = slot.from = from;
  slot.last = {to.ns - 1};
  slot.to = to;
  slot.window = used;
  slot.weight = static_cast<std::uint64_t>(kWaitUnitNs / facts_.period_ns);
  slots_.push_back(std::move(slot));
}

void SlotSelection::collect_long_waits() {
  // Bounds of the slots of the whole snapshot, for their clocks.
  std::vector<const SlotBounds*> bounds;
  for (const SealedSlot& sealed : *snapshot_.sealed) bounds.push_back(&sealed.slot->bounds);
  for (const OpenSlot::View& open : snapshot_.open) bounds.push_back(&open.bounds);
  const auto on_the_wall = [&](MonotonicTime time) {
    const auto after = std::upper_bound(bounds.begin(), bounds.end(), time,
                                        [](MonotonicTime at, const SlotBounds* slot) { return at < slot->start; });
    const SlotBounds& slot = **(after == bounds.begin() ? after : after - 1);
    return WallTime{time.ns + slot.wall_offset_ns};
  };
  const auto add = [&](std::uint32_t thread, std::uint32_t stack_key, MonotonicTime from, MonotonicTime to) {
    if (to <= from || !filter_.wants(thread)) return;
    const WallWindow window{std::max(on_the_wall(from), facts_.used.from), std::min(on_the_wall(to), facts_.used.to)};
    if (window.from < window.to) long_waits_.push_back({thread, stack_key, window});
  };
  const auto add_all = [&](const std::vector<LongWait>& waits) {
    for (const LongWait& wait : waits) add(wait.thread, wait.stack_key, wait.from, wait.to);
  };
  for (const SealedSlot& sealed : *snapshot_.sealed) add_all(sealed.slot->long_waits);
  for (const OpenSlot::View& open : snapshot_.open) add_all(open.long_waits);
  snapshot_.standing_waits.for_each_place([&](std::uint32_t, const StandingWait& wait) {
    if (wait.thread == StandingWait::kNone) return;
    const MonotonicTime seen = snapshot_.waits_seen.of(snapshot_.threads[wait.thread].owner);
    add(wait.thread, wait.stack_key, wait.from, std::min(seen, snapshot_.until));
  });
  std::stable_sort(long_waits_.begin(), long_waits_.end(),
                   [](const WallWait& a, const WallWait& b) { return a.thread < b.thread; });
}

bool SlotSelection::extract_long_waits(Touched& slot) {
  if (!budget_.visit(slot.logged)) return false;
  std::vector<std::uint32_t> counts(long_waits_.size(), 0);
  count_in_window(slot, counts);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] != 0) slot.entries.push_back({long_waits_[i].thread, long_waits_[i].stack_key, counts[i]});
  }
  return true;
}

std::optional<SlotRun> SlotSelection::run_at(std::size_t index, std::size_t count) const {
  if (count > slots_.size() - index || !slots_[index].is_whole()) return std::nullopt;
  const Slot& first = *slots_[index].sealed->slot;
  // A stretch of ten minutes is a sum already.
  if (first.sequence % count != 0 || first.resolution_ns > kNsPerMinute) return std::nullopt;
  SlotRun run{first.sequence, static_cast<std::uint32_t>(count)};
  std::uint64_t samples = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Touched& slot = slots_[index + i];
    if (!slot.is_whole() || slot.sealed->slot->sequence != first.sequence + i) return std::nullopt;
    if (slot.weight != slots_[index].weight) return std::nullopt;
    samples += slot.sealed->slot->quality.stored();
    run.editions += slot.sealed->slot->edition;
  }
  if (samples > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;  // the limit of a HistogramEntry
  return run;
}

std::shared_ptr<const Histogram> SlotSelection::sum_at(std::size_t index, std::size_t& slots) {
  if (filter_.tells_threads_apart()) return nullptr;
  for (const std::size_t count : kRuns) {
    const std::optional<SlotRun> run = run_at(index, count);
    if (!run) continue;
    std::shared_ptr<const Histogram> sum = snapshot_.sums->find(*run);
    if (sum == nullptr) {
      // For one process among many, reading only its own stacks is less work.
      if (!filter_.wants_all()) continue;
      sum = make_sum(index, count);
      if (sum == nullptr) return nullptr;
      snapshot_.sums->keep(*run, sum);
    }
    slots = count;
    sums_.push_back(sum);
    return sum;
  }
  return nullptr;
}

std::shared_ptr<const Histogram> SlotSelection::make_sum(std::size_t index, std::size_t count) {
  struct Part {
    std::uint32_t process = 0;
    std::span<const std::uint8_t> bytes;
  };
  std::vector<Part> parts;
  std::vector<std::shared_ptr<const Histogram>> smaller;
  for (std::size_t i = index; i < index + count;) {
    std::shared_ptr<const Histogram> sum;
    std::size_t used = 1;
    for (const std::size_t part : kRuns) {
      const std::optional<SlotRun> run = part < count ? run_at(i, part) : std::nullopt;
      if (run) sum = snapshot_.sums->find(*run);
      if (sum == nullptr) continue;
      used = part;
      break;
    }
    const Histogram& histogram = sum != nullptr ? *sum : slots_[i].sealed->slot->histogram;
    if (!budget_.visit(histogram.entry_count())) return nullptr;
    histogram.for_each_thread([&](std::uint32_t owner, std::span<const std::uint8_t> bytes) {
      parts.push_back({sum != nullptr ? owner : snapshot_.threads[owner].process, bytes});
    });
    if (sum != nullptr) smaller.push_back(std::move(sum));
    i += used;
  }
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.process < b.process; });

  sum_of_.resize(std::max<std::size_t>(std::size_t{2} * snapshot_.tree.nodes.limit(), 2), 0);
  std::vector<HistogramEntry> entries;
  std::vector<std::uint32_t> keys;
  for (std::size_t i = 0; i < parts.size();) {
    const std::uint32_t process = parts[i].process;
    keys.clear();
    for (; i < parts.size() && parts[i].process == process; ++i) {
      Histogram::for_each_stack(parts[i].bytes, [&](StackRef ref, std::uint64_t samples) {
        std::uint32_t& sum = sum_of_[ref.key()];
        if (sum == 0) keys.push_back(ref.key());
        sum += static_cast<std::uint32_t>(samples);
      });
    }
    for (const std::uint32_t key : keys) entries.push_back({process, key, std::exchange(sum_of_[key], 0U)});
    if (!budget_.check()) return nullptr;
  }
  return std::make_shared<const Histogram>(entries);
}

std::shared_ptr<const Histogram> SlotSelection::sides_of(std::size_t slot, Side asked, StackStates& states) {
  if (!slots_[slot].is_whole() || asked != Side::kBoth || !filter_.wants_all() || snapshot_.hides_idle) return nullptr;
  const Slot& sealed = *slots_[slot].sealed->slot;
  if (sealed.quality.stored() > std::numeric_limits<std::uint32_t>::max()) return nullptr;
  const SlotRun run{sealed.sequence, 1, sealed.edition};
  if (auto known = snapshot_.side_sums->find(run)) return known;
  if (!budget_.visit(sealed.histogram.entry_count())) return nullptr;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> samples;  // by process and side
  Quality quality;
  sealed.histogram.for_each_thread([&](std::uint32_t thread, std::span<const std::uint8_t> bytes) {
    std::uint64_t user = 0;
    std::uint64_t kernel = 0;
    Histogram::for_each_stack(bytes, [&](StackRef ref, std::uint64_t count) {
      states.count(ref, count, quality);
      (states.of(ref.stack).has_kernel() ? kernel : user) += count;
    });
    const std::uint32_t process = snapshot_.threads[thread].process;
    if (user != 0) samples[{process, kUserSide.value}] += user;
    if (kernel != 0) samples[{process, kKernelSide.value}] += kernel;
  });
  // The quality of its stacks must be that of the slot, which count_stored() uses.
  if (quality.whole != sealed.quality.whole || quality.truncated != sealed.quality.truncated) return nullptr;
  std::vector<HistogramEntry> entries;
  for (const auto& [of, count] : samples) {
    entries.push_back({of.first, StackRef{StackId{of.second}}.key(), static_cast<std::uint32_t>(count)});
  }
  auto sides = std::make_shared<const Histogram>(entries);
  snapshot_.side_sums->keep(run, sides);
  return sides;
}

void SlotSelection::count_stored(std::size_t slot, Quality& quality) const {
  const Quality& stored = slots_[slot].sealed->slot->quality;
  quality.whole += stored.whole * slots_[slot].weight;
  for (std::size_t reason = 0; reason < kTruncationCount; ++reason) {
    quality.truncated[reason] += stored.truncated[reason] * slots_[slot].weight;
  }
}

bool SlotSelection::shows(StackRef ref) const {
  if (!snapshot_.hides_idle) return true;
  const std::optional<WaitReason> reason = reason_of(snapshot_.tree, ref);
  return !reason || !is_idle(*reason);
}

bool SlotSelection::read_pairs(const Touched& slot) {
  pairs_.clear();
  const auto add = [&](std::uint32_t thread, StackRef ref, bool wanted) {
    const std::optional<StackId> instead = instead_of(thread);
    pairs_.push_back({thread, instead ? StackRef{*instead}.key() : ref.key(), wanted && shows(ref)});
  };
  if (slot.open != nullptr) {
    if (!budget_.visit(slot.open->entry_count + slot.logged)) return false;
    for (std::uint32_t id = 0; id < slot.open->entry_count; ++id) {
      const HistogramEntry& entry = slot.open->entries[id];
      add(entry.thread, StackRef::from_key(entry.stack_key), filter_.wants(entry.thread));
    }
    return true;
  }
  if (slot.sealed == nullptr) {
    if (!budget_.visit(slot.logged)) return false;
    for (const WallWait& wait : long_waits_) add(wait.thread, StackRef::from_key(wait.stack_key), true);
    return true;
  }
  const Histogram& histogram = slot.sealed->slot->histogram;
  if (!budget_.visit(histogram.entry_count() + slot.logged)) return false;
  histogram.for_each_thread([&](std::uint32_t thread, std::span<const std::uint8_t> bytes) {
    const bool wanted = filter_.wants(thread);
    Histogram::for_each_stack(bytes, [&](StackRef ref, std::uint64_t) { add(thread, ref, wanted); });
  });
  return true;
}

void SlotSelection::warn(std::optional<WallWindow> retained) {
  const WallWindow& asked = facts_.asked;
  std::vector<std::string>& warnings = facts_.warnings;
  warnings.insert(warnings.end(), snapshot_.warnings.begin(), snapshot_.warnings.end());
  if (!retained) {
    warnings.emplace_back("Nothing is retained yet: the profiler has only just started.");
    return;
  }
  WallWindow kept = *retained;
  kept.from = std::min(kept.from, snapshot_.left_out_from.value_or(kept.from));
  warn_of_time(kept);
  if (snapshot_.budget_dropped_until && asked.from < *snapshot_.budget_dropped_until && asked.from < retained->from) {
    warnings.emplace_back("Minutes up to " + to_text(*snapshot_.budget_dropped_until) +
                          " were dropped early to stay within the store's memory budget of " +
                          std::to_string(snapshot_.budget_bytes >> 20) + " MiB: a larger budget keeps more.");
  }
  if (snapshot_.memory_dropped_until && asked.from < *snapshot_.memory_dropped_until && asked.from < retained->from) {
    warnings.emplace_back("Minutes up to " + to_text(*snapshot_.memory_dropped_until) +
                          " were dropped early because the profiler was short of memory.");
  }
  warn_of_given_up();
  if (snapshot_.measure != Measure::kCpu && snapshot_.waits_seen.all.ns == std::numeric_limits<std::int64_t>::min()) {
    warnings.emplace_back("No waiting time is known: waiting threads are not visited, /healthz says why.");
  }
  if (facts_.periods.size() > 1 && snapshot_.measure == Measure::kCpu) {
    warnings.emplace_back("The sampling period changed within the window (" + std::to_string(facts_.periods.size()) +
                          " periods): a sample that stands for more time is counted as several.");
  }
}

/// Warns about losses of users who had more than a share. A viewer who sees only his own samples gets no warning about
/// others.
void SlotSelection::warn_of_given_up() {
  const WallWindow& asked = facts_.asked;
  if (snapshot_.given_up.empty() || slots_.empty()) return;
  std::set<std::uint32_t> wanted;
  if (!filter_.wants_all()) {
    snapshot_.processes.for_each_place([&](std::uint32_t process, const ProcessRecord& record) {
      if (record.in_use() && filter_.wants_process(process)) wanted.insert(record.owner);
    });
  }
  for (const GivenUp& lost : snapshot_.given_up) {
    if (asked.to <= lost.from || lost.until <= asked.from) continue;
    if (snapshot_.only_user && lost.user != *snapshot_.only_user) continue;
    if (!filter_.wants_all() && !wanted.contains(lost.user)) continue;
    std::string warning = "Stacks of " + text_of_user(lost.user) + " were given up, all or some of those from " +
                          to_text(lost.from) + " to " + to_text(lost.until);
    if (lost.dropped_until) warning += ", and the samples themselves up to " + to_text(*lost.dropped_until);
    facts_.warnings.push_back(warning + ", because they took more than a share of the store's memory budget of " +
                              std::to_string(snapshot_.budget_bytes >> 20) +
                              " MiB while other users needed room: a larger budget keeps more.");
  }
}

void SlotSelection::warn_of_threads() {
  if (std::exchange(has_warned_of_threads_, true)) return;
  for (std::size_t slot = slots_.size(); slot-- > 0;) {
    if (resolution_ns(slot) <= kNsPerMinute) continue;
    facts_.warnings.push_back("Threads were not kept apart up to " + to_text(slots_[slot].window.to) +
                              ": those of a process are one there, without an id.");
    return;
  }
}

/// Warns if the window is not within the retained time.
void SlotSelection::warn_of_time(const WallWindow& retained) {
  const WallWindow& asked = facts_.asked;
  std::vector<std::string>& warnings = facts_.warnings;
  const auto& sealed = *snapshot_.sealed;
  const std::uint32_t oldest = sealed.empty() ? snapshot_.open.front().sequence : sealed.front().slot->sequence;
  const bool is_from_beginning = oldest == 1;  // nothing was dropped yet
  const std::string span = to_text(retained.from) + " to " + to_text(retained.to);
  const bool is_early = retained.from.ns - asked.from.ns >= kToldNs;
  const bool is_late = asked.to.ns > retained.to.ns + kSlackNs;
  if (asked.to <= asked.from) {
    warnings.emplace_back("The window is empty: it ends before it begins.");
  } else if (is_from_beginning && asked.to <= retained.from) {
    warnings.emplace_back("The window is before flamed began to sample, at " + to_text(retained.from) +
                          ": there are no samples of it.");
  } else if (slots_.empty() && retained.from < asked.to && asked.from < retained.to) {
    warnings.emplace_back("flamed did not run in the window: there are no samples of it.");
  } else if (slots_.empty()) {
    warnings.emplace_back("The window is outside of the retained time, which is " + span + ".");
  } else if (is_from_beginning && is_early && !is_late) {
    warnings.emplace_back("flamed began to sample at " + to_text(retained.from) +
                          ", after the window's start: there are no samples from before.");
  } else if (is_early || is_late) {
    warnings.emplace_back("The window is partly outside of the retained time, which is " + span + ".");
  }
}

/// Selected samples of the window that are not stored yet.
void SlotSelection::count_pending() {
  if (snapshot_.pending == nullptr || snapshot_.open.empty()) return;
  const std::int64_t offset_ns = snapshot_.open.back().bounds.wall_offset_ns;
  std::unordered_map<ProcessId, std::uint64_t> by_process;
  for (const PendingSample& sample : *snapshot_.pending) {
    const WallTime time{sample.time.ns + offset_ns};
    if (time < facts_.used.from || facts_.used.to <= time || !filter_.wants_thread_id(sample.tid)) continue;
    ++by_process[sample.process];
  }
  if (by_process.empty()) return;
  snapshot_.processes.for_each_place([&](std::uint32_t process, const ProcessRecord& record) {
    const auto found = record.in_use() ? by_process.find(record.id) : by_process.end();
    if (found == by_process.end()) return;
    if (snapshot_.shows(record) && filter_.wants_process(process)) facts_.quality.pending += found->second;
  });
}

void SlotSelection::find_gaps() {
  const WallWindow& used = facts_.used;
  std::copy_if(snapshot_.gaps->begin(), snapshot_.gaps->end(), std::back_inserter(facts_.missing),
               [&](const Gap& gap) { return gap.from < used.to && used.from < gap.to; });
  if (snapshot_.only_user) {
    for (Gap& gap : facts_.missing) gap.lost_samples = 0;  // they may be other users'
  }
  std::stable_sort(facts_.missing.begin(), facts_.missing.end(),
                   [](const Gap& a, const Gap& b) { return a.from < b.from; });
  if (std::optional<std::string> warning = describe(facts_.missing)) facts_.warnings.push_back(*std::move(warning));
}

}  // namespace flamed::store
