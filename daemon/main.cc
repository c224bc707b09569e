// SPDX-License-Identifier: Apache-2.0
//
// flamed: the command line, and everything that must happen before threads are started.
#include <signal.h>
#include <sys/prctl.h>

#include <cstdio>
#include <exception>
#include <optional>
#include <span>
#include <string>

#include "api/text/time_expression.h"
#include "archive/reading/check.h"
#include "archive/reading/excerpt.h"
#include "base/clock.h"
#include "base/heap.h"
#include "daemon/config/config.h"
#include "daemon/config/log.h"
#include "daemon/config/refusal.h"
#include "daemon/daemon.h"
#include "daemon/opened_history.h"
#include "daemon/version.h"
#include "daemon/waits/stack_helper.h"
#include "store/query/slot_selection.h"
#include "symbolizer/opener/open_helper.h"
#include "symbolizer/reader/direct_module_reader.h"
#include "symbolizer/worker/spawner.h"

namespace flamed::daemon {
namespace {

/// Of the service, whose environment has its name.
constexpr const char* kServiceHistory = "/var/lib/flamed/history";

/// Blocks the signals that end or concern the daemon in every thread; main waits for them.
sigset_t block_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&signals, signal);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  return signals;
}

int check_history(const Config& config) {
  const std::string configured = history_folder(config);
  const std::string folder = configured.empty() ? kServiceHistory : configured;
  const Result<archive::Checked> checked = archive::check_history(folder);
  if (!checked) {
    std::fprintf(stderr, "flamed: %s\n", checked.error().message().c_str());
    return static_cast<int>(ExitStatus::kUsage);
  }
  for (const std::string& problem : checked->problems) std::printf("%s\n", problem.c_str());
  std::printf("%s: %zu files, %llu minutes can be read, %zu problems\n", folder.c_str(), checked->files,
              static_cast<unsigned long long>(checked->minutes), checked->problems.size());
  return static_cast<int>(checked->problems.empty() ? ExitStatus::kEnded : ExitStatus::kUnexpected);
}

Result<store::WallWindow> exported_window(const CommandLine& line) {
  const api::TimeContext context{SystemClock().wall(), api::system_local_offset_s};
  const Result<api::GivenTime> from = api::parse_time(line.from, context);
  if (!from) return from.error();
  const Result<api::GivenTime> to = api::parse_time(line.to, context);
  if (!to) return to.error();
  return api::resolve_window(from->moment, api::end_meant(*to, *from, context.now), context.now);
}

int export_history(const CommandLine& line) {
  const auto refuse = [](const Error& error) {
    std::fprintf(stderr, "flamed: nothing was exported: %s\n", error.message().c_str());
    return static_cast<int>(ExitStatus::kUsage);
  };
  const Result<store::WallWindow> window = exported_window(line);
  if (!window) return refuse(window.error());
  const std::string configured = history_folder(line.config);
  const Result<archive::Excerpt> excerpt =
      archive::write_excerpt(configured.empty() ? kServiceHistory : configured, *window, line.file);
  if (!excerpt) return refuse(excerpt.error());
  for (const std::string& problem : excerpt->problems) std::fprintf(stderr, "flamed: missing: %s\n", problem.c_str());
  std::printf("%s: %llu minutes, from %s to %s\n", line.file.c_str(), static_cast<unsigned long long>(excerpt->minutes),
              store::to_text(excerpt->stretch.from).c_str(), store::to_text(excerpt->stretch.to).c_str());
  return static_cast<int>(excerpt->problems.empty() ? ExitStatus::kEnded : ExitStatus::kUnexpected);
}

int main_with(std::span<const char* const> arguments) {
  Result<CommandLine> line = parse_command_line(arguments);
  if (!line) {
    std::fprintf(stderr, "flamed: %s\n", line.error().message().c_str());
    return static_cast<int>(ExitStatus::kUsage);
  }
  switch (line->action) {
    case CommandLine::Action::kVersion:
      std::printf("flamed %s\n", kVersion);
      return 0;
    case CommandLine::Action::kHelp:
      std::fputs(help_text().c_str(), stdout);
      return 0;
    case CommandLine::Action::kCheckConfig:
      std::printf("flamed: %s\n", line->config_file.empty() ? "no configuration file; the defaults are good"
                                                            : (line->config_file + " is good").c_str());
      return 0;
    case CommandLine::Action::kCheckHistory:
      return check_history(line->config);
    case CommandLine::Action::kExport:
      return export_history(*line);
    case CommandLine::Action::kOpen:
    case CommandLine::Action::kRun:
      break;
  }
  keep_freed_memory();
  // So that processes of the same user, such as the service's ELF worker, can't inspect it.
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  const sigset_t signals = block_signals();
  start_logging(line->config.log_level);
  if (line->action == CommandLine::Action::kOpen) {
    OpenedHistory history(line->config, line->file);
    if (const auto status = history.start()) return static_cast<int>(*status);
    OpenedHistory::run(signals);
    return 0;
  }
  Daemon daemon(line->config, arguments);
  if (const auto status = daemon.start()) return static_cast<int>(*status);
  daemon.run(signals);
  return 0;
}

}  // namespace
}  // namespace flamed::daemon

int main(int argc, char** argv) {
  try {
    if (const std::optional<int> ended = flamed::symbolizer::run_open_helper_if_asked(argc, argv)) return *ended;
    if (const std::optional<int> ended = flamed::daemon::run_stack_helper_if_asked(argc, argv)) return *ended;
    flamed::symbolizer::DirectModuleReader reader;
    if (const std::optional<int> ended = flamed::symbolizer::run_spawner_if_asked(argc, argv, reader)) return *ended;
    return flamed::daemon::main_with(std::span<const char* const>(argv + 1, static_cast<std::size_t>(argc - 1)));
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "flamed: %s\n", exception.what());
    return 1;
  }
}
