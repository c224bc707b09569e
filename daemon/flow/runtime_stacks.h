// SPDX-License-Identifier: Apache-2.0
//
// RuntimeStacks: joins the frames of managed runtimes that samples bring with their native frames. A sample with code
// whose names are not known waits for them, at most kLongestWaitNs, and is then stored with unnamed frames in their
// place.
//
// Belongs to the ingest thread, except stats().
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/identity.h"
#include "bpf/linked_layout.h"
#include "daemon/flow/python_join.h"
#include "daemon/flow/slot_join.h"
#include "daemon/runtimes/runtime_modules.h"
#include "daemon/runtimes/runtime_namer.h"
#include "daemon/unwind/unwind_publisher.h"
#include "runtimes/runtime_function.h"
#include "runtimes/runtime_kind.h"
#include "store/ring/store.h"
#include "symbolizer/names/runtime_functions.h"
#include "symbolizer/process/process_tracker.h"

namespace flamed::daemon {

/// A LinkedStack with memory of its own.
struct KeptLinkedStack {
  explicit KeptLinkedStack(const LinkedStack& stack)
      : frames(stack.frames.begin(), stack.frames.end()),
        calls(stack.calls.begin(), stack.calls.end()),
        layout(stack.layout),
        is_cut(stack.is_cut) {}
  [[nodiscard]] LinkedStack view() const { return {frames, calls, layout, is_cut}; }

  std::vector<flamed_linked_frame> frames;
  std::vector<std::uint64_t> calls;
  std::uint32_t layout;
  bool is_cut;
};

class RuntimeStacks {
 public:
  static constexpr std::int64_t kLongestWaitNs = 2 * kNsPerSecond;

  /// All of them must outlive it.
  struct Parts {
    RuntimeModules& modules;
    RuntimeNamer& namer;
    symbolizer::RuntimeFunctions& functions;
    symbolizer::ProcessTracker& processes;
    store::Store& store;
  };
  explicit RuntimeStacks(const Parts& parts) : parts_(parts) {}

  /// Changes when more files are known to be runtimes.
  [[nodiscard]] std::uint64_t edition() const { return parts_.modules.edition(); }
  /// What the kernel program has to know of the process.
  [[nodiscard]] RuntimePlace place_of(const symbolizer::Process& process) const;

  /// Copies of code that samples have met. They come before these samples.
  void keep(std::span<const flamed_code_copy> copies, MonotonicTime now);

  /// `sample` is what was made of the native stack, `native` of its frames are user space's. Stores the sample, now or
  /// later. False: the process has no runtime that is known, so the caller stores it.
  bool take(symbolizer::Process& process, const store::StackSample& sample, std::size_t native,
            const LinkedStack& linked);

  /// Asks for the names that samples have lacked since the last call, stores the samples whose names are known by now,
  /// and those that have waited too long.
  void look_again(MonotonicTime now);
  /// Stores all samples.
  void finish();
  [[nodiscard]] bool is_waiting() const { return !waiting_.empty(); }
  void append_pending(std::vector<store::PendingSample>& pending) const;
  /// Has that list changed since the last call?
  bool take_changed() { return std::exchange(has_changed_, false); }

  /// Forgets what is known of ended processes.
  void tidy(MonotonicTime now);
  /// Appends the frames that must keep their names.
  void append_used(std::vector<Frame>& used) const;

  struct Stats {
    std::uint64_t samples = 0;         ///< with frames of the runtime
    std::uint64_t named_frames = 0;    ///< of these samples
    std::uint64_t unnamed_frames = 0;  ///< likewise
    std::uint64_t cut = 0;             ///< samples without their outer frames of the runtime
  };
  /// Any thread.
  [[nodiscard]] Stats stats(runtimes::RuntimeKind kind) const {
    const Counts& counts = counts_[static_cast<std::size_t>(kind)];
    return {counts.samples.load(), counts.named_frames.load(), counts.unnamed_frames.load(), counts.cut.load()};
  }
  /// Of code that is known now, of all processes. Any thread.
  [[nodiscard]] std::size_t codes() const { return codes_; }

 private:
  struct Code {
    enum class State : std::uint8_t {
      kAsked,
      kNamed,
      kUnnamed,
      kNative,  ///< code of the runtime itself, which its native frame names
    };
    State state = State::kAsked;
    std::uint8_t failures = 0;
    std::uint32_t function = symbolizer::RuntimeFunctions::kNoRoom;
    std::uint32_t first_line = 0;
    std::vector<runtimes::LineRun> lines{};
    MonotonicTime failed_at{};

    /// It could not be read, perhaps because the runtime was changing or moving it.
    [[nodiscard]] bool may_be_asked_again(MonotonicTime time) const;
  };
  /// Code that was compiled at run time, as it lay there a moment ago.
  struct Compiled {
    std::uint64_t end = 0;
    std::uint64_t owner = 0;     ///< as RuntimeCode::address: of the function
    std::optional<Frame> frame;  ///< the function; none: it is the runtime's own
    MonotonicTime learned_at;
  };
  struct CodeHash {
    std::size_t operator()(const symbolizer::RuntimeCode& code) const noexcept {
      return static_cast<std::size_t>((code.address ^ code.check << 17 ^ code.pc) * 0x9e3779b97f4a7c15ULL);
    }
  };
  /// What is known of a process, as long as it runs the same program.
  struct Known {
    std::uint64_t exec_id = 0;
    RuntimeModules::Loaded loaded;
    ModuleId anonymous{};  ///< memory without a file, where compiled code is
    std::unordered_map<symbolizer::RuntimeCode, Code, CodeHash> codes;
    std::map<std::uint64_t, Compiled> compiled;  ///< by its first address
    std::size_t named = 0;
    std::size_t unnamed = 0;
    MonotonicTime used_at;
  };
  struct Waiting {
    store::StackSample value;  ///< its borrowed parts are these:
    std::string comm;
    std::vector<Frame> frames;
    std::size_t native = 0;
    KeptLinkedStack linked;
  };

  Known* known_of(symbolizer::Process& process, MonotonicTime time);
  static symbolizer::RuntimeCode code_of(const flamed_linked_frame& frame);
  /// The user stack of `native` frames, outermost first.
  static std::optional<symbolizer::RuntimeCode> innermost_code(const Known& known, std::span<const Frame> native,
                                                               const LinkedStack& linked);
  static const Compiled* find_compiled(const Known& known, std::uint64_t pc, MonotonicTime time);
  bool are_known(const Known& known, std::span<const Frame> native, const LinkedStack& linked,
                 MonotonicTime time) const;
  void want(Known& known, const symbolizer::Process& process, std::span<const Frame> native, const LinkedStack& linked,
            MonotonicTime time);
  void ask();
  void take_copy(ProcessId process, const symbolizer::RuntimeCode& code, std::vector<symbolizer::CopiedCode>& to);
  void learn(RuntimeNamer::Answer& answer, MonotonicTime now);
  [[nodiscard]] Frame frame_of(const Known& known, const flamed_linked_frame& frame, bool is_compiled = false);
  void join_frame_slots(const Known& known, const store::StackSample& sample, std::size_t native,
                        const LinkedStack& linked);
  void store_joined(const Known& known, const store::StackSample& sample, std::size_t native,
                    const LinkedStack& linked);
  void join_linked_frames(const Known& known, const store::StackSample& sample, std::size_t native,
                          const LinkedStack& linked);
  std::uint32_t unnamed(runtimes::RuntimeKind kind, const std::string& reason, std::uint32_t user);

  const Parts parts_;
  std::unordered_map<ProcessId, Known> known_;
  std::vector<Waiting> waiting_;
  /// One for each process, since a question costs more than a name.
  std::unordered_map<ProcessId, RuntimeNamer::Request> wanted_;
  /// Of young processes, until they are asked for.
  struct Copies {
    MonotonicTime kept_at;
    std::vector<symbolizer::CopiedCode> codes;
  };
  std::unordered_map<ProcessId, Copies> copies_;
  std::size_t copy_count_ = 0;
  bool has_changed_ = false;
  MonotonicTime tidied_at_{};
  std::vector<Frame> runtime_frames_;  ///< scratch of store_joined()
  std::vector<RunFrame> run_frames_;   ///< likewise
  std::vector<Frame> frames_;          ///< likewise
  struct Counts {
    std::atomic<std::uint64_t> samples = 0, named_frames = 0, unnamed_frames = 0, cut = 0;
  };
  Counts& counts_of(const Known& known) { return counts_[static_cast<std::size_t>(known.loaded.runtime->kind())]; }
  std::array<Counts, runtimes::kRuntimeKinds.size()> counts_;
  std::atomic<std::size_t> codes_ = 0;
};

}  // namespace flamed::daemon
