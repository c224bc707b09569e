// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a moment: a valid one can be written and read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "api/question/parameters.h"
#include "api/text/time_expression.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flamed;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const api::TimeContext context{WallTime{1769868330 * kNsPerSecond}, [](WallTime moment) {
                                   return moment.ns / kNsPerSecond < 1774746000 ? std::int64_t{3600} : 7200;
                                 }};
  if (const auto moment = api::parse_time(text, context)) {
    // format_time() cuts to milliseconds.
    const auto again = api::parse_time(api::format_time(moment->moment), context);
    if (!again || again->moment.ns / kNsPerMs != moment->moment.ns / kNsPerMs) std::abort();
    const bool is_right = !moment->next || (moment->moment <= context.now && context.now < *moment->next);
    if (!is_right) std::abort();
  }
  static_cast<void>(api::parse_process(text));
  return 0;
}
