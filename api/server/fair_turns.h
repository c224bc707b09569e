// SPDX-License-Identifier: Apache-2.0
//
// FairTurns: whose question is answered next. Users take turns, however many questions each of them has waiting, and
// one thread is kept for root. Any thread.
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
  /// `threads`: that answer.
  explicit FairTurns(std::size_t threads) : most_of_others_(threads > 1 ? threads - 1 : 1) {}

  /// The lowest goes first, of those alike the one that has waited longest. Empty: it is not to begin now.
  [[nodiscard]] std::optional<std::uint64_t> rank(const Peer& peer) const {
    const std::lock_guard lock(mutex_);
    if (!is_root(peer) && others_ >= most_of_others_) return std::nullopt;
    const auto found = begun_.find(key_of(peer));
    return found == begun_.end() ? 0 : found->second;
  }
  void begin(const Peer& peer) {
    const std::lock_guard lock(mutex_);
    // Who has not asked for long goes first anyway.
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
  std::size_t others_ = 0;  ///< questions of others than root's that are being answered
};

}  // namespace flamed::api
