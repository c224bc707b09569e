// SPDX-License-Identifier: Apache-2.0
//
// The calls: from a decoded request through the store to an answer's bytes. Any thread.
#pragma once

#include <cstddef>
#include <string>
#include <variant>

#include "api/http/problem.h"
#include "api/querier/call_request.h"
#include "api/sources.h"
#include "base/clock.h"
#include "store/model/query_budget.h"

namespace flamed::api {

/// The inputs of a call; all of them outlive it.
struct CallContext {
  Sources& sources;  ///< what the viewer may see
  WallTime now;
  std::string host;  ///< the value of the label `host`
  store::QueryBudget& budget;
};

/// Series in an answer, the largest ones.
inline constexpr std::size_t kMostSeries = 1000;

/// The encoded answer, or why there is none.
std::variant<std::string, Problem> answer_call(CallMethod method, CallEncoding encoding, const CallRequest& request,
                                               const CallContext& context);

}  // namespace flamed::api
