// SPDX-License-Identifier: Apache-2.0
//
// WaitIntake: from visits of waiting threads to waiting time in the store. It finds why each waits, by the names of its
// kernel functions: the reason is the innermost frame of the stored stack.
//
// Belongs to the ingest thread, except figures(). Its arguments must outlive it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/identity.h"
#include "daemon/sampler/record.h"
#include "daemon/waits/wait_times.h"
#include "store/model/wait_reason.h"
#include "store/model/waits_seen.h"
#include "store/ring/store.h"
#include "symbolizer/names/runtime_functions.h"

namespace flamed::daemon {

class WaitIntake {
 public:
  /// `name_of`: the kernel function at an address; empty: not known. `names` keeps the names of threads.
  WaitIntake(store::Store& store, symbolizer::RuntimeFunctions& names,
             std::function<std::string(std::uint64_t)> name_of)
      : store_(store), names_(names), name_of_(std::move(name_of)) {}

  /// Appends why the thread waits to its stack, as the innermost frame, and before that who holds the lock.
  void append_reason(const VisitRecord& visit, std::vector<Frame>& stack);
  /// `found` is what the visit found, with that frame.
  void visited(const store::StackSample& found, const flamed_wait& wait);
  void ended(std::int32_t tid, MonotonicTime time);
  /// All threads were visited since `time`, but for those of the owners in `late`: these since then.
  void seen(MonotonicTime time, const store::LateOwners& late = {});

  /// As of the last round of visits. Any thread.
  struct Figures {
    std::size_t threads = 0;            ///< that have been visited
    std::size_t threads_with_disk = 0;  ///< of these, whose waits for block devices the kernel counts
  };
  [[nodiscard]] Figures figures() const {
    return {threads_.load(std::memory_order_relaxed), threads_with_disk_.load(std::memory_order_relaxed)};
  }

 private:
  [[nodiscard]] store::WaitReason reason_of(const VisitRecord& visit);
  [[nodiscard]] Frame holder_of(const VisitRecord& visit);

  store::Store& store_;
  symbolizer::RuntimeFunctions& names_;
  const std::function<std::string(std::uint64_t)> name_of_;
  WaitTimes times_;
  MonotonicTime swept_{};
  std::unordered_map<std::uint64_t, store::WaitPlace> place_at_;  ///< by kernel address
  std::vector<store::WaitPlace> places_;                          ///< scratch
  std::atomic<std::size_t> threads_{0};
  std::atomic<std::size_t> threads_with_disk_{0};
};

}  // namespace flamed::daemon
