// SPDX-License-Identifier: Apache-2.0
#include "store/model/query_budget.h"

#include <cerrno>
#include <string>
#include <utility>

namespace flamed::store {

QueryBudget::QueryBudget(const QueryLimits& limits, const Clock* clock, std::stop_token cancelled)
    : limits_(limits), clock_(clock), cancelled_(std::move(cancelled)) {}

bool QueryBudget::check() {
  if (exhausted()) return false;
  check_at_ = visited_ + kVisitsPerCheck;
  if (visited_ > limits_.visits) return exhaust(Exhausted::kVisits);
  if (cancelled_.stop_requested()) return exhaust(Exhausted::kCancelled);
  if (limits_.deadline && clock_ != nullptr && clock_->monotonic() >= *limits_.deadline) {
    return exhaust(Exhausted::kDeadline);
  }
  return true;
}

bool QueryBudget::exhaust(Exhausted what) {
  if (!exhausted()) exhausted_ = what;
  check_at_ = 0;
  return false;
}

Error QueryBudget::error() const {
  const std::string narrow = "ask for a shorter window or for less of the machine (a process, a unit, a container)";
  switch (exhausted_) {
    case Exhausted::kVisits:
      return Error("the query covers more than " + std::to_string(limits_.visits) +
                       " stacks and samples, which is this server's limit: " + narrow,
                   E2BIG);
    case Exhausted::kNodes:
      return Error("the answer would have more than " + std::to_string(limits_.nodes) +
                       " parts, which is this server's limit: " + narrow,
                   E2BIG);
    case Exhausted::kDeadline:
      return Error("the answer took longer than this server allows: " + narrow, ETIMEDOUT);
    case Exhausted::kCancelled:
      return Error("nobody waits for the answer any more", ECANCELED);
    case Exhausted::kNot:
      break;
  }
  return Error("the query is within its limits");
}

}  // namespace flamed::store
