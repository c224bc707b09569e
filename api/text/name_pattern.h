// SPDX-License-Identifier: Apache-2.0
//
// NamePattern: a regular expression that a client sent. The RE2 library stays inside name_pattern.cc: it matches in
// time linear to the name, whatever the expression, where a backtracking matcher would take a client's word for its own
// time.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace flamed::api {

/// Immutable; any number of threads; copies share the compiled expression.
class NamePattern {
 public:
  static constexpr std::size_t kMaxBytes = 1024;

  /// RE2's syntax. Fails, with what is wrong, on an expression that is no such, is longer than kMaxBytes, or would take
  /// more memory than 1 MiB.
  static Result<NamePattern> compile(std::string_view expression);

  /// Whether the expression matches anywhere in `name`.
  [[nodiscard]] bool matches(std::string_view name) const;

 private:
  class Compiled;
  explicit NamePattern(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace flamed::api
