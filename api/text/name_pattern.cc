// SPDX-License-Identifier: Apache-2.0
#include "api/text/name_pattern.h"

#include <re2/re2.h>

#include <utility>

#include "api/text/utf8.h"

namespace flamed::api {
namespace {

constexpr std::int64_t kMemoryBytes = 1 << 20;

RE2::Options options() {
  RE2::Options options;
  options.set_max_mem(kMemoryBytes);
  options.set_log_errors(false);
  return options;
}

re2::StringPiece piece(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace

class NamePattern::Compiled {
 public:
  explicit Compiled(std::string_view expression) : re2_(piece(expression), options()) {}
  [[nodiscard]] const RE2& re2() const { return re2_; }

 private:
  RE2 re2_;
};

Result<NamePattern> NamePattern::compile(std::string_view expression) {
  if (expression.empty()) return Error("it is empty");
  if (expression.size() > kMaxBytes) return Error("it is longer than " + std::to_string(kMaxBytes) + " bytes");
  auto compiled = std::make_shared<Compiled>(expression);
  if (!compiled->re2().ok()) return Error(repair_utf8(compiled->re2().error()));
  return NamePattern(std::move(compiled));
}

bool NamePattern::matches(std::string_view name) const { return RE2::PartialMatch(piece(name), compiled_->re2()); }

}  // namespace flamed::api
