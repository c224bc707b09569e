// SPDX-License-Identifier: Apache-2.0
//
// The answers about samples: from a query's parameters through the store to bytes.
//
// Any thread. Each is bounded in time and memory by a budget of its own.
#pragma once

#include <optional>
#include <string_view>

#include "api/answer/notes.h"
#include "api/http/exchange.h"
#include "api/http/problem.h"
#include "api/question/parameters.h"
#include "api/question/question.h"
#include "api/sources.h"

namespace flamed::api {

/// The inputs of an answer; all of them outlive the call.
struct AnswerContext {
  Sources& sources;
  const Parameters& parameters;
  Moments moments;
  std::string_view accept;  ///< the request's header, may be empty
};

Response answer_profile(const AnswerContext& context);
Response answer_pprof(const AnswerContext& context);  ///< /debug/pprof/profile
/// Begins to measure for a request that arrived at moments.asked, and waits. Or says why not.
std::optional<Problem> begin_off_cpu(const AnswerContext& context);
/// What was measured for it.
Response answer_off_cpu(const AnswerContext& context);
Response answer_diff(const AnswerContext& context);
Response answer_processes(const AnswerContext& context);
Response answer_threads(const AnswerContext& context);
Response answer_instructions(const AnswerContext& context);
Response answer_source(const AnswerContext& context);
Response answer_timeline(const AnswerContext& context);
Response answer_heatmap(const AnswerContext& context);
/// `notes` is null for viewers who may not see them.
Response answer_marks(const AnswerContext& context, const Notes* notes);
/// Adds the mark in the request's body.
Response set_mark(const AnswerContext& context, const Request& request, Notes& notes);

}  // namespace flamed::api
