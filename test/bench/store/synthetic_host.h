// SPDX-License-Identifier: Apache-2.0
//
// The host of the store's benchmarks: two busy CPUs at 99 Hz, long-running services with a large but finite set of
// stacks, and short-lived programs. The same samples in each run.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "base/clock.h"
#include "base/identity.h"
#include "store/ring/store.h"

namespace flamed::store {

inline constexpr std::int64_t kPeriodNs = kNsPerSecond / 99;

/// A program has a pool of stacks, which are walks down a fixed call graph. A function's first callee is by far the
/// most frequent, so that stacks differ mostly in their innermost frames. The distribution of samples is skewed as in
/// real programs: an eighth of the pool takes half of the samples. One sample in fifty ends at a new address.
struct Program {
  std::uint32_t module = 0;
  std::int32_t pid = 0;
  std::uint64_t start = 0;
  int threads = 1;

  static constexpr double kPoolSize = 1500;

  void stack(std::mt19937_64& random, std::vector<Frame>& out) const {
    out.clear();
    std::uniform_real_distribution<double> unit(0, 1);
    double skewed = std::pow(unit(random), 3);
    std::minstd_rand walk(static_cast<std::uint32_t>(skewed * kPoolSize) * 64 + module + 1);
    std::uint64_t function = 1;
    std::size_t depth = 10 + walk() % 40;
    for (std::size_t i = 0; i < depth; ++i) {
      double skew = unit(walk);
      double first = i + 6 < depth ? 0.97 : 0.6;
      auto callee = static_cast<std::uint64_t>(skew < first ? 0 : skew < 0.99 ? 1 : 2);
      function = (function * 2654435761U + callee * 40503U + 17) % 4000;
      out.push_back({ModuleId{module}, (function << 8) | (callee * 8)});
    }
    if (random() % 50 == 0) out.back().offset = random() & 0xfffff;
  }
};

class SyntheticHost {
 public:
  static constexpr int kSamplesPerSecond = 2 * 99;

  SyntheticHost() {
    for (std::uint32_t i = 0; i < 30; ++i) {
      services_.push_back({16 + i, static_cast<std::int32_t>(500 + i), 1, i < 4 ? 16 : 2});
    }
  }

  /// Makes the samples of the next second.
  void run_second(MonotonicTime begins) {
    begins_ = begins;
    if (second_++ % 60 == 0) start_short_lived();
    for (Prepared& sample : drain_) {
      // Half of the time goes to four services, a fifth to programs that live for a minute.
      std::uint64_t dice = random_() % 10;
      sample.program = dice < 5   ? services_[random_() % 4]
                       : dice < 8 ? services_[random_() % services_.size()]
                                  : short_lived_[random_() % short_lived_.size()];
      sample.program.stack(random_, sample.frames);
      sample.tid = sample.program.pid +
                   static_cast<std::int32_t>(random_() % static_cast<std::uint64_t>(sample.program.threads));
    }
  }

  void store_second(Store& store) const {
    for (std::size_t i = 0; i < drain_.size(); ++i) {
      // Two CPUs whose timers fire 4 ms apart, within some microseconds.
      const auto cpu = static_cast<std::uint16_t>(i % 2);
      const auto since = static_cast<std::int64_t>(i / 2) * kPeriodNs + cpu * 4 * kNsPerMs;
      const auto late = static_cast<std::int64_t>((i * 2654435761U) >> 16 & 0x1fff);
      const Prepared& sample = drain_[i];
      ProcessId process{sample.program.pid, sample.program.start};
      store.add({{begins_.ns + since + late}, process, sample.tid, "program", sample.frames, {}, cpu});
    }
  }

  /// That run now, until others do.
  [[nodiscard]] const std::vector<Program>& short_lived() const { return short_lived_; }

 private:
  struct Prepared {
    Program program;
    std::int32_t tid = 0;
    std::vector<Frame> frames;
  };

  void start_short_lived() {
    short_lived_.clear();
    const auto minute = static_cast<std::uint64_t>(second_ / 60);
    for (int i = 0; i < 60; ++i) {
      short_lived_.push_back({static_cast<std::uint32_t>(60 + random_() % 8), next_pid_++, minute, 1});
    }
  }

  std::mt19937_64 random_{1};
  std::vector<Program> services_, short_lived_;
  std::vector<Prepared> drain_ = std::vector<Prepared>(kSamplesPerSecond);
  MonotonicTime begins_;
  int second_ = 0;
  std::int32_t next_pid_ = 10'000;
};

}  // namespace flamed::store
