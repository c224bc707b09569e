// SPDX-License-Identifier: Apache-2.0
//
// WorkerModuleReader: a ModuleReader that works in a process without rights. Any thread; calls overlap, up to one bound
// for queries and another one for background work.
//
// A file that crashes, stalls or exploits its reader costs one request, which returns an Error with the cause. Only the
// memory of one user's processes is read by the same child for a while (Session): short programs of a runtime come in
// great numbers, and a child costs more than what it reads. If the worker itself is killed, the request is sent to a
// new one. After a failed request the worker gets a test request without any file; if that fails, too, it is replaced.
// An Error with code EAGAIN says nothing about the file: a retry may succeed.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/handle.h"
#include "symbolizer/model/module_reader.h"
#include "symbolizer/model/reading_purpose.h"
#include "symbolizer/worker/request.h"
#include "symbolizer/worker/worker_exchange.h"
#include "symbolizer/worker/worker_process.h"

namespace flamed::symbolizer {

class WorkerModuleReader final : public ModuleReader {
 public:
  struct Options {
    WorkerProcess::Program program{};
    std::size_t max_queries = 4;
    std::size_t max_background = 2;
    /// By RequestKind.
    std::array<RequestLimits, kRequestKinds> limits = all_default_limits();
  };

  /// Starts the worker. If that fails, the daemon goes on without names for now, see state(), and tries again.
  WorkerModuleReader();
  explicit WorkerModuleReader(Options options);
  ~WorkerModuleReader() override;

  Result<ElfFacts> inspect(int fd) override;
  Result<ElfSymbols> read_symbols(const ModuleFiles& files) override;
  Result<std::vector<SourceChain>> locate(const ModuleFiles& files, std::span<const std::uint64_t> offsets) override;
  Result<SourcedRows> read_unwind_rows(int fd, int kept) override;
  Result<std::vector<unwinder::UnwindRows>> read_function_rows(int fd, std::span<const std::uint64_t> offsets) override;
  Result<SymbolTable> read_jit_symbols(int fd, JitFormat format) override;
  Result<Disassembly> disassemble(int fd, const DisassemblyQuestion& question) override;
  Result<std::vector<DemangledName>> demangle(std::span<const std::string> mangled) override;
  Result<std::optional<RuntimeModule>> find_runtime(int fd) override;
  Result<std::vector<RuntimeAnswer>> read_runtime_functions(ProcessMemory memory, const RuntimeProcess& process,
                                                            std::span<const RuntimeCode> codes,
                                                            std::span<const CopiedCode> copies) override;
  Result<std::optional<HotSpotModule>> find_hotspot(int fd, ProcessMemory memory,
                                                    const HotSpotMapping& mapping) override;
  Result<runtimes::HotSpotCode> read_hotspot_code(ProcessMemory memory, const runtimes::HotSpotLayout& layout,
                                                  std::uint64_t base,
                                                  std::span<const runtimes::HotSpotKnownBlob> known) override;
  Result<HotSpotNames> read_hotspot_names(ProcessMemory memory, const runtimes::HotSpotLayout& layout,
                                          std::uint64_t base, const HotSpotQuestion& question) override;
  Result<ContainerNames> read_container(int fd, ContainerFormat format, const std::string& id) override;
  Result<ContainerNames> read_engine_answer(int connection, EngineProtocol protocol, const std::string& id) override;

  /// Reaps a dead worker and starts another one; tests one whose predecessor did not work. Call it periodically.
  void look_after();

  /// From now on nothing is read: current requests end at once with an Error, and so does every later one.
  void stop();

  enum class Outcome : std::uint8_t {
    kOk,
    kError,        ///< the file can't be read; the Error says why
    kCrashed,      ///< reading it crashed the child
    kTimeout,      ///< it took too long, or too much CPU time
    kKilled,       ///< by another process, or for lack of memory
    kDamaged,      ///< the answer was malformed
    kUnavailable,  ///< no worker, or it is busy
  };
  static constexpr std::size_t kOutcomes = 7;
  /// For the label of a metric.
  static const char* name_of(Outcome outcome);

  struct Stats {
    std::array<std::array<std::uint64_t, kOutcomes>, kRequestKinds> requests{};
    std::array<std::int64_t, kRequestKinds> request_ns{};
    std::size_t in_flight = 0;
    std::uint64_t starts = 0;
    std::uint64_t failed_starts = 0;
    std::int64_t cpu_ns = 0;
    std::uint64_t peak_bytes = 0;  ///< resident memory of the largest request so far
  };
  [[nodiscard]] Stats stats() const;

  struct CpuUse {
    std::int64_t all_ns = 0;         ///< of the worker and its ended children
    std::int64_t background_ns = 0;  ///< of these: for background work
    std::int64_t samples_ns = 0;     ///< likewise: for what samples wait for

    void add(const Usage& usage);
  };
  /// Since the start. Does not wait: while a worker is being started it returns the last value.
  [[nodiscard]] CpuUse cpu_use() const;

  struct State {
    bool ok = false;
    std::string detail;  ///< the parts of the sandbox in force, and the missing ones and why
  };
  [[nodiscard]] State state() const;

 private:
  using WorkerPtr = std::shared_ptr<WorkerProcess>;

  struct Question {
    RequestKind kind;
    std::array<int, RequestHead::kMaxFds> fds = {-1, -1, -1};
    std::uint8_t jit_format = 0;
    WireWriter payload{};
    std::optional<std::uint32_t> user{};  ///< whose memory it is; none: a file, which has a child of its own
  };
  /// A child between two requests, which may serve the next one about the same user's processes.
  struct Session {
    std::weak_ptr<WorkerProcess> worker;
    WorkerProcess::Ends ends;
    RequestKind kind;
    std::uint32_t user;
    ReadingPurpose purpose;
    std::int64_t until_ns;
  };
  /// The result of one attempt.
  struct Attempt {
    Outcome outcome;
    std::optional<Error> error;  ///< none: success
    bool again = false;          ///< the file is not the cause
    bool is_odd = false;         ///< the worker may be the cause
    WorkerPtr worker{};          ///< the worker that was used
  };

  class Turn;

  static std::array<RequestLimits, kRequestKinds> all_default_limits();

  template <typename T, typename Decode>
  Result<T> ask(const Question& question, Decode decode);
  template <typename Decode>
  Attempt attempt(const Question& question, Decode decode);
  template <typename Decode>
  Attempt attempt_by(const WorkerPtr& worker, const Question& question, Decode decode);
  template <typename Decode>
  Attempt attempt_in(const WorkerPtr& worker, Session session, const Question& question, Decode decode);
  template <typename Decode>
  Attempt exchange_with(WorkerProcess& worker, WorkerExchange& exchange, const Question& question, Decode decode);
  std::optional<Session> take_session(const Question& question);
  void keep_session(Session session);
  void end_old_sessions();
  Attempt explain(WorkerExchange& exchange, WorkerProcess& worker, RequestKind kind) const;

  /// Does the worker answer a request without any file?
  bool passes_test(const WorkerPtr& worker);
  void replace(WorkerProcess& worker, const Error& failure);
  void note_success();

  Result<WorkerPtr> worker();
  Result<WorkerPtr> start_locked(std::int64_t now_ns);
  void count(RequestKind kind, Outcome outcome, std::int64_t took_ns);

  const Options options_;
  const Fd stop_;  ///< an eventfd, readable once stop() was called

  mutable std::mutex worker_mutex_;  ///< guards the members below; held while a worker is started
  WorkerPtr worker_;
  std::string why_no_worker_;
  double starts_allowed_;
  std::int64_t starts_counted_ns_ = 0;
  std::int64_t failed_in_a_row_ = 0;
  std::int64_t not_before_ns_ = 0;
  std::int64_t broken_in_a_row_ = 0;  ///< workers that started but did not work
  std::string how_broken_;            ///< the error of the last of them

  std::atomic<bool> is_doubted_ = false;  ///< broken_in_a_row_ is not 0

  mutable std::mutex mutex_;  ///< guards what follows
  std::condition_variable turn_;
  bool is_stopped_ = false;
  std::size_t queries_ = 0;
  std::size_t background_ = 0;
  std::vector<Session> sessions_;
  mutable Stats stats_;
  CpuUse retired_;           ///< of ended workers
  mutable CpuUse last_use_;  ///< the last result of cpu_use()
};

}  // namespace flamed::symbolizer
