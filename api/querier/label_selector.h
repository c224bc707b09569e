// SPDX-License-Identifier: Apache-2.0
//
// LabelSelector: which series a call is about, as Prometheus writes it: {unit="nginx.service", process!~"kworker.*"}.
// Pure; immutable; any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/text/name_pattern.h"
#include "base/result.h"

namespace flamed::api {

/// One condition. A series without the label has the empty value.
struct LabelMatcher {
  std::string name;
  bool is_negated = false;               ///< != and !~
  std::string value{};                   ///< of = and !=
  std::optional<NamePattern> pattern{};  ///< of =~ and !~

  [[nodiscard]] bool matches(std::string_view text) const {
    return (pattern ? pattern->matches(text) : text == value) != is_negated;
  }
};

class LabelSelector {
 public:
  static constexpr std::size_t kMaxBytes = 16384;
  static constexpr std::size_t kMostMatchers = 20;

  /// Fails, and says where, on what is no selector, too long, or has too many conditions. `{}` selects everything.
  /// Regular expressions are RE2's and match whole values. Texts are in double or single quotes with Go's escapes, or
  /// in backquotes without any.
  static Result<LabelSelector> parse(std::string_view text);

  /// The name before the brace; empty if there is none.
  [[nodiscard]] const std::string& metric() const { return metric_; }
  [[nodiscard]] const std::vector<LabelMatcher>& matchers() const { return matchers_; }

  /// `value_of(name)` is the value of a label, without regard to the metric.
  template <typename F>
  [[nodiscard]] bool matches(F&& value_of) const {
    return std::all_of(matchers_.begin(), matchers_.end(),
                       [&](const LabelMatcher& matcher) { return matcher.matches(value_of(matcher.name)); });
  }

 private:
  LabelSelector(std::string metric, std::vector<LabelMatcher> matchers)
      : metric_(std::move(metric)), matchers_(std::move(matchers)) {}

  std::string metric_;
  std::vector<LabelMatcher> matchers_;
};

}  // namespace flamed::api
