// SPDX-License-Identifier: Apache-2.0
//
// NamePattern: a client's regular expression. Only name_pattern.cc uses the RE2 library, which matches any expression
// in time linear in the name; with a backtracking matcher a client could block a thread.
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

  /// RE2's syntax. Fails on an expression that is invalid, empty, longer than kMaxBytes, or takes more memory than 1
  /// MiB, and says so. It matches anywhere in a name.
  static Result<NamePattern> compile(std::string_view expression);

  static constexpr std::size_t kMaxWholeBytes = 4096;

  /// The same for an expression that must match a whole name, as in selectors of labels; it may be empty. At most
  /// kMaxWholeBytes and 256 KiB of memory.
  static Result<NamePattern> compile_whole(std::string_view expression);

  [[nodiscard]] bool matches(std::string_view name) const;

 private:
  class Compiled;
  static Result<NamePattern> compile(std::string_view expression, bool is_whole, std::size_t most_bytes);
  explicit NamePattern(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace flamed::api
