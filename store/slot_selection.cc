// SPDX-License-Identifier: Apache-2.0
#include "store/slot_selection.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <set>
#include <string>
#include <utility>

#include "store/query.h"

namespace flamed::store {
namespace {

// Who asks for "until now" reads the clock a moment before or after the snapshot is taken.
constexpr std::int64_t kSlackNs = 2 * kNsPerSecond;

void widen(std::optional<WallWindow>& window, const WallWindow& by) {
  if (!window) {
    window = by;
  } else {
    window->from = std::min(window->from, by.from);
    window->to = std::max(window->to, by.to);
  }
}

/// Keeps the order within a thread.
void group_by_thread(std::vector<HistogramEntry>& entries, std::size_t threads) {
  std::vector<std::uint32_t> next(threads + 1, 0);
  for (const HistogramEntry& entry : entries) ++next[entry.thread + 1];
  for (std::size_t i = 1; i < next.size(); ++i) next[i] += next[i - 1];
  std::vector<HistogramEntry> grouped(entries.size());
  for (const HistogramEntry& entry : entries) grouped[next[entry.thread]++] = entry;
  entries = std::move(grouped);
}

/// What a slot covers. An open one ends in the future; what it holds ends now.
WallWindow window_of(const SlotBounds& bounds, const SnapshotData& snapshot) {
  const MonotonicTime end = std::max(bounds.start, std::min(bounds.end, snapshot.until));
  return {bounds.wall_start(), {end.ns + bounds.wall_offset_ns}};
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
  for (const SealedSlot& slot : data.sealed) widen(retained, window_of(slot.slot->bounds, data));
  for (const OpenSlot::View& slot : data.open) widen(retained, window_of(slot.bounds, data));
  return retained;
}

SlotSelection::SlotSelection(const SnapshotData& snapshot, const Selection& selection, QueryBudget& budget, Want want)
    : snapshot_(snapshot), budget_(budget), filter_(snapshot, selection) {
  const WallWindow& asked = selection.window;
  facts_.asked = asked;
  facts_.used = asked;
  facts_.period_ns = snapshot.period_ns;

  std::optional<WallWindow> retained;
  std::vector<WallWindow> windows;  // of slots_
  std::vector<const Quality*> qualities;
  const auto consider = [&](Touched slot, const Quality& quality, bool exact, std::size_t samples, MonotonicTime first,
                            MonotonicTime last) {
    const WallWindow window = window_of(slot.bounds, snapshot);
    widen(retained, window);
    const std::int64_t offset_ns = slot.bounds.wall_offset_ns;
    slot.exact = exact;
    slot.first = first;
    slot.last = last;
    slot.from = {asked.from.ns - offset_ns};
    slot.to = {asked.to.ns - offset_ns};
    slot.complete = !exact || samples == 0 || (slot.from <= first && last < slot.to);
    if (asked.to <= asked.from) return;
    const bool overlaps = window.from < asked.to && asked.from < window.to;
    // Samples that came late are in a slot after their own minute; nothing else is outside of its slot.
    const bool has_late = exact && samples != 0 && first < slot.to && slot.from <= last;
    if (!overlaps && !has_late) return;
    slots_.push_back(std::move(slot));
    windows.push_back(overlaps ? window : WallWindow{asked.from, asked.from});
    qualities.push_back(&quality);
  };
  for (const SealedSlot& sealed : snapshot.sealed) {
    const SampleLog* log = sealed.log.get();
    const bool exact = log != nullptr;
    consider({.bounds = sealed.slot->bounds, .sealed = &sealed}, sealed.slot->quality, exact, exact ? log->count() : 0,
             exact ? log->first() : MonotonicTime{}, exact ? log->last() : MonotonicTime{});
  }
  for (const OpenSlot::View& open : snapshot.open) {
    consider({.bounds = open.bounds, .open = &open}, open.quality, open.log.whole(), open.log.count(), open.log.first(),
             open.log.last());
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
    quality += *qualities[i];
    facts_.period_ns = slots_[i].bounds.period_ns;
  }
  facts_.quality.lost = quality.lost;
  if (used) facts_.used = *used;
  if (begin < end && slots_[begin].exact && slots_[end - 1].exact) facts_.resolution_ns = 1;
  slots_.erase(slots_.begin() + static_cast<std::ptrdiff_t>(end), slots_.end());
  slots_.erase(slots_.begin(), slots_.begin() + static_cast<std::ptrdiff_t>(begin));
  warn(retained);
  if (shortened) {
    facts_.warnings.push_back("Samples are kept one by one only from " + to_text(facts_.used.from) + " to " +
                              to_text(facts_.used.to) + " of the window: the rest is left out.");
  }
}

Error SlotSelection::no_samples_error() {
  return Error(
      "the samples of this window are no longer kept one by one: ask for a later window, or for an answer that needs "
      "only "
      "the minutes' counts",
      ENODATA);
}

bool SlotSelection::extract(Touched& slot) {
  if (std::exchange(slot.extracted, true)) return true;
  std::vector<std::uint32_t> counts;  // by number in the log, where only a part of the samples is inside
  const auto count = [&](const LoggedSample& sample) { ++counts[sample.entry]; };
  if (slot.open != nullptr) {
    const OpenSlot::View& open = *slot.open;
    if (!budget_.visit(open.entry_count)) return false;
    if (!slot.complete) {
      if (!budget_.visit(open.log.count())) return false;
      counts.assign(open.entry_count, 0);
      open.log.for_each(slot.from, slot.to, count);
    }
    for (std::uint32_t id = 0; id < open.entry_count; ++id) {
      if (!slot.complete && counts[id] == 0) continue;
      HistogramEntry entry = open.entries[id];
      if (!filter_.wants(entry.thread)) continue;
      if (!slot.complete) entry.count = counts[id];
      slot.entries.push_back(entry);
    }
    group_by_thread(slot.entries, snapshot_.threads.limit());
    return true;
  }
  const Histogram& histogram = slot.sealed->slot->histogram;
  if (!budget_.visit(histogram.entry_count() + slot.sealed->log->count())) return false;
  counts.assign(histogram.entry_count(), 0);
  slot.sealed->log->for_each(slot.from, slot.to, count);
  std::size_t place = 0;
  histogram.for_each_thread([&](std::uint32_t thread, std::span<const std::uint8_t> bytes) {
    const bool wanted = filter_.wants(thread);
    Histogram::for_each_stack(bytes, [&](StackRef ref, std::uint64_t) {
      const std::uint32_t samples = counts[place++];
      if (wanted && samples != 0) slot.entries.push_back({thread, ref.key(), samples});
    });
  });
  return true;
}

bool SlotSelection::read_pairs(const Touched& slot) {
  pairs_.clear();
  if (slot.open != nullptr) {
    if (!budget_.visit(slot.open->entry_count + slot.open->log.count())) return false;
    for (std::uint32_t id = 0; id < slot.open->entry_count; ++id) {
      const HistogramEntry& entry = slot.open->entries[id];
      pairs_.push_back({entry.thread, entry.stack_key, filter_.wants(entry.thread)});
    }
    return true;
  }
  const Histogram& histogram = slot.sealed->slot->histogram;
  if (!budget_.visit(histogram.entry_count() + slot.sealed->log->count())) return false;
  histogram.for_each_thread([&](std::uint32_t thread, std::span<const std::uint8_t> bytes) {
    const bool wanted = filter_.wants(thread);
    Histogram::for_each_stack(bytes, [&](StackRef ref, std::uint64_t) {
      pairs_.push_back({thread, ref.key(), wanted});
    });
  });
  return true;
}

void SlotSelection::warn(std::optional<WallWindow> retained) {
  const WallWindow& asked = facts_.asked;
  std::vector<std::string>& warnings = facts_.warnings;
  if (!retained) {
    warnings.emplace_back("Nothing is retained yet: the profiler has only just started.");
    return;
  }
  const std::string span = to_text(retained->from) + " to " + to_text(retained->to);
  if (asked.to <= asked.from) {
    warnings.emplace_back("The window is empty: it ends before it begins.");
  } else if (slots_.empty()) {
    warnings.emplace_back("The window lies outside of what is retained, which is " + span + ".");
  } else if (asked.from < retained->from || asked.to.ns > retained->to.ns + kSlackNs) {
    warnings.emplace_back("The window lies partly outside of what is retained, which is " + span + ".");
  }
  if (snapshot_.budget_dropped_until && asked.from < *snapshot_.budget_dropped_until && asked.from < retained->from) {
    warnings.emplace_back("Minutes up to " + to_text(*snapshot_.budget_dropped_until) +
                          " were dropped early to stay within the store's memory budget of " +
                          std::to_string(snapshot_.budget_bytes >> 20) + " MiB: a larger budget keeps more.");
  }
  std::set<std::int64_t> periods;
  for (const Touched& slot : slots_) periods.insert(slot.bounds.period_ns);
  if (periods.size() > 1) {
    warnings.emplace_back("The sampling period changed within the window (" + std::to_string(periods.size()) +
                          " periods): compare times, not sample counts.");
  }
}

}  // namespace flamed::store
