// SPDX-License-Identifier: Apache-2.0
//
// JavaStacks: puts methods in place of the frames of samples that lie in the code heap of a HotSpot JVM. A compiled
// method may have inlined others, and then becomes several frames. Frames of the interpreter come with the method that
// they run.
//
// A sample waits for a reading that begins after it (see JavaCode), at most kLongestWaitNs. There is one reading for
// all samples of a process that wait, at most one in kBetweenReadingsNs. Those of a process that has ended do not wait.
// When too many wait, further ones are named by the last reading.
//
// Belongs to the ingest thread, except stats().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/identity.h"
#include "daemon/flow/java_code.h"
#include "daemon/flow/python_join.h"
#include "daemon/runtimes/code_heaps.h"
#include "daemon/runtimes/hotspot_namer.h"
#include "store/ring/store.h"
#include "symbolizer/names/runtime_functions.h"
#include "symbolizer/process/process_tracker.h"

namespace flamed::daemon {

/// A method that the interpreter runs.
struct InterpretedFrame {
  std::uint64_t number = 0;  ///< of the native frame that runs it; the innermost one's is 0
  runtimes::HotSpotInterpreted method;
};

class JavaStacks {
 public:
  static constexpr std::int64_t kLongestWaitNs = 2 * kNsPerSecond;
  static constexpr std::int64_t kBetweenReadingsNs = 200'000'000;

  /// All of them must outlive it.
  struct Parts {
    CodeHeaps& heaps;
    HotSpotNamer& namer;
    symbolizer::RuntimeFunctions& functions;
    symbolizer::ProcessTracker& processes;
    store::Store& store;
  };
  explicit JavaStacks(const Parts& parts) : parts_(parts) {}

  /// `native` of the sample's frames are user space's. `interpreted` is in the order of its numbers. Stores the sample,
  /// now or later. False: none of the frames is in a code heap that can be read, so the caller stores it.
  bool take(const symbolizer::Process& process, const store::StackSample& sample, std::size_t native,
            std::span<const InterpretedFrame> interpreted);
  /// With the frames that the kernel program has found (bpf/walk/frame_slots.h).
  bool take(const symbolizer::Process& process, const store::StackSample& sample, std::size_t native,
            const LinkedStack& linked);

  /// Stores the samples whose methods are known by now, and those that have waited too long; asks for the others.
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
    std::uint64_t samples = 0;             ///< with frames in a code heap
    std::uint64_t named_frames = 0;        ///< of these samples: methods and code of HotSpot itself
    std::uint64_t interpreted_frames = 0;  ///< whose method is not known
    std::uint64_t unnamed_frames = 0;
    std::uint64_t replaced_frames = 0;  ///< of these: another method was there before or after
    std::size_t places = 0;             ///< known now, of all processes
  };
  /// Any thread.
  [[nodiscard]] Stats stats() const {
    return {samples_.load(),        named_frames_.load(),    interpreted_frames_.load(),
            unnamed_frames_.load(), replaced_frames_.load(), places_.load()};
  }

 private:
  /// What is known of a process, as long as it runs the same program.
  struct Known {
    std::uint64_t exec_id = 0;
    std::uint32_t user = 0;
    ModuleId memory;  ///< that without a file
    ModuleId library;
    symbolizer::HotSpotMapping mapping;
    CodePlacePtr heap;
    JavaCode code;
    bool is_asked = false;
    unsigned failures = 0;  ///< in a row
    std::string why_not;    ///< of the last failure
    MonotonicTime asked_at{};
    MonotonicTime used_at{};
  };
  struct Waiting {
    store::StackSample value;  ///< its borrowed parts are these:
    std::string comm;
    std::vector<Frame> frames;
    std::size_t native = 0;
    std::vector<InterpretedFrame> interpreted;
    MonotonicTime since{};  ///< 0: not looked at yet
  };

  Known* known_of(const symbolizer::Process& process, MonotonicTime time);
  [[nodiscard]] bool is_running(const ProcessId& process) const;
  static bool is_code(const Known& known, const Frame& frame);
  static bool are_known(const Known& known, const Waiting& sample);
  /// May it be a method that the interpreter runs, as far as is known?
  static bool may_run(const Known& known, const Waiting& sample, const InterpretedFrame& each);
  void ask(const ProcessId& process, Known& known, MonotonicTime now);
  void learn(const HotSpotNamer::Answer& answer);
  void store_unnamed(const Waiting& sample);
  void store_named(const Known& known, const Waiting& sample, bool by_last_reading);
  Frame interpreted_frame(const Known& known, const runtimes::HotSpotInterpreted* method, MonotonicTime time,
                          bool by_last_reading);
  Frame unnamed(const char* name, const std::string& reason, std::uint32_t user);

  const Parts parts_;
  std::unordered_map<ProcessId, Known> known_;
  std::vector<Waiting> waiting_;
  bool has_changed_ = false;
  MonotonicTime tidied_at_{};
  std::vector<Frame> frames_;                  ///< scratch of store_named()
  std::vector<InterpretedFrame> interpreted_;  ///< scratch of take()
  std::atomic<std::uint64_t> samples_ = 0, named_frames_ = 0, interpreted_frames_ = 0, unnamed_frames_ = 0,
                             replaced_frames_ = 0;
  std::atomic<std::size_t> places_ = 0;
};

}  // namespace flamed::daemon
