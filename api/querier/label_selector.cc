// SPDX-License-Identifier: Apache-2.0
#include "api/querier/label_selector.h"

#include <utility>

#include "api/text/utf8.h"

namespace flamed::api {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

std::optional<std::uint32_t> digit_of(char c, std::uint32_t base) {
  std::uint32_t digit = base;
  if (is_digit(c)) digit = static_cast<std::uint32_t>(c - '0');
  if (c >= 'a' && c <= 'f') digit = static_cast<std::uint32_t>(c - 'a') + 10;
  if (c >= 'A' && c <= 'F') digit = static_cast<std::uint32_t>(c - 'A') + 10;
  return digit < base ? std::optional(digit) : std::nullopt;
}

std::optional<char> simple_escape(char c) {
  constexpr std::string_view kLetters = "abfnrtv\\";
  constexpr std::string_view kMeanings = "\a\b\f\n\r\t\v\\";
  const std::size_t at = kLetters.find(c);
  return at == std::string_view::npos ? std::nullopt : std::optional(kMeanings[at]);
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::optional<std::string> metric() {
    skip_blanks();
    return name(':');
  }

  /// The part in braces. Empty: error() has why.
  std::optional<std::vector<LabelMatcher>> braces() {
    std::vector<LabelMatcher> matchers;
    if (!take("{")) return fail("there is no {");
    while (!take("}")) {
      if (matchers.size() == LabelSelector::kMostMatchers) {
        return fail("there are more than " + std::to_string(LabelSelector::kMostMatchers) + " conditions");
      }
      std::optional<LabelMatcher> read = matcher();
      if (!read) return std::nullopt;
      matchers.push_back(std::move(*read));
      if (take(",")) continue;
      if (!take("}")) return fail("neither , nor } follows a condition");
      break;
    }
    return matchers;
  }

  bool at_end() {
    skip_blanks();
    return at_ == text_.size();
  }

  [[nodiscard]] Error error(const std::string& fault) const {
    return Error("the selector is malformed at byte " + std::to_string(at_) + ": " + fault);
  }
  [[nodiscard]] Error error() const { return error(fault_); }

 private:
  std::nullopt_t fail(std::string fault) {
    fault_ = std::move(fault);
    return std::nullopt;
  }

  void skip_blanks() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }

  bool take(std::string_view token) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }

  /// `also`: a further letter of the name.
  std::optional<std::string> name(char also = '_') {
    const std::size_t begin = at_;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (!begins_name(c) && c != also && !(at_ > begin && is_digit(c))) break;
      ++at_;
    }
    if (at_ == begin) return std::nullopt;
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::optional<LabelMatcher> matcher() {
    skip_blanks();
    std::optional<std::string> label = name();
    if (!label) return fail("a label's name is missing");
    // The longer ones first.
    const bool is_pattern = take("=~");
    const bool is_other_pattern = !is_pattern && take("!~");
    const bool is_unequal = !is_pattern && !is_other_pattern && take("!=");
    if (!is_pattern && !is_other_pattern && !is_unequal && !take("="))
      return fail("none of = != =~ !~ follows the name");
    std::optional<std::string> value = quoted();
    if (!value) return std::nullopt;
    LabelMatcher read{std::move(*label), is_other_pattern || is_unequal};
    if (!is_pattern && !is_other_pattern) {
      read.value = std::move(*value);
      return read;
    }
    Result<NamePattern> pattern = NamePattern::compile_whole(*value);
    if (!pattern) return fail("the regular expression can't be used: " + pattern.error().message());
    read.pattern = std::move(*pattern);
    return read;
  }

  std::optional<std::string> quoted() {
    skip_blanks();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '"' && quote != '\'' && quote != '`') return fail("a value must be in quotes");
    ++at_;
    std::string value;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == quote) return value;
      if (c == '\\' && quote != '`') {
        if (!escape(quote, value)) return fail("an unknown escape");
      } else if (c == '\n' && quote != '`') {
        return fail("a line ends within quotes");
      } else {
        value += c;
      }
    }
    return fail("quotes are not closed");
  }

  /// What follows a backslash, as in Go's strings (https://go.dev/ref/spec#String_literals).
  bool escape(char quote, std::string& value) {
    if (at_ == text_.size()) return false;
    const char c = text_[at_++];
    if (c == quote || simple_escape(c)) {
      value += c == quote ? c : *simple_escape(c);
      return true;
    }
    constexpr std::uint32_t kLargestByte = 0xFF;
    if (is_digit(c)) {
      --at_;
      const std::optional<std::uint32_t> byte = number(3, 8);
      if (byte && *byte <= kLargestByte) value += static_cast<char>(*byte);
      return byte && *byte <= kLargestByte;
    }
    if (c == 'x') {
      const std::optional<std::uint32_t> byte = number(2, 16);
      if (byte) value += static_cast<char>(*byte);
      return byte.has_value();
    }
    if (c != 'u' && c != 'U') return false;
    const std::optional<std::uint32_t> point = number(c == 'u' ? 4 : 8, 16);
    return point && append_utf8(value, *point);
  }

  std::optional<std::uint32_t> number(std::size_t digits, std::uint32_t base) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      const auto digit = at_ < text_.size() ? digit_of(text_[at_], base) : std::nullopt;
      if (!digit) return std::nullopt;
      value = value * base + *digit;
      ++at_;
    }
    return value;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string fault_;
};

}  // namespace

Result<LabelSelector> LabelSelector::parse(std::string_view text) {
  if (text.size() > kMaxBytes) return Error("the selector is longer than " + std::to_string(kMaxBytes) + " bytes");
  Parser parser(text);
  std::string metric = parser.metric().value_or("");
  std::vector<LabelMatcher> matchers;
  // A name alone is a selector, too.
  if (metric.empty() || !parser.at_end()) {
    auto read = parser.braces();
    if (!read) return parser.error();
    matchers = std::move(*read);
  }
  if (!parser.at_end()) return parser.error("something follows the selector");
  return LabelSelector(std::move(metric), std::move(matchers));
}

}  // namespace flamed::api
