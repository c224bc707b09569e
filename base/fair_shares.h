// SPDX-License-Identifier: Apache-2.0
//
// FairShares: how much each user holds of a limited resource. When it is full, the user who holds most loses his oldest
// item: a lone user may have all of it, and nobody can keep others from their share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <list>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace flamed {

/// The largest share for which all users together fit into `room`; `held` is what each has. Users with less keep it,
/// the others divide the rest. Returns `room` if all fit.
inline std::size_t fair_share(std::vector<std::size_t> held, std::size_t room) {
  std::sort(held.begin(), held.end());
  const std::size_t all = room;
  for (std::size_t i = 0; i < held.size(); ++i) {
    const std::size_t equal = room / (held.size() - i);
    if (held[i] > equal) return equal;
    room -= held[i];
  }
  return all;
}

/// One thread. `Key` identifies an item, which one user holds.
template <typename Key, typename Hash = std::hash<Key>>
class FairShares {
 public:
  /// Frees the item that was held under the key before.
  void hold(const Key& key, std::uint32_t user, std::size_t amount = 1) {
    release(key);
    Share& share = shares_[user];
    share.held.push_back(key);
    held_.emplace(key, Held{user, amount, std::prev(share.held.end())});
    change(user, share, share.amount + amount);
  }

  void release(const Key& key) {
    const auto found = held_.find(key);
    if (found == held_.end()) return;
    const Held held = found->second;
    held_.erase(found);
    Share& share = shares_.at(held.user);
    share.held.erase(held.place);
    change(held.user, share, share.amount - held.amount);
    if (share.held.empty()) shares_.erase(held.user);
  }

  /// Which user loses which item, when `user` wants more. Empty if nothing is held.
  struct Loss {
    Key key;
    std::uint32_t user;
  };
  [[nodiscard]] std::optional<Loss> next_loss(std::uint32_t user) const {
    if (by_amount_.empty()) return std::nullopt;
    const auto [most, holder] = *by_amount_.rbegin();
    // Among equals, the one who wants more.
    const auto own = shares_.find(user);
    const std::uint32_t loser = own != shares_.end() && own->second.amount == most ? user : holder;
    return Loss{shares_.at(loser).held.front(), loser};
  }

  [[nodiscard]] std::size_t total() const { return total_; }
  [[nodiscard]] std::size_t of(std::uint32_t user) const {
    const auto found = shares_.find(user);
    return found == shares_.end() ? 0 : found->second.amount;
  }

 private:
  struct Share {
    std::list<Key> held{};  ///< the oldest first
    std::size_t amount = 0;
  };
  struct Held {
    std::uint32_t user;
    std::size_t amount;
    typename std::list<Key>::iterator place;
  };

  void change(std::uint32_t user, Share& share, std::size_t amount) {
    by_amount_.erase({share.amount, user});
    total_ = total_ - share.amount + amount;
    share.amount = amount;
    if (!share.held.empty()) by_amount_.emplace(amount, user);
  }

  std::unordered_map<Key, Held, Hash> held_;
  std::unordered_map<std::uint32_t, Share> shares_;
  std::set<std::pair<std::size_t, std::uint32_t>> by_amount_;
  std::size_t total_ = 0;
};

}  // namespace flamed
