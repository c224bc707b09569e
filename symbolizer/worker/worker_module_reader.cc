// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/worker/worker_module_reader.h"

#include <sys/eventfd.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <utility>

#include "symbolizer/model/clean_name.h"
#include "symbolizer/worker/value_codec.h"

namespace flamed::symbolizer {
namespace {

using Outcome = WorkerModuleReader::Outcome;

/// For a request that lost its worker, or was killed, without its file being the cause.
constexpr int kAttempts = 3;
/// New workers: so many at once, and then so many a second. Starting one takes about 10 ms of CPU time.
constexpr double kStartsAtOnce = 20;
constexpr double kStartsPerSecond = 12;
/// The pause after a worker that failed to start, or the second one that did not work; doubled after each further one,
/// up to a limit.
constexpr std::int64_t kFirstPauseNs = kNsPerSecond;
constexpr std::int64_t kMostPauseNs = 60 * kNsPerSecond;
constexpr std::size_t kMaxErrorBytes = 1024;
/// Children that wait for another request.
constexpr std::size_t kMostSessions = 6;

/// A name that every working process can demangle.
constexpr const char* kTestName = "_ZN6flamed4testEv";
/// One may fail by a signal or for lack of memory.
constexpr int kTestAttempts = 2;

std::int64_t now_ns() { return SystemClock().monotonic().ns; }

std::string seconds_of(std::int64_t ns) {
  return ns % kNsPerSecond == 0 ? std::to_string(ns / kNsPerSecond) + " s" : std::to_string(ns / kNsPerMs) + " ms";
}

/// Of this thread's next request.
ReadingPurpose purpose_of(RequestKind kind) {
  const bool is_rows = kind == RequestKind::kUnwindRows || kind == RequestKind::kFunctionRows;
  return is_rows ? ReadingPurpose::kBackground : ReadingFor::purpose();
}

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

std::int64_t pause_ns(std::int64_t failures_before) {
  return std::min(kMostPauseNs, kFirstPauseNs << std::min<std::int64_t>(failures_before, 16));
}

Error no_answer(const std::string& why, int code = 0) { return Error("the ELF worker " + why, code); }

}  // namespace

/// Holds a place among the requests in flight. Those for answers and all others have separate places, so neither waits
/// for the other.
class WorkerModuleReader::Turn {
 public:
  Turn(WorkerModuleReader& reader, RequestKind kind, std::int64_t patience_ns)
      : reader_(reader),
        used_(is_for_answer(kind) ? reader.queries_ : reader.background_),
        most_(is_for_answer(kind) ? reader.options_.max_queries : reader.options_.max_background) {
    std::unique_lock lock(reader_.mutex_);
    const bool waited = reader_.turn_.wait_for(lock, std::chrono::nanoseconds(patience_ns),
                                               [&] { return reader_.is_stopped_ || used_ < most_; });
    has_ = waited && !reader_.is_stopped_;
    if (has_) ++used_;
  }
  ~Turn() {
    if (!has_) return;
    {
      std::lock_guard lock(reader_.mutex_);
      --used_;
    }
    reader_.turn_.notify_all();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  explicit operator bool() const { return has_; }

 private:
  static bool is_for_answer(RequestKind kind) { return purpose_of(kind) == ReadingPurpose::kAnswer; }

  WorkerModuleReader& reader_;
  std::size_t& used_;
  const std::size_t most_;
  bool has_ = false;
};

std::array<RequestLimits, kRequestKinds> WorkerModuleReader::all_default_limits() {
  std::array<RequestLimits, kRequestKinds> limits;
  for (std::size_t i = 0; i < limits.size(); ++i) limits[i] = default_limits(static_cast<RequestKind>(i));
  return limits;
}

WorkerModuleReader::WorkerModuleReader() : WorkerModuleReader(Options()) {}

WorkerModuleReader::WorkerModuleReader(Options options)
    : options_(std::move(options)),
      stop_(::eventfd(0, EFD_CLOEXEC)),
      starts_allowed_(kStartsAtOnce),
      starts_counted_ns_(now_ns()) {
  look_after();
}

WorkerModuleReader::~WorkerModuleReader() = default;

void WorkerModuleReader::stop() {
  {
    std::lock_guard lock(mutex_);
    is_stopped_ = true;
    sessions_.clear();
  }
  turn_.notify_all();
  ::eventfd_write(stop_.get(), 1);
}

// ---- The worker ----

void WorkerModuleReader::look_after() {
  end_old_sessions();
  const Result<WorkerPtr> process = worker();
  if (!process || !is_doubted_) return;
  if (passes_test(*process)) {
    note_success();
  } else {
    replace(**process, no_answer("does not demangle a name"));
  }
}

bool WorkerModuleReader::passes_test(const WorkerPtr& worker) {
  Question question{RequestKind::kDemangle};
  question.payload.number(std::uint64_t{1});
  question.payload.text(kTestName);
  for (int tries = 1; worker->is_alive(); ++tries) {
    std::vector<DemangledName> names;
    const Attempt result =
        attempt_by(worker, question, [&](WireReader& from) { return ValueCodec::decode(from, names, std::size_t{1}); });
    // Can't be tested now: all its places are taken, or flamed is exiting.
    if (result.outcome == Outcome::kOk || (result.outcome == Outcome::kUnavailable && !result.is_odd)) return true;
    if (tries == kTestAttempts) return false;
  }
  return true;  // it has ended, and is replaced anyway
}

void WorkerModuleReader::replace(WorkerProcess& worker, const Error& failure) {
  if (!worker.give_up()) return;
  const std::lock_guard lock(worker_mutex_);
  if (broken_in_a_row_ > 0) not_before_ns_ = now_ns() + pause_ns(broken_in_a_row_ - 1);
  ++broken_in_a_row_;
  how_broken_ = failure.message();
  is_doubted_ = true;
}

void WorkerModuleReader::note_success() {
  if (!is_doubted_) return;
  const std::lock_guard lock(worker_mutex_);
  broken_in_a_row_ = 0;
  is_doubted_ = false;
}

Result<WorkerModuleReader::WorkerPtr> WorkerModuleReader::worker() {
  WorkerPtr old;  // destroyed without the lock
  std::lock_guard lock(worker_mutex_);
  if (worker_ != nullptr && worker_->is_alive()) return worker_;
  if (worker_ != nullptr) {
    std::lock_guard stats_lock(mutex_);
    const Usage usage = worker_->usage();
    retired_.add(usage);
    stats_.peak_bytes = std::max(stats_.peak_bytes, usage.peak_bytes);
    old = std::move(worker_);
    worker_ = nullptr;
    why_no_worker_ = is_doubted_ ? how_broken_ : "the ELF worker has ended";
  }
  return start_locked(now_ns());
}

Result<WorkerModuleReader::WorkerPtr> WorkerModuleReader::start_locked(std::int64_t now) {
  starts_allowed_ = std::min(kStartsAtOnce, starts_allowed_ + static_cast<double>(now - starts_counted_ns_) *
                                                                  (kStartsPerSecond / kNsPerSecond));
  starts_counted_ns_ = now;
  if (now < not_before_ns_) return Error(why_no_worker_, EAGAIN);
  if (starts_allowed_ < 1) return Error("the ELF worker exits again and again", EAGAIN);
  starts_allowed_ -= 1;

  Result<std::unique_ptr<WorkerProcess>> started = WorkerProcess::start(options_.program);
  {
    std::lock_guard lock(mutex_);
    ++(started ? stats_.starts : stats_.failed_starts);
  }
  if (!started) {
    why_no_worker_ = started.error().message();
    not_before_ns_ = now_ns() + pause_ns(failed_in_a_row_);
    ++failed_in_a_row_;
    return Error(why_no_worker_, EAGAIN);
  }
  failed_in_a_row_ = 0;
  worker_ = std::move(started).value();
  return worker_;
}

// ---- A request ----

WorkerModuleReader::Attempt WorkerModuleReader::explain(WorkerExchange& exchange, WorkerProcess& worker,
                                                        RequestKind kind) const {
  using Kind = WorkerExchange::Ending::Kind;
  const RequestLimits& limits = options_.limits[static_cast<std::size_t>(kind)];
  const char* what = kind == RequestKind::kDemangle ? " names"
                     : kind == RequestKind::kEngine ? " the engine's answer"
                                                    : " this file";
  const auto too_long = [&] {
    return Attempt{Outcome::kTimeout, no_answer("took longer than " + seconds_of(limits.wall_ns) + " to read" + what)};
  };
  const WorkerExchange::Ending ending = exchange.ending();
  switch (ending.kind) {
    case Kind::kCancelled:
      return {Outcome::kUnavailable, no_answer("is being ended", EAGAIN)};
    case Kind::kTimedOut:
      return too_long();
    case Kind::kNotStarted:
      worker.give_up();
      return {Outcome::kUnavailable, no_answer("does not respond", EAGAIN)};
    case Kind::kRefused:
      return {Outcome::kUnavailable,
              Error::from_errno("the ELF worker cannot start another process", ending.detail).with_code(EAGAIN), false,
              ending.detail != EBUSY};
    case Kind::kLost:
      return {Outcome::kKilled, no_answer("was killed", EAGAIN), true, true};
    case Kind::kEnded:
      break;
  }
  if (!WIFSIGNALED(ending.detail)) {
    const int code = WEXITSTATUS(ending.detail);
    if (code == 0) return {Outcome::kDamaged, no_answer("gave a damaged answer (it ends too early)"), false, true};
    return {Outcome::kCrashed, no_answer("ended with exit code " + std::to_string(code) + " while reading" + what),
            false, true};
  }
  const int signal = WTERMSIG(ending.detail);
  switch (signal) {
    case SIGALRM:
      return too_long();
    case SIGXCPU:
      return {Outcome::kTimeout,
              no_answer("used more than " + std::to_string(limits.cpu_seconds) + " s of CPU time to read" + what)};
    case SIGKILL:
      return {Outcome::kKilled, no_answer(std::string("was killed while reading") + what, EAGAIN), true, true};
    case SIGSYS:
      return {Outcome::kCrashed,
              no_answer(std::string("was killed by SIGSYS for a forbidden system call "
                                    "while reading") +
                        what),
              false, true};
    default:
      return {Outcome::kCrashed, no_answer("was killed by " + signal_name(signal) + " while reading" + what), false,
              true};
  }
}

std::optional<WorkerModuleReader::Session> WorkerModuleReader::take_session(const Question& question) {
  if (!question.user) return {};
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(sessions_.begin(), sessions_.end(), [&](const Session& session) {
    return session.user == *question.user && session.kind == question.kind &&
           session.purpose == purpose_of(question.kind);
  });
  if (found == sessions_.end()) return {};
  std::optional<Session> session(std::move(*found));
  sessions_.erase(found);
  if (session->until_ns <= now_ns()) return {};
  return session;
}

void WorkerModuleReader::keep_session(Session session) {
  const std::lock_guard lock(mutex_);
  if (is_stopped_) return;
  if (sessions_.size() >= kMostSessions) sessions_.erase(sessions_.begin());
  sessions_.push_back(std::move(session));
}

void WorkerModuleReader::end_old_sessions() {
  const std::lock_guard lock(mutex_);
  std::erase_if(sessions_, [now = now_ns()](const Session& session) { return session.until_ns <= now; });
}

template <typename Decode>
WorkerModuleReader::Attempt WorkerModuleReader::attempt(const Question& question, Decode decode) {
  if (std::optional<Session> session = take_session(question)) {
    if (const WorkerPtr process = session->worker.lock()) {
      Attempt result = attempt_in(process, std::move(*session), question, decode);
      // That the child has ended says nothing about this request: one before it may be the cause. A new one is asked.
      if (result.outcome == Outcome::kCrashed || result.outcome == Outcome::kKilled ||
          result.outcome == Outcome::kDamaged) {
        result.again = true;
        result.is_odd = false;
      }
      return result;
    }
  }
  const Result<WorkerPtr> process = worker();
  if (!process) return {Outcome::kUnavailable, process.error()};
  return attempt_by(*process, question, decode);
}

template <typename Decode>
WorkerModuleReader::Attempt WorkerModuleReader::attempt_by(const WorkerPtr& worker, const Question& question,
                                                           Decode decode) {
  const ReadingPurpose purpose = purpose_of(question.kind);
  const std::int64_t until_ns = now_ns() + kSessionNs;
  Result<WorkerProcess::Ends> ends =
      worker->order(purpose, question.user.has_value(), options_.limits[static_cast<std::size_t>(question.kind)]);
  if (!ends) {
    const bool is_gone = ends.error().code() == EPIPE || ends.error().code() == ECONNRESET;
    if (is_gone) worker->give_up();
    return {Outcome::kUnavailable, Error(ends.error()).with_context("cannot ask the ELF worker").with_code(EAGAIN),
            false, is_gone, worker};
  }
  return attempt_in(worker,
                    {worker, std::move(ends).value(), question.kind, question.user.value_or(0), purpose, until_ns},
                    question, decode);
}

template <typename Decode>
WorkerModuleReader::Attempt WorkerModuleReader::attempt_in(const WorkerPtr& worker, Session session,
                                                           const Question& question, Decode decode) {
  const std::int64_t wall_ns = options_.limits[static_cast<std::size_t>(question.kind)].wall_ns;
  WorkerExchange exchange(std::move(session.ends), Deadline::after(wall_ns), stop_.get());
  Attempt result = exchange_with(*worker, exchange, question, decode);
  result.worker = worker;
  const bool is_answered = result.outcome == Outcome::kOk || result.outcome == Outcome::kError;
  if (question.user && is_answered && exchange.has_read_all()) {
    session.ends = exchange.take_ends();
    keep_session(std::move(session));
  }
  return result;
}

template <typename Decode>
WorkerModuleReader::Attempt WorkerModuleReader::exchange_with(WorkerProcess& worker, WorkerExchange& exchange,
                                                              const Question& question, Decode decode) {
  const RequestLimits& limits = options_.limits[static_cast<std::size_t>(question.kind)];
  RequestHead head;
  head.kind = question.kind;
  head.jit_format = question.jit_format;
  head.size = question.payload.size();
  std::vector<int> fds;
  for (std::size_t i = 0; i < question.fds.size(); ++i) {
    if (question.fds[i] < 0) continue;
    fds.push_back(question.fds[i]);
    head.fd_mask = static_cast<std::uint8_t>(head.fd_mask | (1U << i));
  }
  AnswerHead answer;
  if (!exchange.send(head, fds, question.payload).ok() ||
      !exchange.read(std::as_writable_bytes(std::span(&answer, 1))).ok()) {
    return explain(exchange, worker, question.kind);
  }
  const auto damaged = [](const char* what) {
    return Attempt{Outcome::kDamaged, no_answer(std::string("gave a damaged answer (") + what + ")"), false, true};
  };
  if (answer.magic != AnswerHead::kMagic) return damaged("it has no header");
  if (answer.size > limits.answer_bytes) return damaged("it is too large");
  WireReader reader(exchange, answer.size);
  Attempt result{Outcome::kOk, std::nullopt};
  if (answer.kind == AnswerHead::Kind::kValue) {
    static_cast<void>(decode(reader) && reader.finished());
  } else {
    std::int32_t code = 0;
    std::string message;
    static_cast<void>(reader.number(code) && reader.text(message, 2 * kMaxErrorBytes) && reader.finished());
    // EAGAIN has a special meaning in this class.
    result = {Outcome::kError, Error(clean_name(message, kMaxErrorBytes), code == EAGAIN ? 0 : code)};
  }
  if (reader.source_error()) return explain(exchange, worker, question.kind);
  if (reader.damage() != nullptr) return damaged(reader.damage());
  return result;
}

template <typename T, typename Decode>
Result<T> WorkerModuleReader::ask(const Question& question, Decode decode) {
  const RequestLimits& limits = options_.limits[static_cast<std::size_t>(question.kind)];
  const Turn turn(*this, question.kind, limits.wall_ns);
  if (!turn) {
    count(question.kind, Outcome::kUnavailable, 0);
    return no_answer("is busy with other files, or being ended", EAGAIN);
  }
  const std::int64_t start = now_ns();
  for (int tries = 1;; ++tries) {
    T value;
    Attempt result = attempt(question, [&](WireReader& reader) { return decode(reader, value); });
    if (result.is_odd && !passes_test(result.worker)) {
      replace(*result.worker, *result.error);
      result.error = Error(*result.error).with_code(EAGAIN);
      result.again = true;
    }
    if (result.again && tries < kAttempts) continue;
    if (result.outcome == Outcome::kOk || result.outcome == Outcome::kError) note_success();
    count(question.kind, result.outcome, now_ns() - start);
    if (result.error) return std::move(*result.error);
    return value;
  }
}

Result<ElfFacts> WorkerModuleReader::inspect(int fd) {
  return ask<ElfFacts>({RequestKind::kInspect, {fd, -1, -1}},
                       [](WireReader& from, ElfFacts& facts) { return ValueCodec::decode(from, facts); });
}

Result<ElfSymbols> WorkerModuleReader::read_symbols(const ModuleFiles& files) {
  return ask<ElfSymbols>({RequestKind::kSymbols, {files.module, files.debug, files.alternate}},
                         [](WireReader& from, ElfSymbols& symbols) { return ValueCodec::decode(from, symbols); });
}

Result<std::vector<SourceChain>> WorkerModuleReader::locate(const ModuleFiles& files,
                                                            std::span<const std::uint64_t> offsets) {
  if (offsets.empty()) return std::vector<SourceChain>();
  Question question{RequestKind::kLocate, {files.module, files.debug, files.alternate}};
  question.payload.array(offsets);
  return ask<std::vector<SourceChain>>(question, [&](WireReader& from, std::vector<SourceChain>& chains) {
    return ValueCodec::decode(from, chains, offsets.size());
  });
}

Result<SourcedRows> WorkerModuleReader::read_unwind_rows(int fd, int kept) {
  return ask<SourcedRows>({RequestKind::kUnwindRows, {fd, kept, -1}},
                          [](WireReader& from, SourcedRows& rows) { return ValueCodec::decode(from, rows); });
}

Result<std::vector<unwinder::UnwindRows>> WorkerModuleReader::read_function_rows(
    int fd, std::span<const std::uint64_t> offsets) {
  if (offsets.empty()) return std::vector<unwinder::UnwindRows>();
  Question question{RequestKind::kFunctionRows, {fd, -1, -1}};
  question.payload.array(offsets);
  return ask<std::vector<unwinder::UnwindRows>>(question,
                                                [&](WireReader& from, std::vector<unwinder::UnwindRows>& rows) {
                                                  return ValueCodec::decode(from, rows, offsets.size());
                                                });
}

Result<SymbolTable> WorkerModuleReader::read_jit_symbols(int fd, JitFormat format) {
  return ask<SymbolTable>({RequestKind::kJitSymbols, {fd, -1, -1}, static_cast<std::uint8_t>(format)},
                          [](WireReader& from, SymbolTable& table) { return ValueCodec::decode(from, table); });
}

Result<Disassembly> WorkerModuleReader::disassemble(int fd, const DisassemblyQuestion& question) {
  Question sent{RequestKind::kDisassembly, {fd, -1, -1}};
  sent.payload.array(std::span(question.functions));
  sent.payload.array(std::span(question.places));
  return ask<Disassembly>(sent, [&](WireReader& from, Disassembly& disassembly) {
    return ValueCodec::decode(from, disassembly, question);
  });
}

Result<std::vector<DemangledName>> WorkerModuleReader::demangle(std::span<const std::string> mangled) {
  if (mangled.empty()) return std::vector<DemangledName>();
  Question question{RequestKind::kDemangle};
  question.payload.number(std::uint64_t{mangled.size()});
  for (const std::string& name : mangled) question.payload.text(name);
  return ask<std::vector<DemangledName>>(question, [&](WireReader& from, std::vector<DemangledName>& names) {
    return ValueCodec::decode(from, names, mangled.size());
  });
}

Result<ContainerNames> WorkerModuleReader::read_container(int fd, ContainerFormat format, const std::string& id) {
  Question question{RequestKind::kContainer, {fd, -1, -1}};
  question.payload.number(format);
  question.payload.text(id);
  return ask<ContainerNames>(question,
                             [](WireReader& from, ContainerNames& names) { return ValueCodec::decode(from, names); });
}

Result<ContainerNames> WorkerModuleReader::read_engine_answer(int connection, EngineProtocol protocol,
                                                              const std::string& id) {
  // Whoever may write to an engine is root on this host. Only the filter keeps a child from writing to its connection.
  const Result<WorkerPtr> process = worker();
  if (process && (*process)->hello().system_calls_error != 0) {
    return no_answer("could write to the engine: its system calls are not filtered", EPERM);
  }
  Question question{RequestKind::kEngine, {connection, -1, -1}};
  question.payload.number(protocol);
  question.payload.text(id);
  return ask<ContainerNames>(question,
                             [](WireReader& from, ContainerNames& names) { return ValueCodec::decode(from, names); });
}

Result<std::optional<RuntimeModule>> WorkerModuleReader::find_runtime(int fd) {
  return ask<std::optional<RuntimeModule>>(
      {RequestKind::kRuntime, {fd, -1, -1}},
      [](WireReader& from, std::optional<RuntimeModule>& module) { return ValueCodec::decode(from, module); });
}

Result<std::vector<RuntimeAnswer>> WorkerModuleReader::read_runtime_functions(ProcessMemory memory,
                                                                              const RuntimeProcess& process,
                                                                              std::span<const RuntimeCode> codes,
                                                                              std::span<const CopiedCode> copies) {
  if (codes.empty()) return std::vector<RuntimeAnswer>();
  Question question{RequestKind::kRuntimeFunctions, {memory.fd, -1, -1}};
  question.user = memory.user;
  question.payload.array(std::span(&process, 1));
  question.payload.array(codes);
  question.payload.array(copies);
  return ask<std::vector<RuntimeAnswer>>(question, [&](WireReader& from, std::vector<RuntimeAnswer>& answers) {
    return ValueCodec::decode(from, answers, codes.size());
  });
}

Result<std::optional<HotSpotModule>> WorkerModuleReader::find_hotspot(int fd, ProcessMemory memory,
                                                                      const HotSpotMapping& mapping) {
  Question question{RequestKind::kHotSpot, {fd, memory.fd, -1}};
  question.user = memory.user;
  question.payload.number(mapping.start);
  question.payload.number(mapping.file_offset);
  return ask<std::optional<HotSpotModule>>(question, [](WireReader& from, std::optional<HotSpotModule>& module) {
    return ValueCodec::decode(from, module);
  });
}

Result<runtimes::HotSpotCode> WorkerModuleReader::read_hotspot_code(ProcessMemory memory,
                                                                    const runtimes::HotSpotLayout& layout,
                                                                    std::uint64_t base,
                                                                    std::span<const runtimes::HotSpotKnownBlob> known) {
  Question question{RequestKind::kHotSpotCode, {memory.fd, -1, -1}};
  question.user = memory.user;
  question.payload.array(std::span(&layout, 1));
  question.payload.number(base);
  question.payload.array(known);
  return ask<runtimes::HotSpotCode>(
      question, [](WireReader& from, runtimes::HotSpotCode& code) { return ValueCodec::decode(from, code); });
}

Result<HotSpotNames> WorkerModuleReader::read_hotspot_names(ProcessMemory memory, const runtimes::HotSpotLayout& layout,
                                                            std::uint64_t base, const HotSpotQuestion& question) {
  Question request{RequestKind::kHotSpotNames, {memory.fd, -1, -1}};
  request.user = memory.user;
  request.payload.array(std::span(&layout, 1));
  request.payload.number(base);
  request.payload.array(std::span(question.places));
  request.payload.array(std::span(question.known));
  request.payload.array(std::span(question.interpreted));
  return ask<HotSpotNames>(
      request, [&](WireReader& from, HotSpotNames& names) { return ValueCodec::decode(from, names, question); });
}

// ---- Statistics ----

const char* WorkerModuleReader::name_of(Outcome outcome) {
  constexpr std::array<const char*, kOutcomes> kNames = {"ok",     "error",   "crashed",    "timeout",
                                                         "killed", "damaged", "unavailable"};
  return kNames[static_cast<std::size_t>(outcome)];
}

void WorkerModuleReader::count(RequestKind kind, Outcome outcome, std::int64_t took_ns) {
  std::lock_guard lock(mutex_);
  ++stats_.requests[static_cast<std::size_t>(kind)][static_cast<std::size_t>(outcome)];
  stats_.request_ns[static_cast<std::size_t>(kind)] += took_ns;
}

WorkerModuleReader::Stats WorkerModuleReader::stats() const {
  std::lock_guard worker_lock(worker_mutex_);
  std::lock_guard lock(mutex_);
  Stats stats = stats_;
  stats.in_flight = queries_ + background_;
  stats.cpu_ns = retired_.all_ns;
  if (worker_ != nullptr) {
    const Usage usage = worker_->usage();
    stats.cpu_ns += usage.cpu_ns;
    stats.peak_bytes = std::max(stats.peak_bytes, usage.peak_bytes);
  }
  return stats;
}

void WorkerModuleReader::CpuUse::add(const Usage& usage) {
  all_ns += usage.cpu_ns;
  background_ns += usage.children_cpu_ns[static_cast<std::size_t>(ReadingPurpose::kBackground)];
  samples_ns += usage.children_cpu_ns[static_cast<std::size_t>(ReadingPurpose::kSamples)];
}

WorkerModuleReader::CpuUse WorkerModuleReader::cpu_use() const {
  const std::unique_lock worker_lock(worker_mutex_, std::try_to_lock);
  const std::lock_guard lock(mutex_);
  if (worker_lock) {
    last_use_ = retired_;
    if (worker_ != nullptr) last_use_.add(worker_->usage());
  }
  return last_use_;
}

WorkerModuleReader::State WorkerModuleReader::state() const {
  std::lock_guard lock(worker_mutex_);
  if (worker_ == nullptr || is_doubted_) {
    return {false, "files are not read for now: " + (worker_ == nullptr ? why_no_worker_ : how_broken_)};
  }
  const Hello& hello = worker_->hello();
  std::string detail = "a process without rights reads the files (pid " + std::to_string(hello.pid);
  std::string missing;
  const auto step = [&](const std::string& in_force, const char* not_in_force, std::int32_t error) {
    if (error == 0) {
      detail += ", " + in_force;
    } else {
      missing += (missing.empty() ? "; but " : ", ") + std::string(not_in_force) + " (" + std::strerror(error) + ")";
    }
  };
  step("user " + std::to_string(hello.uid), "as root", hello.own_user_error);
  step("no capabilities", "with capabilities", hello.no_capabilities_error);
  step("no files or network of its own", "without Landlock", hello.outside_world_error);
  step("system calls filtered", "with all system calls", hello.system_calls_error);
  return {true, detail + ")" + missing};
}

}  // namespace flamed::symbolizer
