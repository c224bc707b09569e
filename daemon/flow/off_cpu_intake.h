// SPDX-License-Identifier: Apache-2.0
//
// OffCpuIntake: the stacks of the exact mode of waiting, until their times are known: then they make a snapshot of
// their own, which answers like one of the store.
//
// add() and without_program() belong to the ingest thread, the others to any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/identity.h"
#include "daemon/waits/off_cpu_capture.h"
#include "store/model/process_info.h"
#include "store/ring/store.h"

namespace flamed::daemon {

class OffCpuIntake {
 public:
  /// Stacks that are kept; the time of further ones is told without a stack.
  static constexpr std::size_t kMostStacks = 100'000;
  /// Frames of different stacks.
  static constexpr std::size_t kMostFrames = 1'000'000;

  /// `name_of`: the kernel function at an address; empty: not known.
  explicit OffCpuIntake(std::function<std::string(std::uint64_t)> name_of) : name_of_(std::move(name_of)) {}

  /// The kernel's part of a stack, innermost first, without the program that took it, and the scheduler's functions, as
  /// in stacks of visits.
  [[nodiscard]] std::span<const std::uint64_t> without_program(std::span<const std::uint64_t> kernel);

  /// Of a wait with this number (flamed_wait.switches). The last frame says why it waits.
  void add(const store::StackSample& sample, std::uint64_t number);

  /// Another capture begins.
  void clear();
  /// The capture's waiting time. `processes`: what is known of its processes. `wakers`: gets the names of frames that
  /// say who ended a wait (store::waker_frame()).
  [[nodiscard]] store::Snapshot take_snapshot(const OffCpuCapture::Outcome& outcome,
                                              std::span<const store::ProcessInfo> processes, const Clock& clock,
                                              std::vector<std::string>& wakers);

 private:
  struct Kept {
    store::StackSample value;  ///< its borrowed parts are these, or in frames_:
    std::string comm;
  };

  const std::function<std::string(std::uint64_t)> name_of_;
  std::unordered_map<std::uint64_t, bool> is_program_;  ///< by kernel address
  std::mutex mutex_;                                    ///< guards the members below
  std::set<std::vector<Frame>> frames_;
  std::size_t frame_count_ = 0;
  std::map<std::pair<std::uint32_t, std::uint64_t>, Kept> stacks_;  ///< by tid and number
};

}  // namespace flamed::daemon
