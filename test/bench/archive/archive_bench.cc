// SPDX-License-Identifier: Apache-2.0
//
// The size of history on disk and the CPU time for it, as one JSON object on stdout: of the host of synthetic_host.h,
// with a file every `hours`. Writes to a new folder in $TMPDIR, or /tmp.
//
//   archive_bench [minutes [hours]]          (default 1440 6)
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "archive/codec/additions.h"
#include "archive/codec/minute.h"
#include "archive/codec/samples.h"
#include "archive/codec/stack_places.h"
#include "archive/codec/sum.h"
#include "archive/files/archive.h"
#include "archive/numbering/numbering.h"
#include "archive/numbering/sums.h"
#include "base/clock.h"
#include "store/ring/snapshot_data.h"
#include "store/ring/store.h"
#include "test/bench/store/synthetic_host.h"
#include "test/support/manual_clock.h"

namespace flamed::archive {
namespace {

constexpr WallTime kNoon{1'767'268'800 * kNsPerSecond};

/// CPU time of this thread, so that the figures hold on a busy machine too.
double now_us() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

Numbering new_numbering() {
  return Numbering([](ModuleId id) {
    return Module{ModuleKind::kFile, "/usr/lib/lib" + std::to_string(id.value), {}};
  });
}

struct Kept {
  std::vector<std::byte> additions, minute;
};

struct Totals {
  double minutes = 0, pairs = 0, pair_bytes = 0, addition_bytes = 0;
  double number_us = 0, pack_us = 0, append_us = 0, slowest_us = 0, read_us = 0, file_bytes = 0;
  double so_far_us = 0, sum_us = 0, write_sums_us = 0, samples = 0, sample_bytes = 0, sample_us = 0;
};

/// False: what was written can't be read.
bool read_back(const std::vector<Kept>& kept, Totals& totals) {
  const double began = now_us();
  StackPlaces places;
  for (const Kept& one : kept) {
    const Result<Additions> additions = decode_additions(one.additions, places.size());
    if (!additions) return false;
    places.add(*additions);
    if (!decode_minute(one.minute, places)) return false;
  }
  totals.read_us += now_us() - began;
  return true;
}

/// Of the last ten minutes.
bool pack_samples(const Numbering& numbering, const store::Snapshot& snapshot, Totals& totals) {
  const std::vector<store::SealedSlot>& sealed = *snapshot.data().sealed;
  const double began = now_us();
  for (std::size_t i = sealed.size() - std::min<std::size_t>(sealed.size(), 10); i < sealed.size(); ++i) {
    const std::optional<std::vector<Sample>> samples = numbering.samples_of(sealed[i]);
    if (!samples) continue;
    const Result<std::vector<std::byte>> block = encode(std::span<const Sample>(*samples));
    if (!block) return false;
    totals.samples += static_cast<double>(samples->size());
    totals.sample_bytes += static_cast<double>(block->size());
  }
  totals.sample_us = now_us() - began;
  return totals.samples != 0;
}

bool run_host(int minutes, int hours, const std::filesystem::path& folder, Totals& totals) {
  Archive::Options options;
  options.period_ns = hours * 60 * kNsPerMinute;
  Archive archive(folder, options);
  ManualClock clock({1000 * kNsPerSecond}, kNoon);
  store::Store store({24 * 60 * kNsPerMinute, 256U << 20}, clock, store::kPeriodNs);
  store::SyntheticHost host;
  std::optional<Numbering> numbering;
  Sums sums;
  std::vector<Kept> kept;
  const auto write = [&](const store::Snapshot& snapshot, const store::Slot& slot, Ending ending) {
    const Result<bool> is_new_session = archive.prepare(slot.bounds.wall_start());
    if (!is_new_session) {
      std::fprintf(stderr, "%s\n", is_new_session.error().message().c_str());
      return false;
    }
    if (*is_new_session) {
      if (!read_back(kept, totals)) return false;
      kept.clear();
      numbering.emplace(new_numbering());
      sums = {};
    }
    const double began = now_us();
    const Numbering::Numbered numbered = numbering->take(snapshot, slot, ending);
    const double numbered_at = now_us();
    Result<std::vector<std::byte>> additions = encode(numbered.additions);
    Result<std::vector<std::byte>> minute = encode(numbered.minute, numbering->places());
    if (!additions || !minute) return false;
    const double packed_at = now_us();
    if (!archive.append(numbered.minute, {*additions, *minute}, ending)) return false;
    const double ended = now_us();
    totals.slowest_us = std::max(totals.slowest_us, ended - began);
    if (ending == Ending::kSoFar) {
      totals.so_far_us += ended - began;
      return true;
    }
    std::optional<Sum> sum = sums.takes(numbered.minute) ? std::nullopt : sums.finish();
    sums.add(snapshot, slot, numbered.minute, numbered.additions.gaps);
    const double summed_at = now_us();
    totals.sum_us += summed_at - ended;
    if (sum) {
      const Result<SumBlocks> blocks = encode(*sum);
      if (!blocks || !archive.add_sum(*blocks)) return false;
      totals.write_sums_us += now_us() - summed_at;
    }
    totals.minutes += 1;
    totals.pairs += static_cast<double>(numbered.minute.pairs.size());
    totals.pair_bytes += static_cast<double>(minute->size());
    totals.addition_bytes += static_cast<double>(additions->size());
    totals.number_us += numbered_at - began;
    totals.pack_us += packed_at - numbered_at;
    totals.append_us += ended - packed_at;
    kept.push_back({std::move(*additions), std::move(*minute)});
    return true;
  };
  std::uint32_t last = 0;
  for (int second = 0; second < minutes * 60; ++second) {
    host.run_second(clock.monotonic());
    clock.advance_ns(kNsPerSecond);
    host.store_second(store);
    store.advance(clock.monotonic());
    if (second % 60 != 10 && second % 60 != 35) continue;
    const store::Snapshot snapshot = store.snapshot();
    for (const store::SealedSlot& sealed : *snapshot.data().sealed) {
      if (sealed.slot->sequence <= last) continue;
      last = sealed.slot->sequence;
      if (!write(snapshot, *sealed.slot, Ending::kOver)) return false;
    }
    if (second % 60 != 35) continue;
    const store::Slot so_far = snapshot.data().open.front().until(clock.monotonic());
    if (!write(snapshot, so_far, Ending::kSoFar)) return false;
  }
  if (!pack_samples(*numbering, store.snapshot(), totals)) return false;
  totals.file_bytes = static_cast<double>(archive.stats().bytes);
  return read_back(kept, totals);
}

}  // namespace
}  // namespace flamed::archive

int main(int argc, char** argv) {
  const int minutes = argc > 1 ? std::max(std::atoi(argv[1]), 1) : 24 * 60;
  const int hours = argc > 2 ? std::max(std::atoi(argv[2]), 1) : 6;
  flamed::archive::Totals totals;
  std::string folder = (std::filesystem::temp_directory_path() / "archive_bench-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return 1;
  const bool is_good = flamed::archive::run_host(minutes, hours, folder, totals);
  std::filesystem::remove_all(folder);
  if (!is_good) {
    std::fputs("what was written can't be read\n", stderr);
    return 1;
  }
  std::printf("{\n");
  std::printf("  \"minutes\": %.0f,\n", totals.minutes);
  std::printf("  \"pairs\": %.0f,\n", totals.pairs);
  std::printf("  \"bytes_per_pair\": %.3f,\n", totals.pair_bytes / totals.pairs);
  std::printf("  \"pair_bytes\": %.0f,\n", totals.pair_bytes);
  std::printf("  \"dictionary_bytes\": %.0f,\n", totals.addition_bytes);
  std::printf("  \"file_bytes\": %.0f,\n", totals.file_bytes);
  std::printf("  \"number_us_per_minute\": %.0f,\n", totals.number_us / totals.minutes);
  std::printf("  \"pack_us_per_minute\": %.0f,\n", totals.pack_us / totals.minutes);
  std::printf("  \"append_us_per_minute\": %.0f,\n", totals.append_us / totals.minutes);
  std::printf("  \"so_far_us_per_minute\": %.0f,\n", totals.so_far_us / totals.minutes);
  std::printf("  \"sum_us_per_minute\": %.0f,\n", totals.sum_us / totals.minutes);
  std::printf("  \"write_sums_us_per_minute\": %.0f,\n", totals.write_sums_us / totals.minutes);
  std::printf("  \"bytes_per_single_sample\": %.2f,\n", totals.sample_bytes / totals.samples);
  std::printf("  \"single_sample_bytes_of_ten_minutes\": %.0f,\n", totals.sample_bytes);
  std::printf("  \"single_samples_us\": %.0f,\n", totals.sample_us);
  std::printf("  \"slowest_minute_us\": %.0f,\n", totals.slowest_us);
  std::printf("  \"read_us_per_minute\": %.0f\n", totals.read_us / totals.minutes);
  std::printf("}\n");
  return 0;
}
