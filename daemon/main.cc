// SPDX-License-Identifier: Apache-2.0
//
// flamed: the wiring.
#include <fcntl.h>
#include <linux/magic.h>
#include <pwd.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "api/server/server.h"
#include "base/clock.h"
#include "base/heap.h"
#include "base/thread.h"
#include "base/thread_cpu.h"
#include "base/units.h"
#include "daemon/budget/budget_keeper.h"
#include "daemon/budget/cost_meter.h"
#include "daemon/config/config.h"
#include "daemon/config/log.h"
#include "daemon/config/refusal.h"
#include "daemon/daemon_sources.h"
#include "daemon/flow/cpu_accounts.h"
#include "daemon/flow/ingest.h"
#include "daemon/flow/reader.h"
#include "daemon/flow/stored_until.h"
#include "daemon/naming/bpf_functions.h"
#include "daemon/naming/frame_namer.h"
#include "daemon/naming/jvm_asker.h"
#include "daemon/naming/module_loader.h"
#include "daemon/naming/name_keeper.h"
#include "daemon/sampler/sampler.h"
#include "daemon/supervisor.h"
#include "daemon/unwind/bpf_unwind_maps.h"
#include "daemon/unwind/unwind_publisher.h"
#include "daemon/version.h"
#include "daemon/vitals.h"
#include "store/ring/store.h"
#include "symbolizer/names/caching_symbolizer.h"
#include "symbolizer/names/debug_file_finder.h"
#include "symbolizer/names/debuginfod.h"
#include "symbolizer/names/kernel_symbols.h"
#include "symbolizer/names/module_symbolizer.h"
#include "symbolizer/opener/guarded_opener.h"
#include "symbolizer/process/module_table.h"
#include "symbolizer/process/process_details.h"
#include "symbolizer/process/process_tracker.h"
#include "symbolizer/reader/direct_module_reader.h"
#include "symbolizer/worker/spawner.h"
#include "symbolizer/worker/unused_user.h"
#include "symbolizer/worker/worker_module_reader.h"

namespace flamed::daemon {
namespace {

/// Descriptors that are not modules: perf events and rings, sockets, files being read.
constexpr rlim_t kOtherDescriptors = 1024;
/// Of tables that were read for names to be kept: worth the milliseconds that it takes to give memory back.
constexpr std::size_t kMuchMemory = std::size_t{4} << 20;

/// What questions keep lasts for as long as they come. It is not in the store's budget, but a part of this size beside
/// it.
constexpr std::size_t kIndexShare = 8;

/// As many open files as the system lets us have; how many of them may be modules.
std::size_t raise_open_file_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur > 2 * kOtherDescriptors ? limit.rlim_cur - kOtherDescriptors : limit.rlim_cur / 2;
}

/// Blocks the signals that end or concern the daemon in every thread; main waits for them.
sigset_t block_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&signals, signal);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  return signals;
}

/// Where the unified hierarchy of cgroups is mounted: elsewhere when the host uses the first version beside it.
std::string unified_cgroups() {
  constexpr const char* kBeside = "/sys/fs/cgroup/unified";
  return ::access(kBeside, F_OK) == 0 ? kBeside : "/sys/fs/cgroup";
}

void run_ingest(const std::stop_token& stop, Ingest& ingest, BatchQueues& queues, StoredUntil& stored) {
  while (std::optional<std::unique_ptr<EventBatch>> batch = queues.full.pop(stop)) {
    ingest.apply(**batch);
    stored.advance((*batch)->drained_at);
    static_cast<void>(queues.empty.try_push(std::move(*batch)));
  }
}

/// Null where the kernel refuses the tables; the log says once why.
std::unique_ptr<BpfUnwindMaps> open_unwind_maps(const Sampler& sampler) {
  const std::optional<UnwindMapFds> fds = sampler.unwind_maps();
  if (!fds) {
    UnwindPublisher::tell_none(sampler.why_no_tables());
    return nullptr;
  }
  Result<std::unique_ptr<BpfUnwindMaps>> maps = BpfUnwindMaps::open(*fds);
  if (!maps) {
    UnwindPublisher::tell_none(maps.error().message());
    return nullptr;
  }
  return std::move(maps).value();
}

/// Null where it isn't asked for, or not installed; the log says which.
std::unique_ptr<symbolizer::Debuginfod> start_debuginfod(const Config& config, const Clock& clock) {
  if (config.debuginfod_urls.empty()) return nullptr;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody writes the environment beside this.
  const char* cache = std::getenv("CACHE_DIRECTORY");  // of the service manager
  Result<symbolizer::Debuginfod::Fetch> fetch = symbolizer::load_libdebuginfod(
      config.debuginfod_urls, std::string(cache == nullptr ? "/var/cache/flamed" : cache) + "/debuginfod");
  if (!fetch) {
    spdlog::warn("no debug files from servers: {}", fetch.error().message());
    return nullptr;
  }
  spdlog::info("debug files that are not here are fetched from {}", config.debuginfod_urls);
  return std::make_unique<symbolizer::Debuginfod>(std::move(fetch).value(), clock);
}

/// /proc/kallsyms as the service manager opened it. It shows addresses to whom it was opened by, and is out of reach
/// otherwise under ProtectKernelTunables=.
Fd kallsyms_on_stdin() {
  struct statfs system {};
  struct stat status {};
  const bool is_proc_file = ::fstatfs(STDIN_FILENO, &system) == 0 && system.f_type == PROC_SUPER_MAGIC &&
                            ::fstat(STDIN_FILENO, &status) == 0 && S_ISREG(status.st_mode);
  return Fd(is_proc_file ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1) : -1);
}

/// For a daemon that runs as root: the user of the package, which owns nothing and may do nothing, or else one whom
/// nobody is.
symbolizer::WorkerProcess::Program worker_program() {
  symbolizer::WorkerProcess::Program program;
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 4096> text{};
  if (::getpwnam_r("flamed", &entry, text.data(), text.size(), &found) == 0 && found != nullptr && entry.pw_uid != 0) {
    program.user = entry.pw_uid;
    return program;
  }
  if (::getuid() != 0) return program;  // and may take no other user
  const auto has_account = [&](uid_t user) {
    return ::getpwuid_r(user, &entry, text.data(), text.size(), &found) != 0 || found != nullptr;
  };
  const auto own = static_cast<std::uint32_t>(::getpid());
  if (const auto unused = symbolizer::find_unused_user({.has_account = has_account, .begin_at = own})) {
    program.user = *unused;
  } else {
    spdlog::warn(
        "the ELF worker runs as nobody, whose other processes may stop it: every user from {} to {} is taken "
        "or missing here; add a user `flamed`",
        symbolizer::kFirstUnusedUser, symbolizer::kFirstUnusedUser + symbolizer::kUnusedUsers - 1);
  }
  return program;
}

/// What to exit with, and a message that says why and what to do.
int refuse(const Error& error) {
  const Refusal refusal = explain_refusal(error, read_refusal_facts());
  spdlog::critical("{}{}{}", error.message(), refusal.remedy.empty() ? "" : "; ", refusal.remedy);
  return static_cast<int>(refusal.status);
}

/// Sockets that the service manager has opened for us (sd_listen_fds(3)); the environment that says so is cleared.
std::vector<Fd> inherited_sockets() {
  std::vector<Fd> sockets;
  const int count = ::sd_listen_fds(1);
  for (int i = 0; i < count; ++i) sockets.emplace_back(SD_LISTEN_FDS_START + i);
  return sockets;
}

api::ServerOptions server_options(const Config& config) {
  api::ServerOptions options;
  options.when_quiet = give_back_freed_memory;
  options.inherited = inherited_sockets();
  // The default address is for who was given no other.
  if (!config.listen.empty() || !options.inherited.empty()) options.addresses = config.listen;
  options.token_file = config.token_file;
  return options;
}

/// " (ring_full 12, too_old 3)"; empty when nothing was lost.
std::string reasons_of_losses(const store::Quality& quality) {
  std::string reasons;
  for (std::size_t i = 0; i < quality.lost.size(); ++i) {
    if (quality.lost[i] == 0) continue;
    reasons += reasons.empty() ? " (" : ", ";
    reasons += std::string(store::name_of(static_cast<store::Loss>(i))) + " " + std::to_string(quality.lost[i]);
  }
  return reasons.empty() ? reasons : reasons + ")";
}

int run(const Config& config, std::span<const char* const> arguments, const sigset_t& signals) {
  const SystemClock clock;

  Result<std::unique_ptr<Sampler>> started = Sampler::start({config.frequency_hz, config.use_unwind_tables}, clock);
  if (!started) return refuse(started.error());
  Sampler& sampler = **started;

  store::Store store({config.retention_ns, config.memory_budget_bytes}, clock, sampler.period_ns());
  symbolizer::ModuleTable modules(raise_open_file_limit(), clock);
  symbolizer::ProcessTracker processes(modules, clock);
  processes.scan();
  const std::unique_ptr<BpfUnwindMaps> unwind_maps = open_unwind_maps(sampler);
  std::optional<UnwindPublisher> unwind;
  if (unwind_maps != nullptr) unwind.emplace(*unwind_maps, config.unwind_budget_bytes, clock);
  UnwindPublisher* const unwind_or_null = unwind ? &*unwind : nullptr;
  symbolizer::ProcessDetails details(config.command_lines, "/proc", unified_cgroups());
  CpuAccounts accounts({.retention_ns = config.retention_ns}, clock);
  Ingest ingest(processes, details, modules, store, clock, unwind_or_null, &accounts);
  BatchQueues queues;
  std::optional<CostMeter> meter;  // when all threads are there
  BudgetKeeper budget(config.frequency_hz, {config.cpu_budget, where_set(config, "cpu_budget")},
                      [&meter] { return meter->read(); });
  StoredUntil stored([&sampler] { sampler.wake(); });
  Reader reader(sampler, queues, clock, budget, stored);

  symbolizer::KernelSymbols kernel_symbols(clock, {.file = kallsyms_on_stdin(), .bpf_functions = read_bpf_functions});
  symbolizer::WorkerModuleReader module_reader({.program = worker_program()});
  const std::unique_ptr<symbolizer::Debuginfod> debuginfod = start_debuginfod(config, clock);
  symbolizer::GuardedOpener opener(clock);
  symbolizer::DebugFileFinder debug_files(module_reader, opener, {}, debuginfod.get());
  symbolizer::ModuleSymbolizer symbolizer(modules, kernel_symbols, module_reader, debug_files, clock);
  symbolizer::CachingSymbolizer cache(symbolizer, clock);
  FrameNamer namer(cache, config.memory_budget_bytes / kIndexShare);

  store.begin();
  // Changes have been told of since before the scan: every sample finds its process known.
  if (const Status begun = sampler.begin(); !begun) return refuse(begun.error());
  ingest.begin();
  accounts.begin();
  JvmAsker jvm_asker(modules, clock);
  Vitals vitals(read_vital_signs(clock, sampler, reader));
  DaemonSources sources({config, clock, sampler, queues, vitals, store, modules, symbolizer, module_reader,
                         kernel_symbols, cache, namer, debuginfod.get(), unwind_or_null, accounts, opener, budget,
                         stored});

  Result<std::unique_ptr<api::Server>> server = api::Server::listen(server_options(config), sources);
  if (!server) {
    spdlog::critical("{}", server.error().message());
    return static_cast<int>(ExitStatus::kCannotListen);
  }

  std::jthread jvm_thread;
  if (config.jvm_attach) {
    jvm_thread = start_thread("jvm-attach", [&](const std::stop_token& stop) { jvm_asker.run(stop); });
  }
  ModuleLoader loader({modules, opener, module_reader, sampler, kernel_symbols, unwind_or_null,
                       config.jvm_attach ? &jvm_asker : nullptr, budget});
  std::jthread modules_thread = start_thread("modules", [&](const std::stop_token& stop) { loader.run(stop); });
  NameKeeper name_keeper({modules, symbolizer, store, clock, [&budget] { return budget.may_work_in_background(); },
                          [&symbolizer] {
                            if (symbolizer.let_go_of_closed() >= kMuchMemory) give_back_freed_memory();
                          }});
  std::jthread names_thread = start_thread("names", [&](const std::stop_token& stop) { name_keeper.run(stop); });
  std::vector<ThreadCpu> background;
  background.emplace_back(modules_thread);
  background.emplace_back(names_thread);
  if (config.jvm_attach) background.emplace_back(jvm_thread);
  meter.emplace(clock, sampler, **server, module_reader, opener, std::move(background));
  std::jthread ingest_thread =
      start_thread("ingest", [&](const std::stop_token& stop) { run_ingest(stop, ingest, queues, stored); });
  std::jthread reader_thread = start_thread("reader", [&](const std::stop_token& stop) { reader.run(stop); });

  spdlog::info("flamed {} samples {} CPUs at {} Hz and answers on {} (retention {}, store budget {})", kVersion,
               sampler.cpus(), config.frequency_hz, (*server)->addresses(), format_duration(config.retention_ns),
               format_size(config.memory_budget_bytes));
  if (sampler.reads_by_type()) spdlog::info("the kernel is locked down: its memory is read by type");
  if (!sampler.has_side_band()) spdlog::warn("no side band: mapping changes are read from /proc");
  ::sd_notify(0, "READY=1");

  Supervisor supervisor({clock, sampler, reader, module_reader, store, *namer.kept_index(), **server, vitals, budget},
                        config, arguments);
  supervisor.run(signals);
  ::sd_notify(0, "STOPPING=1");
  module_reader.stop();
  opener.stop();
  // In the direction of the flow: what was taken is still stored and counted.
  for (std::jthread* thread : {&reader_thread, &ingest_thread, &modules_thread, &names_thread}) {
    thread->request_stop();
    thread->join();
  }
  const store::Quality quality = store.stats().quality;
  spdlog::info("ended: {} samples taken = {} whole + {} truncated + {} lost{}", sampler.taken(), quality.whole,
               quality.truncated_total(), quality.lost_total(), reasons_of_losses(quality));
  return 0;
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
    case CommandLine::Action::kRun:
      break;
  }
  keep_freed_memory();
  // Nobody else of its user, such as the ELF worker of the service, gets to look into it.
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  const sigset_t signals = block_signals();
  start_logging(line->config.log_level);
  return run(line->config, arguments, signals);
}

}  // namespace
}  // namespace flamed::daemon

int main(int argc, char** argv) {
  try {
    if (const std::optional<int> ended = flamed::symbolizer::run_open_helper_if_asked(argc, argv)) return *ended;
    flamed::symbolizer::DirectModuleReader reader;
    if (const std::optional<int> ended = flamed::symbolizer::run_spawner_if_asked(argc, argv, reader)) return *ended;
    return flamed::daemon::main_with(std::span<const char* const>(argv + 1, static_cast<std::size_t>(argc - 1)));
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "flamed: %s\n", exception.what());
    return 1;
  }
}
