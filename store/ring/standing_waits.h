// SPDX-License-Identifier: Apache-2.0
//
// StandingWaits: the wait that each thread is in, as far as it is known. A thread that sleeps for hours takes one entry
// here, and nothing for each minute. Writer only, except the views. Must not outlive its Budget.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "base/clock.h"
#include "store/containers/budget.h"
#include "store/containers/shared_array.h"

namespace flamed::store {

struct StandingWait {
  static constexpr std::uint32_t kNone = 0xffffffffU;

  std::uint32_t thread = kNone;  ///< in the ThreadTable; kNone: an unused place
  std::uint32_t stack_key = 0;   ///< StackRef
  MonotonicTime from;
  std::int64_t rest_ns = 0;  ///< of the thread's times so far, less than a unit: not counted yet
};

class StandingWaits {
 public:
  using Waits = SharedArray<StandingWait, 1024, NoStamp>;

  explicit StandingWaits(Budget& budget) : budget_(budget), waits_(budget) {}
  ~StandingWaits() { budget_.give_back(places_.size() * kPlaceBytes); }
  StandingWaits(const StandingWaits&) = delete;
  StandingWaits& operator=(const StandingWaits&) = delete;

  [[nodiscard]] std::optional<StandingWait> find(std::int32_t tid) const {
    const auto found = places_.find(tid);
    return found == places_.end() ? std::nullopt : std::optional(waits_[found->second]);
  }
  /// False: there is no room.
  bool put(std::int32_t tid, const StandingWait& wait) {
    auto found = places_.find(tid);
    if (found == places_.end()) {
      if (!budget_.has_room(kPlaceBytes)) return false;
      const std::optional<std::uint32_t> place = waits_.allocate();
      if (!place) return false;
      budget_.take(kPlaceBytes);
      found = places_.emplace(tid, *place).first;
    }
    waits_.writable(found->second) = wait;
    return true;
  }
  void remove(std::int32_t tid) {
    const auto found = places_.find(tid);
    if (found == places_.end()) return;
    waits_.writable(found->second) = {};
    waits_.release(found->second);
    places_.erase(found);
    budget_.give_back(kPlaceBytes);
  }

  /// visit(const StandingWait&)
  template <typename F>
  void for_each(F&& visit) {
    waits_.for_each([&](std::uint32_t place) { visit(waits_[place]); });
  }

  [[nodiscard]] Waits::View view() { return waits_.view(); }
  [[nodiscard]] std::size_t size() const { return places_.size(); }

 private:
  /// Of a place in the map, about.
  static constexpr std::size_t kPlaceBytes = 48;

  Budget& budget_;
  Waits waits_;
  std::unordered_map<std::int32_t, std::uint32_t> places_;  ///< by tid
};

}  // namespace flamed::store
