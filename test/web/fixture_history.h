// SPDX-License-Identifier: Apache-2.0
//
// FixtureHistory: three hours of a synthetic machine, the same at every start, for tests of the page in a browser:
// services, containers, a build and a backup that ended, a burst of two seconds, work at fixed parts of the second, a
// time of sleep, lost samples, and names that would be markup if they were not shown as text.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "test/unit/api/answer/fake_sources.h"

namespace flamed::api {

/// Names the frames that say why a thread waits, as the daemon does.
class WaitNamer final : public store::FrameNamer {
 public:
  explicit WaitNamer(store::FrameNamer& others) : others_(others) {}
  std::vector<std::shared_ptr<const store::InlineChain>> name(std::span<const Frame> frames) override;

 private:
  store::FrameNamer& others_;
};

/// The kernel's accounts agree with the samples, except for a few per mille.
class FixtureSources final : public FakeSources {
 public:
  using FakeSources::FakeSources;
  [[nodiscard]] store::FrameNamer& namer() override { return wait_namer_; }
  /// One instruction at each place outside of the kernel, in a function of three.
  [[nodiscard]] MachineCode code_at(const CodeQuestion& question) override;
  /// Of one file all lines, of another none.
  [[nodiscard]] SourceFile source_file(const SourceQuestion& question) override;
  [[nodiscard]] CpuAccount machine_cpu(const store::WallWindow& window) const override;

  /// Samples of all processes in each second of the wall clock, the first beginning at `first_second`.
  std::vector<std::uint64_t> samples_by_second;
  std::int64_t first_second = 0;

 private:
  WaitNamer wait_namer_{namer_};
};

/// One thread's work.
class FixtureHistory {
 public:
  /// How busy something is in a second, counted from FakeSources::kNowNs and negative before it. Only ratios matter.
  using Weight = std::function<double(int second)>;

  FixtureHistory();
  [[nodiscard]] FixtureSources& sources() { return sources_; }
  /// Lets this many seconds pass, in which the services go on working. Called from one thread.
  void go_on(int seconds);

 private:
  /// `total` samples of one stack spread over the seconds [from, to), and over [phase_from_ms, phase_to_ms) of each.
  struct Load {
    ProcessId process{};
    std::string comm{};
    int threads = 1;
    std::vector<Frame> frames{};
    std::uint64_t total = 0;
    int from = 0;
    int to = 0;
    int phase_from_ms = 0;
    int phase_to_ms = 1000;
    Weight weight{};
    std::optional<store::Truncation> truncation{};
    double weight_sum = 0;
    double weight_so_far = 0;
  };

  void add_services();
  void add_past();
  void add_hostile();
  void add_batches();
  void add_waits();
  void add(const Load& load);
  void know(const ProcessId& id, const std::string& comm, const std::string& unit, std::optional<int> ended = {});
  void name_kinds();
  void replay(int from, int to);
  /// Visits of the service's threads: of each ten seconds a worker waits nine.
  void visit_threads(int second);

  FixtureSources sources_;
  std::vector<store::ProcessInfo> known_;
  std::vector<Load> loads_;
  std::vector<std::vector<Frame>> waits_;  ///< stacks of the service's waiting threads
  int now_s_ = 0;
};

}  // namespace flamed::api
