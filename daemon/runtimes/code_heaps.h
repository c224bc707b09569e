// SPDX-License-Identifier: Apache-2.0
//
// CodeHeaps: the code that HotSpot JVMs make at run time. Reads their code heaps while they run, and has its rows
// entered into the unwind tables. Ingest says when rows were missed; a thread of its own has the ELF worker read the
// heaps from the processes' memory.
//
// A heap is read when code of it was met that has no rows, soon in a program that has just begun and more and more
// rarely while it goes on.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/bounded_queue.h"
#include "base/clock.h"
#include "base/identity.h"
#include "base/result.h"
#include "daemon/runtimes/open_jvms.h"
#include "daemon/runtimes/reading_pace.h"
#include "daemon/unwind/code_place.h"
#include "daemon/unwind/unwind_publisher.h"
#include "symbolizer/model/hotspot_module.h"
#include "symbolizer/model/module_reader.h"
#include "symbolizer/process/module_table.h"
#include "symbolizer/process/process.h"

namespace flamed::daemon {

class CodeHeaps {
 public:
  /// All of them must outlive it.
  struct Parts {
    symbolizer::ModuleTable& modules;
    OpenJvms& jvms;
    symbolizer::ModuleReader& reader;
    UnwindPublisher& unwind;
    std::function<bool()> may_work;  ///< within the CPU budget
    /// Enters how interpreted frames are read into the kernel program; 0: it can't be.
    std::function<std::uint32_t(const runtimes::FrameSlots&)> enter_interpreter;
  };
  explicit CodeHeaps(const Parts& parts) : parts_(parts) {}

  // -- Ingest --------------------------------------------------------------------------------------------------------

  /// Where the process's code has its rows. Null: it is no JVM, or can't be read.
  CodePlacePtr place_of(const symbolizer::Process& process);
  /// The same of a process that may have ended a moment ago, as far as place_of() has told.
  [[nodiscard]] CodePlacePtr find(const ProcessId& process) const;

  /// Has it loaded a JVM's library?
  [[nodiscard]] bool has_library(const symbolizer::Process& process);

  enum class Miss : std::uint8_t {
    kPending,  ///< a walk met code without rows
    kFailed,   ///< a walk failed beyond code with rows: it may be other code by now
  };
  /// Reads the heap when it is time to. False: it won't be read.
  bool missed(const symbolizer::Process& process, MonotonicTime now, Miss miss);

  /// Where it has the library mapped, whose file is needed once. Null: not known.
  [[nodiscard]] const symbolizer::Mapping* library_of(const symbolizer::Process& process) const;

  /// Requests the readings that are due, and takes finished ones. Then the places of `changed` processes are others.
  void look_again(MonotonicTime now, std::vector<ProcessId>& changed);
  /// Is a reading wanted or under way?
  [[nodiscard]] bool is_waiting() const { return waiting_ != 0; }
  /// Forgets processes that ended.
  void tidy(MonotonicTime now, const std::function<bool(const ProcessId&)>& is_running);
  /// Frees the rows that processes had before the last places were published.
  void forget_old_rows();

  // -- A thread of its own -------------------------------------------------------------------------------------------

  /// Reads until `stop` is requested.
  void run(const std::stop_token& stop);

  // -- Any thread ----------------------------------------------------------------------------------------------------

  struct Stats {
    std::size_t processes = 0;
    std::uint64_t readings = 0;
    std::int64_t reading_ns = 0;
    std::uint64_t failures = 0;
    std::uint64_t blobs = 0;     ///< pieces of code that were met
    std::uint64_t replaced = 0;  ///< of these: another one was at their place, or they are gone
  };
  [[nodiscard]] Stats stats() const;

  struct Fact {
    std::string path;
    std::string version;
    std::string missing;  ///< what can't be read, and why; empty: nothing
  };
  [[nodiscard]] std::vector<Fact> facts() const;

 private:
  /// A process that has the library loaded.
  struct Known {
    std::uint64_t exec_id = 0;
    ModuleId library;
    symbolizer::HotSpotMapping mapping;
    std::uint32_t user = 0;
    CodePlacePtr place;
    bool is_wanted = false;
    bool is_asked = false;
    unsigned failures = 0;  ///< in a row
    ReadingPace pace;
    MonotonicTime used_at{};
  };
  struct Request {
    OpenJvms::Place jvm;  ///< without a library: its heap is to be forgotten
    CodePlacePtr place;   ///< of the reading before
  };
  struct Answer {
    ProcessId process;
    std::uint64_t exec_id = 0;
    CodePlacePtr place;  ///< null: it could not be read
    std::int64_t took_ns = 0;
    bool is_for_good = false;  ///< the failure
  };
  /// A piece of code and its rows.
  struct Piece {
    runtimes::HotSpotBlob blob;
    std::vector<unwinder::Row> rows;  ///< RuleIds of Heap::rules
  };
  /// What the thread knows of a process.
  struct Heap {
    std::uint64_t exec_id = 0;
    std::shared_ptr<const OpenJvms::Jvm> jvm;
    std::optional<runtimes::FrameSlots> interpreter;
    std::uint32_t layout = 0;
    std::vector<Piece> pieces;
    unwinder::RuleTable rules;
    std::size_t bytes = 0;
  };

  [[nodiscard]] bool is_library(ModuleId module);
  /// Null: there is none.
  [[nodiscard]] const symbolizer::Mapping* find_library(const symbolizer::MappingSet& maps);
  void ask(const ProcessId& process, Known& known);

  Answer read(const Request& request);
  /// An error with code ENOTSUP: it can't be read, and never will.
  Result<CodePlacePtr> read_place(const Request& request);
  Result<Heap*> heap_of(const Request& request);
  bool merge(Heap& heap, const runtimes::HotSpotCode& code);
  CodePlacePtr publish(const Heap& heap, const std::vector<runtimes::HotSpotHeapRange>& ranges);
  void drop_heap(const ProcessId& process);
  void note(ModuleId library, std::string version, std::string missing);

  const Parts parts_;
  // Of ingest:
  std::unordered_map<ModuleId, bool> is_library_;
  std::unordered_map<ProcessId, Known> known_;
  std::vector<ModuleId> old_rows_;
  std::size_t waiting_ = 0;
  MonotonicTime tidied_at_{};

  BoundedQueue<Request> requests_{256};
  // Of the thread:
  std::unordered_map<ProcessId, Heap> heaps_;
  std::deque<ProcessId> heaps_by_age_;
  std::size_t heap_bytes_ = 0;

  mutable std::mutex mutex_;  ///< guards what follows
  std::vector<Answer> answers_;
  struct Library {
    std::string path, version, missing;
  };
  std::unordered_map<ModuleId, Library> libraries_;
  std::atomic<std::size_t> processes_ = 0;
  std::atomic<std::uint64_t> readings_ = 0, failures_ = 0, blobs_ = 0, replaced_ = 0;
  std::atomic<std::int64_t> reading_ns_ = 0;
};

}  // namespace flamed::daemon
