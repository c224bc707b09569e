// SPDX-License-Identifier: Apache-2.0
#include "daemon/daemon.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <pwd.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <future>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include "api/server/server.h"
#include "archive/files/archive.h"
#include "archive/reading/minute_index.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/thread.h"
#include "base/thread_cpu.h"
#include "base/units.h"
#include "daemon/budget/budget_keeper.h"
#include "daemon/budget/cost_meter.h"
#include "daemon/config/config.h"
#include "daemon/config/refusal.h"
#include "daemon/containers/container_namer.h"
#include "daemon/daemon_sources.h"
#include "daemon/flow/cpu_accounts.h"
#include "daemon/flow/ingest.h"
#include "daemon/flow/off_cpu_intake.h"
#include "daemon/flow/reader.h"
#include "daemon/flow/runtime_stacks.h"
#include "daemon/flow/stored_until.h"
#include "daemon/flow/thread_census.h"
#include "daemon/flow/wait_intake.h"
#include "daemon/history/history.h"
#include "daemon/history/history_namer.h"
#include "daemon/machine/pressure_watch.h"
#include "daemon/naming/bpf_functions.h"
#include "daemon/naming/frame_namer.h"
#include "daemon/naming/module_loader.h"
#include "daemon/naming/name_keeper.h"
#include "daemon/naming/row_cache.h"
#include "daemon/naming/walk_loader.h"
#include "daemon/runtimes/code_heaps.h"
#include "daemon/runtimes/hotspot_namer.h"
#include "daemon/runtimes/open_jvms.h"
#include "daemon/runtimes/process_memories.h"
#include "daemon/runtimes/runtime_modules.h"
#include "daemon/runtimes/runtime_namer.h"
#include "daemon/sampler/sampler.h"
#include "daemon/supervisor.h"
#include "daemon/unwind/bpf_unwind_maps.h"
#include "daemon/unwind/known_programs.h"
#include "daemon/unwind/unwind_publisher.h"
#include "daemon/version.h"
#include "daemon/vitals.h"
#include "daemon/waits/off_cpu_capture.h"
#include "daemon/waits/wait_visitor.h"
#include "store/ring/store.h"
#include "symbolizer/names/caching_symbolizer.h"
#include "symbolizer/names/debian_packages.h"
#include "symbolizer/names/debug_file_finder.h"
#include "symbolizer/names/debuginfod.h"
#include "symbolizer/names/function_names.h"
#include "symbolizer/names/kernel_symbols.h"
#include "symbolizer/names/module_symbolizer.h"
#include "symbolizer/names/runtime_functions.h"
#include "symbolizer/opener/guarded_opener.h"
#include "symbolizer/process/cgroup_tree.h"
#include "symbolizer/process/module_table.h"
#include "symbolizer/process/process_details.h"
#include "symbolizer/process/process_tracker.h"
#include "symbolizer/worker/unused_user.h"
#include "symbolizer/worker/worker_module_reader.h"

namespace flamed::daemon {
namespace {

/// Descriptors for other uses: perf events and rings, sockets, files being read.
constexpr rlim_t kOtherDescriptors = 1024;
/// From this size of freed tables on, returning memory is worth the milliseconds that it takes.
constexpr std::size_t kMuchMemory = std::size_t{4} << 20;

/// The cache of queries lives as long as there are queries. It has this part of the store's budget in addition to that
/// budget.
constexpr std::size_t kIndexShare = 8;

/// At the end the last minute's frames are named within this time, or stay unnamed.
constexpr std::chrono::seconds kLastNames{5};
/// Before a minute is written as it is so far.
constexpr std::chrono::seconds kLongestDrain{2};

/// Raises the limit of open files as far as possible; returns how many may be modules.
std::size_t raise_open_file_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur > 2 * kOtherDescriptors ? limit.rlim_cur - kOtherDescriptors : limit.rlim_cur / 2;
}

/// Where the unified hierarchy of cgroups is, which differs if the host also uses cgroup v1.
symbolizer::CgroupTree unified_cgroups() {
  constexpr const char* kBeside = "/sys/fs/cgroup/unified";
  const std::string mount = ::access(kBeside, F_OK) == 0 ? kBeside : "/sys/fs/cgroup";
  Result<symbolizer::CgroupTree> tree = symbolizer::find_cgroup_tree("/proc", mount);
  if (tree) return std::move(*tree);
  spdlog::warn("paths of control groups are relative to that of this container: {}", tree.error().message());
  return {mount};
}

/// Samples that wait for rows are looked at this often.
constexpr std::chrono::milliseconds kBetweenLateWalks{50};

void run_ingest(const std::stop_token& stop, Ingest& ingest, BatchQueues& queues, StoredUntil& stored) {
  for (;;) {
    if (ingest.has_waiting() && !queues.full.await(stop, std::chrono::steady_clock::now() + kBetweenLateWalks)) {
      ingest.walk_late();
      continue;
    }
    std::optional<std::unique_ptr<EventBatch>> batch = queues.full.pop(stop);
    if (!batch) break;
    ingest.apply(**batch);
    stored.advance((*batch)->drained_at);
    static_cast<void>(queues.empty.try_push(std::move(*batch)));
  }
  ingest.finish();
}

/// Null if the kernel refuses the tables; logs why.
std::unique_ptr<BpfUnwindMaps> open_unwind_maps(const KernelProgram& program) {
  const std::optional<UnwindMapFds> fds = program.unwind_maps();
  if (!fds) {
    UnwindPublisher::log_no_tables(program.walks().why_no_tables());
    return nullptr;
  }
  Result<std::unique_ptr<BpfUnwindMaps>> maps = BpfUnwindMaps::open(*fds);
  if (!maps) {
    UnwindPublisher::log_no_tables(maps.error().message());
    return nullptr;
  }
  return std::move(maps).value();
}

/// As the service manager has set it; null: none.
const char* cache_directory() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread writes the environment.
  return std::getenv("CACHE_DIRECTORY");
}

/// Null if there is no place for it; logs why.
std::unique_ptr<RowCache> open_row_cache(const Clock& clock) {
  const char* folder = cache_directory();
  if (folder == nullptr) return nullptr;
  Result<std::unique_ptr<RowCache>> cache = RowCache::open(std::string(folder) + "/rows", clock, {});
  if (cache) return std::move(*cache);
  spdlog::warn("unwind rows are not kept for the next start: {}", cache.error().message());
  return nullptr;
}

archive::Archive::Options history_options(const Config& config) {
  archive::Archive::Options options;
  options.max_bytes = config.history_bytes;
  options.max_age_ns = config.history_age_ns;
  const Result<std::string> boot = read_file("/proc/sys/kernel/random/boot_id", 64);
  if (boot) options.boot_id = boot->substr(0, boot->find('\n'));
  options.program = std::string("flamed ") + kVersion;
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) == 0) options.host = host.data();
  return options;
}

/// Null if it is not configured or not installed; logs which.
std::unique_ptr<symbolizer::Debuginfod> start_debuginfod(const Config& config, const Clock& clock) {
  if (config.debuginfod_urls.empty()) return nullptr;
  const char* cache = cache_directory();
  Result<symbolizer::Debuginfod::Fetch> fetch = symbolizer::load_libdebuginfod(
      config.debuginfod_urls, std::string(cache == nullptr ? "/var/cache/flamed" : cache) + "/debuginfod");
  if (!fetch) {
    spdlog::warn("no debug files from servers: {}", fetch.error().message());
    return nullptr;
  }
  spdlog::info("missing debug files are fetched from {}", config.debuginfod_urls);
  return std::make_unique<symbolizer::Debuginfod>(std::move(fetch).value(), clock);
}

/// /proc/kallsyms as opened by the service manager, whose rights decide whether it shows addresses. Under
/// ProtectKernelTunables= flamed can't open it itself.
Fd kallsyms_on_stdin() {
  struct statfs system {};
  struct stat status {};
  const bool is_proc_file = ::fstatfs(STDIN_FILENO, &system) == 0 && system.f_type == PROC_SUPER_MAGIC &&
                            ::fstat(STDIN_FILENO, &status) == 0 && S_ISREG(status.st_mode);
  return Fd(is_proc_file ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1) : -1);
}

/// For a daemon that runs as root: the package's user, which owns nothing and has no rights, or else an unused uid.
symbolizer::WorkerProcess::Program worker_program() {
  symbolizer::WorkerProcess::Program program;
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 4096> text{};
  if (::getpwnam_r("flamed", &entry, text.data(), text.size(), &found) == 0 && found != nullptr && entry.pw_uid != 0) {
    program.user = entry.pw_uid;
    return program;
  }
  if (::getuid() != 0) return program;  // and can't change to another user
  if (const auto unused = symbolizer::find_unused_user_of_host(static_cast<std::uint32_t>(::getpid()))) {
    program.user = *unused;
  } else {
    spdlog::warn(
        "the ELF worker runs as nobody, whose other processes may stop it: every user from {} to {} is taken "
        "or missing here; add a user `flamed`",
        symbolizer::kFirstUnusedUser, symbolizer::kFirstUnusedUser + symbolizer::kUnusedUsers - 1);
  }
  return program;
}

/// Logs why, and what to do; returns the exit status.
ExitStatus refuse(const Error& error) {
  const Refusal refusal = explain_refusal(error, read_refusal_facts());
  spdlog::critical("{}{}{}", error.message(), refusal.remedy.empty() ? "" : "; ", refusal.remedy);
  return refusal.status;
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
  // The default address is used only without any other.
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

}  // namespace

/// What shows functions of managed runtimes.
struct Runtimes {
  Runtimes(runtimes::RuntimeKinds kinds, BpfUnwindMaps& maps, KnownPrograms& programs, ProcessMemories& memories,
           symbolizer::ModuleReader& reader, symbolizer::RuntimeFunctions& functions,
           symbolizer::ProcessTracker& processes, store::Store& store)
      : program(maps),
        modules(program, programs, kinds),
        namer(memories, reader),
        stacks({modules, namer, functions, processes, store}) {}

  struct Program final : RuntimeModules::Program {
    explicit Program(BpfUnwindMaps& to) : maps(to) {}
    Status put_layout(std::uint32_t number, const flamed_linked_layout& layout) override {
      return maps.put_layout(number, layout);
    }
    Status put_layout(std::uint32_t number, const flamed_slot_layout& layout) override {
      return maps.put_layout(number, layout);
    }
    BpfUnwindMaps& maps;
  };
  Program program;
  RuntimeModules modules;
  RuntimeNamer namer;
  RuntimeStacks stacks;
};

/// What shows methods of Java.
struct Java {
  Java(CodeHeaps& heaps, OpenJvms& jvms, symbolizer::ModuleReader& reader, symbolizer::RuntimeFunctions& functions,
       symbolizer::ProcessTracker& processes, store::Store& store)
      : namer(jvms, reader), stacks({heaps, namer, functions, processes, store}) {}

  HotSpotNamer namer;
  JavaStacks stacks;
};

/// Each member comes after those that it uses, so that it is created after them and destroyed before them.
class Daemon::Parts {
 public:
  Parts(const Config& config, const Clock& clock, std::unique_ptr<Sampler> started,
        std::future<archive::MinuteIndex> index)
      : config_(config),
        clock_(clock),
        sampler_(std::move(started)),
        store_({config.retention_ns, config.memory_budget_bytes}, clock, sampler_->figures().period_ns()),
        modules_(raise_open_file_limit(), clock),
        processes_(modules_, clock),
        unwind_maps_(scan_and_open_unwind_maps()),
        unwind_(unwind_maps_ == nullptr
                    ? nullptr
                    : std::make_unique<UnwindPublisher>(*unwind_maps_, config.unwind_budget_bytes, clock)),
        programs_(unwind_maps_ == nullptr ? nullptr : std::make_unique<KnownPrograms>(*unwind_maps_)),
        details_(config.command_lines, "/proc", unified_cgroups()),
        accounts_({.retention_ns = config.retention_ns}, clock),
        module_reader_({.program = worker_program()}),
        opener_(clock),
        containers_(opener_, module_reader_, clock, config.container_engines),
        memories_(opener_),
        jvms_(modules_, memories_, module_reader_),
        code_heaps_(
            unwind_ == nullptr || !config.runtimes.has(runtimes::RuntimeKind::kJava)
                ? nullptr
                : std::make_unique<CodeHeaps>(CodeHeaps::Parts{
                      modules_, jvms_, module_reader_, *unwind_, [this] { return budget_.may_work_in_background(); },
                      [this](const auto& slots) { return runtimes_->modules.enter_interpreter(slots); }})),
        java_(code_heaps_ == nullptr
                  ? nullptr
                  : std::make_unique<Java>(*code_heaps_, jvms_, module_reader_, functions_, processes_, store_)),
        runtimes_(unwind_ == nullptr || config.runtimes.is_empty()
                      ? nullptr
                      : std::make_unique<Runtimes>(config.runtimes, *unwind_maps_, *programs_, memories_,
                                                   module_reader_, functions_, processes_, store_)),
        late_walks_(unwind_ == nullptr || !config.stack_slices
                        ? nullptr
                        : std::make_unique<LateWalks>(LateWalks::Parts{
                              sampler_->slices(), processes_, modules_, *unwind_, store_,
                              runtimes_ == nullptr ? nullptr : &runtimes_->stacks, java_stacks(), code_heaps_.get(),
                              [this](std::int32_t tid) {
                                if (visitor_ != nullptr) visitor_->read_again(tid);
                              },
                              [this](const store::StackSample& sample, std::uint64_t number) {
                                off_cpu_intake_.add(sample, number);
                              }})),
        visitor_(config.waits
                     ? std::make_unique<WaitVisitor>(
                           clock, late_walks_ == nullptr ? nullptr : &sampler_->slices(), [this] { sampler_->wake(); },
                           WaitVisitor::Options{.is_unlimited = !config.cpu_budget})
                     : nullptr),
        off_cpu_(clock, late_walks_ == nullptr ? nullptr : &sampler_->slices(),
                 {[this] { sampler_->wake(); }, [this] { off_cpu_intake_.clear(); }}),
        off_cpu_intake_([this](std::uint64_t address) { return kernel_function(address); }),
        waits_(store_, functions_, [this](std::uint64_t address) { return kernel_function(address); }),
        census_(clock, config.retention_ns),
        ingest_(processes_, details_, modules_, store_, clock,
                {.unwind = unwind_.get(),
                 .accounts = &accounts_,
                 .late_walks = late_walks_.get(),
                 .runtimes = runtimes_ == nullptr ? nullptr : &runtimes_->stacks,
                 .waits = visitor_ == nullptr ? nullptr : &waits_,
                 .reasons = &waits_,
                 .off_cpu = &off_cpu_intake_,
                 .census = visitor_ == nullptr ? nullptr : &census_,
                 .java = java_stacks(),
                 .code = code_heaps_.get(),
                 .programs = programs_.get(),
                 .functions = &functions_,
                 .containers = &containers_,
                 .thread_started =
                     [this](std::int32_t tid) {
                       if (visitor_ != nullptr) visitor_->started(tid);
                     }}),
        budget_(config.frequency_hz, {config.cpu_budget, where_set(config, "cpu_budget")},
                [this] { return meter_->read(); }),
        stored_([this] { sampler_->wake(); }),
        reader_(*sampler_, queues_, clock, budget_, stored_,
                [this](EventBatch& batch) {
                  if (visitor_ != nullptr) visitor_->take(batch);
                  off_cpu_.take(batch);
                }),
        kernel_symbols_(clock, {.file = kallsyms_on_stdin(), .bpf_functions = read_bpf_functions}),
        debuginfod_(start_debuginfod(config, clock)),
        debug_files_(module_reader_, opener_, {}, debuginfod_.get()),
        symbolizer_(
            modules_, kernel_symbols_, module_reader_, debug_files_, clock,
            {.packages = &packages_, .asks_debug_servers = debuginfod_ != nullptr, .runtime_functions = &functions_}),
        cache_(symbolizer_, clock),
        namer_(cache_, config.memory_budget_bytes / kIndexShare),
        function_names_(cache_, symbolizer_, clock),
        quick_namer_(function_names_, /*kept_bytes=*/0),
        row_cache_(unwind_ == nullptr ? nullptr : open_row_cache(clock)),
        history_(open_history(std::move(index))),
        history_namer_(namer_, history_ == nullptr ? nullptr : &history_->past()),
        quick_history_namer_(quick_namer_, history_ == nullptr ? nullptr : &history_->past()),
        pressure_({.limits = config.pressure, .retention_ns = config.retention_ns}, clock) {}

  /// The exit status if it can't begin; it has logged why.
  std::optional<ExitStatus> begin() {
    store_.begin();
    // Changes have been recorded since before the scan, so the process of every sample is known.
    if (const Status begun = sampler_->begin(); !begun) return refuse(begun.error());
    ingest_.begin();
    accounts_.begin();
    vitals_.emplace(read_vital_signs(clock_, sampler_->figures(), reader_));
    sources_.emplace(DaemonSources::Parts{config_,
                                          clock_,
                                          sampler_->figures(),
                                          sampler_->program(),
                                          queues_,
                                          *vitals_,
                                          store_,
                                          modules_,
                                          symbolizer_,
                                          module_reader_,
                                          kernel_symbols_,
                                          cache_,
                                          history_namer_,
                                          quick_history_namer_,
                                          debuginfod_.get(),
                                          unwind_.get(),
                                          late_walks_.get(),
                                          visitor_.get(),
                                          off_cpu_,
                                          off_cpu_intake_,
                                          waits_,
                                          census_,
                                          row_cache_.get(),
                                          runtimes_ == nullptr ? nullptr : &runtimes_->modules,
                                          runtimes_ == nullptr ? nullptr : &runtimes_->stacks,
                                          code_heaps_.get(),
                                          java_stacks(),
                                          functions_,
                                          history_.get(),
                                          accounts_,
                                          opener_,
                                          budget_,
                                          pressure_,
                                          stored_,
                                          pushing_ns_});
    Result<std::unique_ptr<api::Server>> server = api::Server::listen(server_options(config_), *sources_);
    if (!server) {
      spdlog::critical("{}", server.error().message());
      return ExitStatus::kCannotListen;
    }
    server_ = std::move(*server);
    start_threads();
    tell_what_began();
    return std::nullopt;
  }

  void run(std::span<const char* const> arguments, const sigset_t& signals) {
    Supervisor supervisor({clock_, sampler_->figures(), reader_, module_reader_, store_, *namer_.kept_index(), *server_,
                           *vitals_, budget_, pressure_},
                          config_, arguments);
    supervisor.run(signals);
  }

  /// In the direction of the data flow, so that all taken samples are stored and counted.
  void stop() {
    if (history_ != nullptr) {
      end({&reader_thread_, &ingest_thread_});
      store_.finish(clock_.monotonic());
      history_thread_.request_stop();
      // While files can still be read: the last minute's frames get their names.
      history_->await_end(kLastNames);
    }
    module_reader_.stop();
    opener_.stop();
    end({&waits_thread_, &reader_thread_, &ingest_thread_, &modules_thread_, &walks_thread_, &names_thread_,
         &runtimes_thread_, &code_thread_, &java_thread_, &containers_thread_, &history_thread_});
    const store::Quality quality = store_.stats().quality;
    spdlog::info("ended: {} samples taken = {} whole + {} guessed + {} truncated + {} lost{}",
                 sampler_->figures().taken(), quality.whole, quality.guessed(), quality.truncated_total(),
                 quality.lost_total(), reasons_of_losses(quality));
  }

 private:
  static void end(std::initializer_list<std::jthread*> threads) {
    for (std::jthread* thread : threads) {
      if (!thread->joinable()) continue;
      thread->request_stop();
      thread->join();
    }
  }

  std::unique_ptr<BpfUnwindMaps> scan_and_open_unwind_maps() {
    processes_.scan();
    return open_unwind_maps(sampler_->program());
  }

  std::unique_ptr<History> open_history(std::future<archive::MinuteIndex> index) {
    std::string folder = history_folder(config_);
    if (folder.empty()) return nullptr;
    return std::make_unique<History>(
        History::Parts{store_, modules_, clock_, cache_, [this] { return budget_.may_work_in_background(); },
                       [this](MonotonicTime time) { stored_.await(time, kLongestDrain); },
                       [this] { return static_cast<std::uint32_t>(sampler_->figures().cpus()); },
                       [this](const store::WallWindow& window) { return accounts_.machine(window).ns; },
                       [this](std::uint64_t address) { return kernel_symbols_.is_in_image(address); }},
        std::move(folder), history_options(config_), std::move(index));
  }

  void start_threads() {
    loader_.emplace(ModuleLoader::Parts{modules_, opener_, module_reader_, sampler_->walks(), unwind_.get(),
                                        row_cache_.get(), runtimes_ == nullptr ? nullptr : &runtimes_->modules,
                                        budget_});
    modules_thread_ = start_thread("modules", [this](const std::stop_token& stop) { loader_->run(stop); });
    name_keeper_.emplace(NameKeeper::Parts{modules_, symbolizer_, store_, clock_,
                                           [this] { return budget_.may_work_in_background(); },
                                           [this] {
                                             if (symbolizer_.free_closed() >= kMuchMemory) give_back_freed_memory();
                                           }});
    names_thread_ = start_thread("names", [this](const std::stop_token& stop) { name_keeper_->run(stop); });
    walks_thread_ = start_thread("walks", [this](const std::stop_token& stop) {
      load_walks(sampler_->walks(), kernel_symbols_, unwind_ != nullptr, runtimes_ != nullptr);
      wait_for_stop(stop);  // its CPU time is read
    });
    if (runtimes_ != nullptr) {
      runtimes_thread_ = start_thread("runtimes", [this](const std::stop_token& stop) { runtimes_->namer.run(stop); });
    }
    if (code_heaps_ != nullptr) {
      code_thread_ = start_thread("code-heaps", [this](const std::stop_token& stop) { code_heaps_->run(stop); });
      java_thread_ = start_thread("java", [this](const std::stop_token& stop) { java_->namer.run(stop); });
    }
    containers_thread_ = start_thread("containers", [this](const std::stop_token& stop) { containers_.run(stop); });
    if (history_ != nullptr) {
      history_thread_ = start_thread("history", [this](const std::stop_token& stop) { history_->run(stop); });
    }
    std::vector<ThreadCpu> background;
    background.emplace_back(modules_thread_);
    background.emplace_back(walks_thread_);
    background.emplace_back(names_thread_);
    background.emplace_back(containers_thread_);
    if (history_ != nullptr) background.emplace_back(history_thread_);
    if (visitor_ != nullptr) {
      waits_thread_ = start_thread("waits", [this](const std::stop_token& stop) { visitor_->run(stop); });
      background.emplace_back(waits_thread_);
    }
    std::vector<ThreadCpu> names;
    if (runtimes_ != nullptr) names.emplace_back(runtimes_thread_);
    if (code_heaps_ != nullptr) {
      background.emplace_back(code_thread_);
      names.emplace_back(java_thread_);
    }
    meter_.emplace(clock_, sampler_->figures(), *server_, module_reader_, opener_, std::move(background),
                   std::move(names), pushing_ns_);
    ingest_thread_ =
        start_thread("ingest", [this](const std::stop_token& stop) { run_ingest(stop, ingest_, queues_, stored_); });
    reader_thread_ = start_thread("reader", [this](const std::stop_token& stop) { reader_.run(stop); });
  }

  void tell_what_began() const {
    spdlog::info("flamed {} samples {} CPUs at {} Hz and answers on {} (retention {}, store budget {})", kVersion,
                 sampler_->figures().cpus(), config_.frequency_hz, server_->addresses(),
                 format_duration(config_.retention_ns), format_size(config_.memory_budget_bytes));
    if (sampler_->program().reads_by_type()) spdlog::info("the kernel is locked down: its memory is read by type");
    if (!sampler_->figures().has_side_band()) spdlog::warn("no side band: mapping changes are read from /proc");
  }

  /// Empty: not known.
  std::string kernel_function(std::uint64_t address) {
    Result<symbolizer::KernelSymbols::Name> found = kernel_symbols_.find(address);
    return found ? std::move(found->name) : std::string();
  }

  JavaStacks* java_stacks() { return java_ == nullptr ? nullptr : &java_->stacks; }

  const Config& config_;
  const Clock& clock_;
  const std::unique_ptr<Sampler> sampler_;
  store::Store store_;
  symbolizer::ModuleTable modules_;
  symbolizer::ProcessTracker processes_;
  const std::unique_ptr<BpfUnwindMaps> unwind_maps_;  ///< null: stacks are walked by frame pointers
  const std::unique_ptr<UnwindPublisher> unwind_;     ///< likewise
  const std::unique_ptr<KnownPrograms> programs_;     ///< likewise
  symbolizer::ProcessDetails details_;
  CpuAccounts accounts_;
  symbolizer::WorkerModuleReader module_reader_;
  symbolizer::GuardedOpener opener_;
  ContainerNamer containers_;
  symbolizer::RuntimeFunctions functions_;
  ProcessMemories memories_;
  OpenJvms jvms_;
  const std::unique_ptr<CodeHeaps> code_heaps_;  ///< null: code that JVMs make is not read
  const std::unique_ptr<Java> java_;             ///< null: likewise
  const std::unique_ptr<Runtimes> runtimes_;     ///< null: functions of managed runtimes are not shown
  const std::unique_ptr<LateWalks> late_walks_;  ///< null: no samples bring a slice of their stack
  const std::unique_ptr<WaitVisitor> visitor_;   ///< null: waiting threads are not visited
  OffCpuCapture off_cpu_;
  OffCpuIntake off_cpu_intake_;
  WaitIntake waits_;
  ThreadCensus census_;
  Ingest ingest_;
  BatchQueues queues_;
  std::optional<CostMeter> meter_;  ///< once all threads are started
  BudgetKeeper budget_;
  StoredUntil stored_;
  Reader reader_;
  symbolizer::KernelSymbols kernel_symbols_;
  const std::unique_ptr<symbolizer::Debuginfod> debuginfod_;
  symbolizer::DebugFileFinder debug_files_;
  symbolizer::DebianPackages packages_;
  symbolizer::ModuleSymbolizer symbolizer_;
  symbolizer::CachingSymbolizer cache_;
  FrameNamer namer_;
  symbolizer::FunctionNames function_names_;
  FrameNamer quick_namer_;
  const std::unique_ptr<RowCache> row_cache_;  ///< null: rows are not kept
  const std::unique_ptr<History> history_;     ///< null: minutes are in memory alone
  HistoryNamer history_namer_, quick_history_namer_;
  PressureWatch pressure_;
  std::atomic<std::int64_t> pushing_ns_ = 0;  ///< CPU time of flamed-push
  // Set from begin() on.
  std::optional<Vitals> vitals_;
  std::optional<DaemonSources> sources_;
  std::unique_ptr<api::Server> server_;
  std::optional<ModuleLoader> loader_;
  std::jthread modules_thread_;
  std::optional<NameKeeper> name_keeper_;
  std::jthread walks_thread_, history_thread_, names_thread_, runtimes_thread_, code_thread_, java_thread_,
      containers_thread_, waits_thread_, ingest_thread_, reader_thread_;
};

Daemon::Daemon(const Config& config, std::span<const char* const> arguments) : config_(config), arguments_(arguments) {}

Daemon::~Daemon() = default;

std::optional<ExitStatus> Daemon::start() {
  // Beside the loading of the kernel programs: the first answer needs both.
  std::future<archive::MinuteIndex> index;
  if (std::string folder = history_folder(config_); !folder.empty()) index = archive::read_index(std::move(folder));
  Result<std::unique_ptr<Sampler>> started = Sampler::start(
      {config_.frequency_hz, config_.use_unwind_tables, config_.stack_slices, !config_.runtimes.is_empty()}, clock_);
  if (!started) return refuse(started.error());
  parts_ = std::make_unique<Parts>(config_, clock_, std::move(*started), std::move(index));
  if (const auto status = parts_->begin()) return status;
  ::sd_notify(0, "READY=1");
  return std::nullopt;
}

void Daemon::run(const sigset_t& signals) {
  parts_->run(arguments_, signals);
  ::sd_notify(0, "STOPPING=1");
  parts_->stop();
}

}  // namespace flamed::daemon
