// SPDX-License-Identifier: Apache-2.0
//
// FairTurns: decides whose request is answered next. Users take turns, however many requests each has waiting, and one
// thread is reserved for root. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "api/http/peer.h"

namespace flamed::api {

class FairTurns {
 public:
  /// `threads`: the number of answering threads.
  explicit FairTurns(std::size_t threads) : most_of_others_(threads > 1 ? threads - 1 : 1) {}

  /// The lowest rank goes first, among equals the one that has waited longest. Empty: it must wait.
  [[nodiscard]] std::optional<std::uint64_t> rank(const Peer& peer) const {
    const std::lock_guard lock(mutex_);
    if (!is_root(peer) && others_ >= most_of_others_) return std::nullopt;
    const auto found = begun_.find(key_of(peer));
    return found == begun_.end() ? 0 : found->second;
  }
  void begin(const Peer& peer) {
    const std::lock_guard lock(mutex_);
    // Users who are forgotten here have not asked for long, and would go first anyway.
    if (begun_.size() >= kMostUsers) begun_.clear();
    begun_[key_of(peer)] = ++turns_;
    if (!is_root(peer)) ++others_;
  }
  void end(const Peer& peer) {
    const std::lock_guard lock(mutex_);
    if (!is_root(peer)) --others_;
  }

 private:
  static constexpr std::size_t kMostUsers = 4096;

  const std::size_t most_of_others_;
  mutable std::mutex mutex_;  ///< guards what follows
  std::map<UserKey, std::uint64_t> begun_;
  std::uint64_t turns_ = 0;
  std::size_t others_ = 0;  ///< requests of users other than root that are being answered
};

}  // namespace flamed::api
