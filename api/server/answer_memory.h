// SPDX-License-Identifier: Apache-2.0
//
// AnswerMemory: what answers take that were made and not taken by their clients yet, and whether another one may be
// begun. Who does not read his answers thus waits for the next one himself: half of the memory is for one user at most.
// Where all of it is taken, those who have nothing of it may still begin one each, up to as much again, and root is not
// asked what others have.
//
// Any thread. What it counts may outlive it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "api/http/peer.h"
#include "api/http/shared_bytes.h"

namespace flamed::api {

class AnswerMemory {
 public:
  /// `on_room` is called, on any thread, when an answer has gone that others may have waited for.
  AnswerMemory(std::size_t limit_bytes, std::function<void()> on_room);

  /// May another answer for this user be begun? How large it will be nobody knows: so many more may be on their way as
  /// there are threads that make them.
  [[nodiscard]] bool has_room(UserKey user) const;

  /// Counted for as long as there is a copy.
  [[nodiscard]] SharedBytes count(std::string bytes, UserKey user);

 private:
  struct Account;
  std::shared_ptr<Account> account_;
};

}  // namespace flamed::api
