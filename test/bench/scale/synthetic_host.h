// SPDX-License-Identifier: Apache-2.0
//
// SyntheticHost: a recording multiplied to any number of CPUs and processes. Every process is a copy of a recorded one
// with a pid of its own. Each sample is of a random process, on any CPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "base/clock.h"
#include "test/bench/scale/recording.h"

namespace flamed::bench {

class SyntheticHost {
 public:
  using Record = std::vector<std::byte>;
  static constexpr int kHertz = 99;

  /// The distribution of CPU time: the n-th process has a share of 1/n, about as on real machines, where few processes
  /// use nearly all. Or all have equal shares, so that CPU caches do not help: the worst case.
  enum class Shares : std::uint8_t { kFewMuch, kEven };

  SyntheticHost(const Recording& recording, std::size_t processes, std::size_t cpus, Shares shares);

  /// The kernel's records of a process's start: fork, exec, mappings, at `time`.
  [[nodiscard]] std::vector<Record> birth(std::size_t process, MonotonicTime time) const;

  /// Fills the rings with the samples of the second that begins at `start`. The same seed gives the same samples.
  void sample_second(MonotonicTime start, std::uint64_t seed);

  /// Each CPU's records, one after the other, as in its ring of samples.
  [[nodiscard]] const std::vector<std::vector<std::byte>>& rings() const { return rings_; }
  [[nodiscard]] std::size_t processes() const { return processes_; }
  [[nodiscard]] std::size_t samples_per_second() const { return rings_.size() * kHertz; }

 private:
  [[nodiscard]] std::size_t choose(std::minstd_rand& random) const;

  const Recording& recording_;
  const std::size_t processes_;
  const Shares shares_;
  std::vector<std::vector<std::byte>> rings_;
};

}  // namespace flamed::bench
