// SPDX-License-Identifier: Apache-2.0
//
// AnswerMemory: counts the memory of answers that clients have not read yet, and decides whether another one may be
// begun. One user may have at most half of it: so a user who does not read his answers delays only his own next one.
// When all of it is in use, each user who has none of it may still begin one answer, up to as much again; root does not
// wait for others.
//
// Any thread. The counted bytes may outlive it.
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
  /// `on_room` is called, on any thread, when an answer was freed that others may have waited for.
  AnswerMemory(std::size_t limit_bytes, std::function<void()> on_room);

  /// May another answer for this user be begun? Its size is not known yet, so the limit can be exceeded by as many
  /// answers as there are threads.
  [[nodiscard]] bool has_room(UserKey user) const;

  /// Counted as long as a copy exists.
  [[nodiscard]] SharedBytes count(std::string bytes, UserKey user);

 private:
  struct Account;
  std::shared_ptr<Account> account_;
};

}  // namespace flamed::api
