// SPDX-License-Identifier: Apache-2.0
#include "api/server/answer_memory.h"

#include <map>
#include <mutex>
#include <utility>

namespace flamed::api {

struct AnswerMemory::Account {
  const std::size_t limit;
  const std::function<void()> on_room;
  mutable std::mutex mutex{};
  std::size_t all = 0;                       ///< guarded by mutex
  std::map<UserKey, std::size_t> by_user{};  ///< guarded by mutex

  [[nodiscard]] bool has_room_locked(UserKey user) const {
    const auto found = by_user.find(user);
    const std::size_t own = found == by_user.end() ? 0 : found->second;
    return own < limit / 2 && (user == kRootKey || all < (own == 0 ? 2 * limit : limit));
  }

  void give_back(UserKey user, std::size_t bytes) {
    bool is_awaited = false;
    {
      const std::lock_guard lock(mutex);
      is_awaited = !has_room_locked(user);
      all -= bytes;
      const auto found = by_user.find(user);
      found->second -= bytes;
      if (found->second == 0) by_user.erase(found);
    }
    if (is_awaited) on_room();
  }
};

AnswerMemory::AnswerMemory(std::size_t limit_bytes, std::function<void()> on_room)
    : account_(new Account{limit_bytes, std::move(on_room)}) {}

bool AnswerMemory::has_room(UserKey user) const {
  const std::lock_guard lock(account_->mutex);
  return account_->has_room_locked(user);
}

SharedBytes AnswerMemory::count(std::string bytes, UserKey user) {
  const std::size_t size = bytes.size();
  if (size == 0) return {};
  auto counted = std::make_unique<const std::string>(std::move(bytes));
  {
    const std::lock_guard lock(account_->mutex);
    account_->by_user[user] += size;
    account_->all += size;
  }
  return std::shared_ptr<const std::string>(counted.release(),
                                            [account = account_, user, size](const std::string* gone) {
                                              delete gone;
                                              account->give_back(user, size);
                                            });
}

}  // namespace flamed::api
