// SPDX-License-Identifier: Apache-2.0
#include "top/look.h"

#include <string>
#include <utility>

namespace flamed::top {
namespace {

Result<std::string> body_of(const Client& client, const std::string& target) {
  Result<Answer> answer = client.get(target);
  if (!answer) return std::move(answer).error();
  if (answer->status != 200) return Error(read_problem(answer->body));
  return std::move(answer->body);
}

}  // namespace

Result<View> look(const Client& client, const Question& question) {
  View view;
  if (!question.waits) {
    const Result<std::string> summary = body_of(client, summary_target(question));
    if (!summary) return summary.error();
    read_summary(*summary, view);
  }
  const Result<std::string> functions = body_of(client, functions_target(question));
  if (!functions) return functions.error();
  if (const Status read = read_functions(*functions, view); !read) return read.error();
  return view;
}

}  // namespace flamed::top
