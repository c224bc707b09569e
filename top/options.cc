// SPDX-License-Identifier: Apache-2.0
#include "top/options.h"

#include <charconv>
#include <string_view>

namespace flamed::top {
namespace {

constexpr double kShortestDelay = 0.5;
constexpr double kLongestDelay = 3600;

template <typename Number>
bool read_number(std::string_view text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

Error wrong(std::string_view flag, std::string_view value, std::string_view form) {
  return Error("\"" + std::string(value) + "\" is not possible as " + std::string(flag) + ": " + std::string(form));
}

}  // namespace

const char* const kUsage =
    "Usage: flamed-top [OPTION...]\n"
    "What the CPUs do: flamed's summary and the hottest functions, live or of a past window.\n"
    "\n"
    "  -a, --address ADDRESS   where flamed answers: HOST:PORT or unix:/PATH; default: the service's socket, if there\n"
    "                          is one, else 127.0.0.1:9090\n"
    "  -d, --delay SECONDS     between two looks; default 3\n"
    "  -l, --last LENGTH       live: the last 30s, 5m, 1h; default 60s\n"
    "  -f, --from TIME         a past window instead: now-1h, 14:05, 2026-01-31T14:05:10Z, unix seconds\n"
    "  -t, --to TIME           its end; default now\n"
    "  -p, --pid PID           only these processes, as 1234 or 1234@567890; may be repeated\n"
    "  -u, --uid UID           only those of this user\n"
    "      --unit UNIT         only those of this systemd unit\n"
    "      --focus PATTERN     only stacks with a function that matches this regular expression\n"
    "  -H                      summary by thread\n"
    "  -w, --wait              what threads wait for, instead of CPU time\n"
    "  -b                      plain text, as if the output were no terminal\n"
    "  -n NUMBER               plain text so many times, with the delay in between; default 1\n"
    "      --rows NUMBER       functions in plain text; default 20\n"
    "  -h, --help              this text\n"
    "      --version           flamed's version\n";

Result<Options> parse_options(std::span<const char* const> arguments) {
  Options options;
  Question& question = options.question;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string_view flag = arguments[i];
    std::string_view value;
    bool has_value = false;
    if (flag.starts_with("--") && flag.find('=') != std::string_view::npos) {
      value = flag.substr(flag.find('=') + 1);
      flag = flag.substr(0, flag.find('='));
      has_value = true;
    }
    const auto is = [&](std::string_view brief, std::string_view full) { return flag == brief || flag == full; };
    if (is("-h", "--help")) {
      options.shows_help = true;
    } else if (flag == "--version") {
      options.shows_version = true;
    } else if (flag == "-H") {
      question.by_thread = true;
    } else if (is("-w", "--wait")) {
      question.waits = true;
    } else if (flag == "-b") {
      options.plain = true;
    } else {
      const bool is_known = is("-a", "--address") || is("-d", "--delay") || is("-l", "--last") || is("-f", "--from") ||
                            is("-t", "--to") || is("-p", "--pid") || is("-u", "--uid") || flag == "--unit" ||
                            flag == "--focus" || flag == "-n" || flag == "--rows";
      if (!is_known)
        return Error("there is no option " + std::string(flag) + ": flamed-top --help lists those there are");
      if (!has_value) {
        if (i + 1 == arguments.size()) return Error(std::string(flag) + " needs a value");
        value = arguments[++i];
      }
      if (is("-a", "--address")) {
        options.address = value;
      } else if (is("-d", "--delay")) {
        if (!read_number(value, options.delay_s) || options.delay_s < kShortestDelay || options.delay_s > kLongestDelay)
          return wrong(flag, value, "seconds from 0.5 to 3600");
      } else if (is("-l", "--last")) {
        question.last = value;
      } else if (is("-f", "--from")) {
        question.from = value;
      } else if (is("-t", "--to")) {
        question.to = value;
      } else if (is("-p", "--pid")) {
        question.pids.emplace_back(value);
      } else if (is("-u", "--uid")) {
        question.uid = value;
      } else if (flag == "--unit") {
        question.unit = value;
      } else if (flag == "--focus") {
        question.focus = value;
      } else if (!read_number(value, flag == "-n" ? options.rounds : options.rows)) {
        return wrong(flag, value, "a whole number");
      }
    }
  }
  if (!question.to.empty() && question.from.empty()) return Error("--to needs --from: when the window begins");
  return options;
}

}  // namespace flamed::top
