// SPDX-License-Identifier: Apache-2.0
//
// flamed-push: the command line, and a thread for each receiver. The main thread tells the daemon what became of it.
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/thread.h"
#include "base/thread_cpu.h"
#include "push/config.h"
#include "push/http_client.h"
#include "push/mark_file.h"
#include "push/pusher.h"
#include "push/report.h"
#include "push/version.h"

namespace flamed::push {
namespace {

constexpr int kUnexpected = 1;
constexpr int kUsage = 2;
constexpr std::size_t kMostConfigBytes = std::size_t{1} << 20;

constexpr const char* kHelp =
    "flamed-push: sends what flamed has sampled to Pyroscope or OpenTelemetry collectors\n\n"
    "usage: flamed-push [options]\n\n"
    "  --config FILE    JSON with comments; default /etc/flamed/push.json\n"
    "  --state FOLDER   where it keeps how far each receiver is; default $STATE_DIRECTORY\n"
    "  --check-config   say whether the configuration is good, and end\n"
    "  --version\n"
    "  --help\n\n"
    "exit status:\n"
    "  0  told to exit\n"
    "  1  an unexpected error\n"
    "  2  a bad flag or configuration\n";

std::string variable(const char* name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread writes the environment.
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

struct CommandLine {
  std::string config = kDefaultConfigFile;
  std::string state = variable("STATE_DIRECTORY");
  bool only_checks = false;
};

/// With a status: the program ends with it.
struct Parsed {
  CommandLine line{};
  std::optional<int> status{};
};

Parsed parse_command_line(std::span<const char* const> arguments) {
  Parsed parsed;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view flag = arguments[i];
    std::string* const value = flag == "--config"  ? &parsed.line.config
                               : flag == "--state" ? &parsed.line.state
                                                   : nullptr;
    if (value != nullptr && i + 1 < arguments.size()) {
      *value = arguments[++i];
    } else if (flag == "--check-config") {
      parsed.line.only_checks = true;
    } else if (flag == "--version" || flag == "--help") {
      std::fputs(flag == "--help" ? kHelp : (std::string("flamed-push ") + kVersion + "\n").c_str(), stdout);
      return {{}, 0};
    } else {
      std::fprintf(stderr, "flamed-push: unknown argument '%s', or its value is missing; see flamed-push --help\n",
                   arguments[i]);
      return {{}, kUsage};
    }
  }
  return parsed;
}

Result<Config> read_config(const std::string& path) {
  const Result<std::string> text = read_file(path, kMostConfigBytes);
  if (!text) return Error(text.error()).with_context("cannot read the configuration");
  Result<Config> config = parse_config(*text);
  if (!config) return std::move(config).error().with_context(path);
  if (Status read = read_secrets(*config, variable("CREDENTIALS_DIRECTORY")); !read) {
    return Error(read.error()).with_context(path);
  }
  return config;
}

/// The end of the program, for threads that wait.
class Ending {
 public:
  void begin() {
    const std::lock_guard lock(mutex_);
    has_begun_ = true;
    begun_.notify_all();
  }
  /// False: it has begun.
  bool wait(std::int64_t ns) {
    std::unique_lock lock(mutex_);
    return !begun_.wait_for(lock, std::chrono::nanoseconds(ns), [&] { return has_begun_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable begun_;
  bool has_begun_ = false;
};

void log_line(const std::string& line) { std::fprintf(stderr, "flamed-push: %s\n", line.c_str()); }

Pusher::Outside outside_of(const Config& config, const Receiver& receiver, const std::string& state, Ending& ending,
                           const Clock& clock) {
  return {
      clock,
      [&ending](std::int64_t ns) { return ending.wait(ns); },
      [&config](const std::string& target) { return ask_daemon(config.socket, target, nullptr); },
      [&receiver](const Headers& headers, const std::string& body) { return post(receiver, headers, body); },
      [state](const std::string& name) {
        const Result<std::optional<Mark>> mark = load_mark(state, name);
        if (mark) return *mark;
        log_line(mark.error().message() + "; begins anew");
        return std::optional<Mark>();
      },
      [state](const std::string& name, const Mark& mark) {
        if (const Status saved = save_mark(state, name, mark); !saved) log_line(saved.error().message());
      },
      [] {
        thread_local std::minstd_rand random(std::random_device{}());
        return std::uniform_real_distribution<double>(0, 1)(random);
      },
      log_line,
  };
}

int push(const Config& config, const std::string& state, const sigset_t& signals) {
  const SystemClock clock;
  Ending ending;
  std::vector<std::unique_ptr<Pusher>> pushers;
  std::vector<std::jthread> threads;
  std::int64_t interval_ns = kNsPerMinute;
  for (const Receiver& receiver : config.receivers) {
    interval_ns = std::min(interval_ns, receiver.interval_ns);
    pushers.push_back(std::make_unique<Pusher>(receiver, outside_of(config, receiver, state, ending, clock)));
    threads.push_back(
        start_thread(receiver.name.substr(0, 15),
                     [pusher = pushers.back().get()](const std::stop_token& /*stop*/) { pusher->run(); }));
    log_line("sends to " + receiver.name + ", " + receiver.origin);
  }
  bool was_told = true;
  const timespec pause{interval_ns / kNsPerSecond, 0};
  while (::sigtimedwait(&signals, nullptr, &pause) < 0) {
    std::vector<ReceiverFigures> figures;
    for (const auto& pusher : pushers) figures.push_back({pusher->receiver().name, pusher->figures()});
    const std::string body = report(interval_ns / kNsPerMs, read_cpu_clock(CLOCK_PROCESS_CPUTIME_ID), figures);
    const LocalAnswer answer = ask_daemon(config.socket, "/push", &body);
    if (answer.status != 201 && was_told) {
      log_line("flamed does not take the report: " +
               (answer.fault.empty() ? "status " + std::to_string(answer.status) + " " + answer.body.substr(0, 300)
                                     : answer.fault));
    }
    was_told = answer.status == 201;
  }
  ending.begin();
  return 0;
}

int main_with(std::span<const char* const> arguments) {
  const auto [line, status] = parse_command_line(arguments);
  if (status) return *status;
  // So that no core dump has the receivers' credentials, and no other process of the same user reads them.
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  const Result<Config> config = read_config(line.config);
  if (!config) {
    log_line(config.error().message());
    return kUsage;
  }
  if (line.only_checks) {
    std::printf("flamed-push: %s is good\n", line.config.c_str());
    return 0;
  }
  if (line.state.empty() || config->receivers.empty()) {
    log_line(line.state.empty() ? "there is no folder for its marks: give one with --state"
                                : line.config + " has no receivers");
    return kUsage;
  }
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT}) ::sigaddset(&signals, signal);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  return push(*config, line.state, signals);
}

}  // namespace
}  // namespace flamed::push

int main(int argc, char** argv) {
  try {
    return flamed::push::main_with(std::span<const char* const>(argv + 1, static_cast<std::size_t>(argc - 1)));
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "flamed-push: %s\n", exception.what());
    return flamed::push::kUnexpected;
  }
}
