// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/reader/short_name.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

namespace flamed::symbolizer {
namespace {

bool starts_with(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

bool ends_with(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}

bool is_identifier(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         static_cast<unsigned char>(c) >= 0x80;
}

/// Left out unless it is the first argument.
bool is_usual_argument(std::string_view argument) {
  constexpr std::array<std::string_view, 6> kUsual{"std::allocator<",      "std::char_traits<", "std::less<",
                                                   "std::default_delete<", "std::hash<",        "std::equal_to<"};
  return ends_with(argument, ">") && std::any_of(kUsual.begin(), kUsual.end(),
                                                 [&](std::string_view usual) { return starts_with(argument, usual); });
}

/// One pass over a name, with the open brackets on a stack.
class Shortener {
 public:
  Shortener(std::string_view full, NameLanguage language) : in_(full), is_cpp_(language == NameLanguage::kCpp) {}

  std::string run() {
    while (at_ < in_.size()) step();
    return open_.empty() ? std::move(out_) : std::string(in_);
  }

 private:
  enum class Kind {
    kPlain,    ///< stays
    kList,     ///< of arguments: cut if it is long
    kDropped,  ///< parameters
  };

  struct Open {
    char bracket;
    Kind kind;
    std::size_t begin;          ///< in out_, of the bracket
    std::size_t argument;       ///< in out_, of the current argument
    std::size_t separator;      ///< in out_, of the comma before it
    std::size_t arguments = 0;  ///< before it
  };

  void step() {
    if (is_cpp_ && take_operator()) return;
    if (starts_with(rest(), "(anonymous namespace)")) return take(21);
    switch (const char c = in_[at_]) {
      case '<':
        if (opens_list()) return open(c, is_path() ? Kind::kPlain : Kind::kList);
        return take(1);
      case '(':
        return open(c, kind_of_parenthesis());
      case '{':
        return open(c, Kind::kPlain);
      case '>':
        // "->" of a function's type in Rust, or of an expression.
        if (at_ != 0 && in_[at_ - 1] == '-') return take(1);
        return close('<');
      case ')':
        return close('(');
      case '}':
        return close('{');
      case ',':
        return next_argument();
      default:
        return take(1);
    }
  }

  [[nodiscard]] std::string_view rest() const { return in_.substr(at_); }
  [[nodiscard]] char last() const { return out_.empty() ? '\0' : out_.back(); }

  void take(std::size_t bytes) {
    out_ += in_.substr(at_, bytes);
    at_ += bytes;
  }

  /// "operator<<" and the like, whose signs are not brackets. The type of a conversion operator is ordinary text.
  bool take_operator() {
    constexpr std::string_view kWord = "operator";
    if (!starts_with(rest(), kWord) || is_identifier(last())) return false;
    const std::string_view after = rest().substr(kWord.size());
    if (!after.empty() && is_identifier(after.front())) return false;
    constexpr std::array<std::string_view, 14> kSigns{
        "<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "()", "[]", "<", ">", ","};
    const auto sign =
        std::find_if(kSigns.begin(), kSigns.end(), [&](std::string_view s) { return starts_with(after, s); });
    take(kWord.size() + (sign == kSigns.end() ? 0 : sign->size()));
    operator_end_ = at_;
    return true;
  }

  [[nodiscard]] bool opens_list() const {
    if (!is_cpp_) return true;
    // libiberty puts a space between "operator<" and its arguments.
    if (at_ == operator_end_ || (at_ == operator_end_ + 1 && last() == ' ')) return true;
    return last() != ')' && last() != '(' && last() != '<';  // a comparison or shift in an expression
  }

  /// Rust: "<T as Trait>::f", "core::slice::<impl [T]>::f".
  [[nodiscard]] bool is_path() const {
    if (is_cpp_) return false;
    return last() == ':' ? starts_with(rest(), "<impl ") : !is_identifier(last());
  }

  Kind kind_of_parenthesis() {
    if (!is_cpp_) return Kind::kPlain;
    if (!open_.empty()) {
      return open_.back().bracket == '{' && ends_with(out_, "{lambda") ? Kind::kList : Kind::kPlain;
    }
    // "decltype (...)", and the two pairs of "operator void (*)(int)": parameters never stand after a space.
    in_second_pair_ = declarator_end_ == at_;
    if (last() == ' ' || in_second_pair_) return Kind::kPlain;
    return Kind::kDropped;
  }

  void open(char bracket, Kind kind) {
    open_.push_back({bracket, kind, out_.size(), out_.size() + 1, out_.size() + 1});
    take(1);
  }

  void close(char bracket) {
    if (open_.empty() || open_.back().bracket != bracket) return take(1);
    finish_argument();
    const Open list = open_.back();
    open_.pop_back();
    if (list.kind == Kind::kDropped) {
      out_.resize(list.begin);
      ++at_;
      skip_qualifiers();
      return;
    }
    if (list.kind == Kind::kList) {
      if (last() == ' ') out_.pop_back();  // "> >"
      if (out_.size() - list.begin - 1 > kMaxListBytes) {
        out_.resize(list.begin + 1);
        out_ += "...";
      }
    }
    take(1);
    // The second pair of "void (*)(int)" follows the first, and then come parameters.
    if (bracket == '(' && open_.empty()) declarator_end_ = std::exchange(in_second_pair_, false) ? kNowhere : at_;
    constexpr std::string_view kString = "std::__cxx11::basic_string<char>";
    if (is_cpp_ && ends_with(out_, kString)) {
      out_.resize(out_.size() - kString.size());
      out_ += "std::string";
    }
  }

  void next_argument() {
    if (open_.empty() || open_.back().bracket != '<') return take(1);
    finish_argument();
    Open& list = open_.back();
    list.separator = out_.size();
    take(1);
    while (at_ < in_.size() && in_[at_] == ' ') take(1);
    list.argument = out_.size();
    ++list.arguments;
  }

  void finish_argument() {
    const Open& list = open_.back();
    if (!is_cpp_ || list.bracket != '<' || list.arguments == 0) return;
    std::string_view argument = std::string_view(out_).substr(list.argument);
    while (ends_with(argument, " ")) argument.remove_suffix(1);
    if (is_usual_argument(argument)) out_.resize(list.separator);
  }

  /// Skips the qualifiers after a member function's parameters.
  void skip_qualifiers() {
    constexpr std::array<std::string_view, 5> kQualifiers{" const", " volatile", " &&", " &", " noexcept"};
    for (;;) {
      const auto found = std::find_if(kQualifiers.begin(), kQualifiers.end(), [&](std::string_view qualifier) {
        return starts_with(rest(), qualifier) &&
               (rest().size() == qualifier.size() || !is_identifier(rest()[qualifier.size()]));
      });
      if (found == kQualifiers.end()) return;
      at_ += found->size();
    }
  }

  static constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max() - 1;

  const std::string_view in_;
  const bool is_cpp_;
  std::size_t at_ = 0;
  std::string out_;
  std::vector<Open> open_;
  std::size_t operator_end_ = kNowhere;    ///< in in_
  std::size_t declarator_end_ = kNowhere;  ///< in in_: after a pair of parentheses that was kept
  bool in_second_pair_ = false;
};

}  // namespace

std::string short_name(std::string_view full, NameLanguage language) { return Shortener(full, language).run(); }

}  // namespace flamed::symbolizer
