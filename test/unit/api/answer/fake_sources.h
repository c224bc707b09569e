// SPDX-License-Identifier: Apache-2.0
//
// A daemon without a sampler: a real store with the tests' content, and names derived from addresses.
#pragma once

#include <unistd.h>

#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "api/sources.h"
#include "store/ring/store.h"
#include "test/support/manual_clock.h"

namespace flamed::api {

/// Names each frame by its offset, as the test sets it. Other offsets are unknown.
class FakeNamer final : public store::FrameNamer {
 public:
  std::vector<std::shared_ptr<const store::InlineChain>> name(std::span<const Frame> frames) override {
    if (fails) throw std::runtime_error("the namer fell over");
    std::vector<std::shared_ptr<const store::InlineChain>> chains;
    for (const Frame& frame : frames) {
      if (frame.module == kHiddenModule) {
        chains.push_back(std::make_shared<store::InlineChain>(
            store::InlineChain{{"[not shown]", "", store::FrameKind::kUnknown, "not dumpable"}}));
        continue;
      }
      const auto known = names.find(frame.offset);
      chains.push_back(std::make_shared<store::InlineChain>(store::InlineChain{
          known != names.end() ? known->second
                               : store::NamedFrame{"[unknown]", "", store::FrameKind::kUnknown, "no symbols"}}));
    }
    return chains;
  }

  std::map<std::uint64_t, store::NamedFrame> names;
  bool fails = false;
};

class FakeSources : public Sources {
 public:
  static constexpr std::int64_t kPeriodNs = 10'000'000;
  /// 2026-01-31T14:05:30Z
  static constexpr std::int64_t kNowNs = 1769868330 * kNsPerSecond;

  /// The clock begins `history_ns` before kNowNs. A test that fills in a history moves it on to kNowNs.
  explicit FakeSources(store::Limits limits = {}, std::int64_t history_ns = 0)
      : clock_({3600 * kNsPerSecond}, {kNowNs - history_ns}),
        store_(limits, clock_, kPeriodNs),
        started_{kNowNs - history_ns} {}

  [[nodiscard]] store::Snapshot await_snapshot() const override { return store_.snapshot(); }
  /// There is no disk; it remembers what was asked of it.
  [[nodiscard]] store::Snapshot with_history(const store::Snapshot& snapshot,
                                             std::span<const store::WallWindow> /*windows*/,
                                             const store::Detail& detail) const override {
    asked_of_disk = detail;
    return snapshot;
  }
  mutable store::Detail asked_of_disk;
  [[nodiscard]] std::uint64_t await_revision() const override { return store_.revision(); }
  [[nodiscard]] store::FrameNamer& namer() override { return namer_; }
  [[nodiscard]] Health health() const override { return health_; }
  [[nodiscard]] std::vector<Metric> metrics() const override { return metrics_; }
  [[nodiscard]] const Clock& clock() const override { return clock_; }
  [[nodiscard]] std::string version() const override { return "1.2.3"; }
  [[nodiscard]] double frequency_hz() const override { return 100; }
  [[nodiscard]] WallTime started() const override { return started_; }
  [[nodiscard]] std::size_t cpus() const override { return 4; }
  [[nodiscard]] std::optional<std::uint32_t> user_of(std::int32_t pid) const override {
    const auto known = running_.find(pid);
    return known != running_.end() ? std::optional(known->second) : std::nullopt;
  }
  /// Remembers what was asked.
  [[nodiscard]] SourceFile source_file(const SourceQuestion& question) override {
    asked_sources_.push_back(question);
    return source_file_;
  }
  [[nodiscard]] std::optional<OffCpuAnswer> take_off_cpu(WallTime asked) override {
    return OffCpuAnswer{store_.snapshot(), {{asked.ns - kNsPerSecond}, asked}};
  }

  [[nodiscard]] std::vector<PressedMinute> pressed_minutes(const store::WallWindow& window) const override {
    std::vector<PressedMinute> found;
    for (const PressedMinute& minute : pressed_) {
      if (window.from <= minute.start && minute.start < window.to) found.push_back(minute);
    }
    return found;
  }
  [[nodiscard]] CpuAccount machine_cpu(const store::WallWindow& /*window*/) const override { return machine_cpu_; }
  [[nodiscard]] CpuAccount process_cpu(const store::WallWindow& /*window*/,
                                       const store::ProcessInfo& process) const override {
    const auto known = process_cpu_.find(process.id.pid);
    return known != process_cpu_.end() ? known->second : CpuAccount{{}, "it ended between readings"};
  }

  [[nodiscard]] ThreadTime thread_time(const store::WallWindow& /*window*/) const override { return thread_time_; }

  void add_process(const ProcessId& id, const std::string& comm) {
    store_.update_process({id, comm, "/usr/bin/" + comm, 0, WallTime{kNowNs - kNsPerMinute}, std::nullopt});
  }

  /// `count` samples `age_ns` ago. Frames are named by their text, outermost first.
  void add_samples(const ProcessId& id, const std::string& comm, const std::vector<std::string>& names,
                   std::uint64_t count, std::int64_t age_ns = 10 * kNsPerSecond, std::uint32_t owner = ::getuid(),
                   bool is_hidden = false) {
    const std::vector<Frame> frames = frames_of(names);
    store::StackSample sample{{clock_.monotonic().ns - age_ns}, id, id.pid, comm, frames, std::nullopt};
    sample.owner = owner;
    sample.is_hidden = is_hidden;
    for (std::uint64_t i = 0; i < count; ++i) store_.add(sample);
  }

  std::vector<Frame> frames_of(const std::vector<std::string>& names) {
    std::vector<Frame> frames;
    for (const std::string& name : names) frames.push_back({kFirstFreeModule, offset_of(name)});
    return frames;
  }

  Health health_{true, true, {{"sampler", true, "99 Hz on 2 CPUs"}}};
  std::vector<Metric> metrics_{{"flamed_samples_total", "Samples.", Metric::Type::kCounter, {{{}, 42}}}};
  std::map<std::int32_t, std::uint32_t> running_;  ///< pid to user
  SourceFile source_file_{"the test has no sources"};
  std::vector<SourceQuestion> asked_sources_;
  std::vector<PressedMinute> pressed_;
  CpuAccount machine_cpu_{{}, "nobody read it"};
  ThreadTime thread_time_{.reason = "nobody counted them"};
  std::map<std::int32_t, CpuAccount> process_cpu_;
  FakeNamer namer_;
  ManualClock clock_;
  store::Store store_;
  const WallTime started_;

 private:
  std::uint64_t offset_of(const std::string& name) {
    for (const auto& [offset, frame] : namer_.names) {
      if (frame.name == name) return offset;
    }
    const std::uint64_t offset = namer_.names.size() + 1;
    namer_.names[offset] = {name, "victim", store::FrameKind::kNative, ""};
    return offset;
  }
};

}  // namespace flamed::api
