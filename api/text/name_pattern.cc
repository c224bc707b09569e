// SPDX-License-Identifier: Apache-2.0
#include "api/text/name_pattern.h"

#include <re2/re2.h>

#include <utility>

#include "api/text/utf8.h"

namespace flamed::api {
namespace {

constexpr std::int64_t kMemoryBytes = 1 << 20;
/// A request may have many of these.
constexpr std::int64_t kWholeMemoryBytes = 1 << 18;

RE2::Options options(bool is_whole) {
  RE2::Options options;
  options.set_max_mem(is_whole ? kWholeMemoryBytes : kMemoryBytes);
  options.set_dot_nl(is_whole);
  options.set_log_errors(false);
  return options;
}

re2::StringPiece piece(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace

class NamePattern::Compiled {
 public:
  Compiled(std::string_view expression, bool is_whole)
      : re2_(piece(expression), options(is_whole)), is_whole_(is_whole) {}
  [[nodiscard]] const RE2& re2() const { return re2_; }
  [[nodiscard]] bool is_whole() const { return is_whole_; }

 private:
  RE2 re2_;
  bool is_whole_;
};

Result<NamePattern> NamePattern::compile(std::string_view expression) {
  if (expression.empty()) return Error("it is empty");
  return compile(expression, false, kMaxBytes);
}

Result<NamePattern> NamePattern::compile_whole(std::string_view expression) {
  return compile(expression, true, kMaxWholeBytes);
}

Result<NamePattern> NamePattern::compile(std::string_view expression, bool is_whole, std::size_t most_bytes) {
  if (expression.size() > most_bytes) return Error("it is longer than " + std::to_string(most_bytes) + " bytes");
  auto compiled = std::make_shared<Compiled>(expression, is_whole);
  if (!compiled->re2().ok()) return Error(repair_utf8(compiled->re2().error()));
  return NamePattern(std::move(compiled));
}

bool NamePattern::matches(std::string_view name) const {
  return compiled_->is_whole() ? RE2::FullMatch(piece(name), compiled_->re2())
                               : RE2::PartialMatch(piece(name), compiled_->re2());
}

}  // namespace flamed::api
