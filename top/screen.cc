// SPDX-License-Identifier: Apache-2.0
#include "top/screen.h"

// Macros would be in the way of other names.
#define NCURSES_NOMACROS
#include <curses.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "top/look.h"

namespace flamed::top {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int kEscape = 27;
constexpr int kEnter = '\n';
constexpr std::size_t kMostTyped = 500;
/// Of the screen's lines, what the summary may take.
constexpr std::size_t kMostSummaryLines = 7;

constexpr const char* kHelp[] = {
    "flamed-top: what the CPUs do, as flamed has sampled it.",
    "",
    "  Up Down k j  PageUp PageDown b Space  Home End g G    move",
    "  / TEXT  n N     find in the list, the next, the one before",
    "  & PATTERN       only stacks with a function that matches; & alone: all",
    "  P T             sort by self, by total",
    "  H               summary by thread, or by program",
    "  w               what threads wait for, or CPU time",
    "  p PID  u UID    only this process, this user; alone: all",
    "  d SECONDS       between two looks",
    "  < >             the window before, the one after",
    "  f FROM [TO]     a past window, as now-1h now-50m, or 14:05 14:10",
    "  l LENGTH        live: the last 30s, 5m, 1h",
    "  r Enter         look again",
    "  q               end",
    "",
    "self is time in the function itself, total with what it calls.",
    "Any key goes back.",
};

/// Puts the terminal back however it ends.
class Terminal {
 public:
  Terminal() {
    ::cbreak();
    ::noecho();
    ::keypad(::stdscr, TRUE);
    ::set_escdelay(25);
    ::curs_set(0);
  }
  ~Terminal() { ::endwin(); }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
};

class Screen {
 public:
  Screen(const Client& client, Question question, double delay_s)
      : client_(client), question_(std::move(question)), delay_(delay_s) {}

  void run() {
    look_again();
    while (!is_over_) {
      draw();
      const int key = read_key();
      if (key != ERR) take(key);
      if (question_.is_live() && SteadyClock::now() >= due_) look_again();
    }
  }

 private:
  [[nodiscard]] std::size_t columns() const { return static_cast<std::size_t>(std::max(COLS, 1)); }
  [[nodiscard]] std::size_t lines() const { return static_cast<std::size_t>(std::max(LINES, 1)); }

  void put(std::size_t line, std::string_view text, attr_t attributes = A_NORMAL) {
    if (line >= lines()) return;
    ::attrset(static_cast<int>(attributes));
    ::mvaddstr(static_cast<int>(line), 0, fitting(text, columns()).c_str());
    ::attrset(A_NORMAL);
  }

  void draw() {
    ::erase();
    if (shows_help_) {
      std::size_t line = 0;
      for (const char* text : kHelp) put(line++, text);
      ::refresh();
      return;
    }
    put(0, "flamed-top  " + title_of(question_, view_), A_BOLD);
    std::size_t line = 1;
    const std::size_t for_summary = std::min(kMostSummaryLines, lines() / 3);
    for (const std::string& text : wrapped(view_.summary, columns(), for_summary)) put(line++, text);
    std::string heading = heading_of_functions() + (order_ == Order::kSelf ? "  by self" : "  by total");
    if (!question_.focus.empty()) heading += "  & " + question_.focus;
    heading.resize(std::max(heading.size(), columns()), ' ');
    put(line++, heading, A_REVERSE);
    rows_ = lines() > line + 1 ? lines() - line - 1 : 0;
    const std::size_t last = view_.functions.size() > rows_ ? view_.functions.size() - rows_ : 0;
    first_ = std::min(first_, last);
    for (std::size_t i = first_; i < std::min(first_ + rows_, view_.functions.size()); ++i) {
      const bool is_found = !pattern_.empty() && view_.functions[i].name.find(pattern_) != std::string::npos;
      put(line++, row_of(view_.functions[i]), is_found ? A_BOLD : A_NORMAL);
    }
    put(lines() - 1, status_.empty() ? foot() : status_, status_.empty() ? A_DIM : A_BOLD);
    ::refresh();
  }

  [[nodiscard]] std::string foot() const {
    const std::size_t last = std::min(first_ + rows_, view_.functions.size());
    return "functions " + std::to_string(std::min(first_ + 1, last)) + "-" + std::to_string(last) + " of " +
           std::to_string(view_.functions.size()) + "   q end  h help";
  }

  int read_key() {
    int wait_ms = -1;
    if (question_.is_live()) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(due_ - SteadyClock::now()).count();
      wait_ms = static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000));
    }
    ::timeout(wait_ms);
    return ::getch();
  }

  void look_again() {
    Result<View> view = look(client_, question_);
    if (view) {
      view_ = std::move(*view);
      sort(view_.functions, order_);
      status_.clear();
    } else {
      status_ = view.error().message();
    }
    due_ = SteadyClock::now() + std::chrono::milliseconds(static_cast<std::int64_t>(1000 * delay_));
  }

  /// Asks something else. If it is refused, the question before stays.
  void ask(Question question) {
    std::swap(question_, question);
    look_again();
    if (status_.empty()) {
      first_ = 0;
    } else {
      question_ = std::move(question);
    }
  }

  /// A line that the user types at the bottom; empty if it is given up.
  std::optional<std::string> prompt(const std::string& text) {
    ::curs_set(1);
    ::timeout(-1);
    std::string typed;
    std::optional<std::string> result;
    while (true) {
      const std::string shown = text + typed;
      ::move(LINES - 1, 0);
      ::clrtoeol();
      // Of a long line its end.
      put(lines() - 1, shown.size() < columns() ? shown : shown.substr(shown.size() - columns() + 1));
      ::refresh();
      const int key = ::getch();
      if (key == kEscape || key == ERR) break;
      if (key == kEnter || key == KEY_ENTER || key == '\r') {
        result = typed;
        break;
      }
      if (key == KEY_RESIZE) draw();
      if ((key == KEY_BACKSPACE || key == 127 || key == '\b') && !typed.empty()) typed.pop_back();
      if (key >= ' ' && key < 256 && key != 127 && typed.size() < kMostTyped) typed += static_cast<char>(key);
    }
    ::curs_set(0);
    return result;
  }

  void find(bool forward) {
    const std::size_t count = view_.functions.size();
    for (std::size_t step = 1; step <= count; ++step) {
      const std::size_t at = (first_ + (forward ? step : count - step)) % count;
      if (view_.functions[at].name.find(pattern_) == std::string::npos) continue;
      first_ = at;
      return;
    }
    status_ = "no function here has " + pattern_ + " in its name";
  }

  /// The window of the same length before or after the one on the screen.
  void step_window(int direction) {
    if (view_.to_ms <= view_.from_ms) return;
    const std::int64_t length = view_.to_ms - view_.from_ms;
    Question question = question_;
    question.from = std::to_string(view_.from_ms + direction * length);
    question.to = std::to_string(view_.to_ms + direction * length);
    ask(std::move(question));
  }

  void prompt_window() {
    const auto typed = prompt("window FROM [TO]: ");
    if (!typed || typed->empty()) return;
    Question question = question_;
    const std::size_t blank = typed->find(' ');
    question.from = typed->substr(0, blank);
    question.to = blank == std::string::npos ? "" : typed->substr(blank + 1);
    ask(std::move(question));
  }

  void prompt_live() {
    const auto typed = prompt("live, the last (30s, 5m, 1h): ");
    if (!typed) return;
    Question question = question_;
    if (!typed->empty()) question.last = *typed;
    question.from.clear();
    question.to.clear();
    ask(std::move(question));
  }

  void prompt_delay() {
    const auto typed = prompt("seconds between two looks: ");
    if (!typed || typed->empty()) return;
    const double delay = std::strtod(typed->c_str(), nullptr);
    if (delay >= 0.5 && delay <= 3600) {
      delay_ = delay;
      due_ = SteadyClock::now();
    } else {
      status_ = "from 0.5 to 3600 s are possible";
    }
  }

  void prompt_member(const std::string& text, std::string Question::*member) {
    const auto typed = prompt(text);
    if (!typed) return;
    Question question = question_;
    question.*member = *typed;
    ask(std::move(question));
  }

  void prompt_pid() {
    const auto typed = prompt("pid (alone: all): ");
    if (!typed) return;
    Question question = question_;
    question.pids.clear();
    if (!typed->empty()) question.pids.push_back(*typed);
    ask(std::move(question));
  }

  void prompt_pattern() {
    const auto typed = prompt("/");
    if (!typed) return;
    if (!typed->empty()) pattern_ = *typed;
    if (!pattern_.empty() && !view_.functions.empty()) find(true);
  }

  void turn(bool Question::*member) {
    Question question = question_;
    question.*member = !(question.*member);
    ask(std::move(question));
  }

  void order_by(Order order) {
    order_ = order;
    sort(view_.functions, order_);
    first_ = 0;
  }

  void take(int key) {
    if (shows_help_) {
      shows_help_ = key == KEY_RESIZE;
      return;
    }
    // A message stays until the next key.
    status_.clear();
    const std::size_t page = std::max<std::size_t>(rows_, 1);
    switch (key) {
      case 'q':
      case 'Q':
        is_over_ = true;
        break;
      case 'h':
      case '?':
        shows_help_ = true;
        break;
      case KEY_DOWN:
      case 'j':
      case 'e':
        ++first_;
        break;
      case KEY_UP:
      case 'k':
      case 'y':
        first_ -= std::min<std::size_t>(first_, 1);
        break;
      case KEY_NPAGE:
      case ' ':
        first_ += page;
        break;
      case KEY_PPAGE:
      case 'b':
        first_ -= std::min(first_, page);
        break;
      case KEY_HOME:
      case 'g':
        first_ = 0;
        break;
      case KEY_END:
      case 'G':
        first_ = view_.functions.size();
        break;
      case '/':
        prompt_pattern();
        break;
      case 'n':
      case 'N':
        if (!pattern_.empty() && !view_.functions.empty()) find(key == 'n');
        break;
      case '&':
        prompt_member("only stacks with (regular expression): ", &Question::focus);
        break;
      case 'P':
        order_by(Order::kSelf);
        break;
      case 'T':
        order_by(Order::kTotal);
        break;
      case 'H':
        turn(&Question::by_thread);
        break;
      case 'w':
        turn(&Question::waits);
        break;
      case 'p':
        prompt_pid();
        break;
      case 'u':
        prompt_member("uid (alone: all): ", &Question::uid);
        break;
      case 'd':
      case 's':
        prompt_delay();
        break;
      case '<':
        step_window(-1);
        break;
      case '>':
        step_window(1);
        break;
      case 'f':
        prompt_window();
        break;
      case 'l':
        prompt_live();
        break;
      case 'r':
      case 'R':
      case kEnter:
      case KEY_ENTER:
        look_again();
        break;
      default:
        break;  // KEY_RESIZE, too: it is drawn anew anyway
    }
  }

  const Client& client_;
  Question question_;
  double delay_;
  View view_;
  Order order_ = Order::kSelf;
  std::size_t first_ = 0;  ///< of the functions on the screen
  std::size_t rows_ = 0;   ///< of functions that fit
  std::string pattern_;
  std::string status_;  ///< instead of the foot
  SteadyClock::time_point due_{};
  bool shows_help_ = false;
  bool is_over_ = false;
};

}  // namespace

Status show(const Client& client, Question question, double delay_s) {
  // initscr() would end the program.
  ::SCREEN* const screen = ::newterm(nullptr, stdout, stdin);
  if (screen == nullptr)
    return Error("the terminal \"" + std::string(std::getenv("TERM") != nullptr ? std::getenv("TERM") : "") +
                 "\" (TERM) is not known: flamed-top -b writes plain text");
  {
    const Terminal terminal;
    Screen(client, std::move(question), delay_s).run();
  }
  ::delscreen(screen);
  return {};
}

}  // namespace flamed::top
