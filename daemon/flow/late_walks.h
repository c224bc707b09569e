// SPDX-License-Identifier: Apache-2.0
//
// LateWalks: walks stacks that the kernel program could not walk, because their program had just begun or rows were
// missing. Their samples brought a slice of the stack along (bpf/stack_slice.h). If the rows stand by now, a stack is
// walked at once; otherwise its sample waits for them, at most kLongestWaitNs, and is then stored as it came.
//
// Belongs to the ingest thread, except stats().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/identity.h"
#include "bpf/events.h"
#include "daemon/flow/java_stacks.h"
#include "daemon/flow/runtime_stacks.h"
#include "daemon/runtimes/code_heaps.h"
#include "daemon/sampler/stack_slices.h"
#include "daemon/unwind/unwind_publisher.h"
#include "store/ring/store.h"
#include "symbolizer/process/process_tracker.h"
#include "unwinder/walk.h"

namespace flamed::daemon {

class LateWalks {
 public:
  static constexpr std::int64_t kLongestWaitNs = 2 * kNsPerSecond;

  /// Where stacks and rows come from, and where samples go. All of them must outlive it.
  struct Parts {
    StackSlices& slices;
    symbolizer::ProcessTracker& processes;
    symbolizer::ModuleTable& modules;
    UnwindPublisher& unwind;
    store::Store& store;
    RuntimeStacks* runtimes = nullptr;  ///< null: functions of managed runtimes are not shown
    JavaStacks* java = nullptr;         ///< null: Java methods are not shown
    CodeHeaps* code = nullptr;          ///< null: code that JVMs make is not read
    /// The stack of a visit of this thread could not be walked for lack of mappings or rows: it is to be read again.
    /// Empty: there are no visits.
    std::function<void(std::int32_t tid)> read_again{};
    /// Takes the stacks of the exact mode of waiting, with the numbers of their waits. Empty: there are none.
    std::function<void(const store::StackSample& sample, std::uint64_t number)> keep_off_cpu{};
  };
  explicit LateWalks(Parts parts) : parts_(std::move(parts)) {}

  /// `sample` is what was made of `header` without the slice; its last `kernel_frames` frames are the kernel's. True:
  /// the sample was stored or waits. False: there is no usable slice, so store it now.
  bool take(const flamed_sample& header, symbolizer::Process& process, const store::StackSample& sample,
            std::size_t kernel_frames, const LinkedStack& linked = {});

  /// The same for a visit of a waiting thread, which is never stored here. The sample with its whole stack, valid until
  /// the next call; empty: store it as it came. If its rows come, the store's wait is corrected.
  std::optional<store::StackSample> take_visit(const flamed_sample& header, symbolizer::Process& process,
                                               const store::StackSample& sample, std::size_t kernel_frames);

  /// Likewise for a wait of the exact mode, which goes to `keep_off_cpu` once it is walked. False: there is no usable
  /// slice, so keep it as it came.
  bool take_off_cpu(const flamed_sample& header, symbolizer::Process& process, const store::StackSample& sample,
                    std::size_t kernel_frames, std::uint64_t number);

  /// The slice of a sample that has no user stack is cleared at once.
  void drop(const flamed_sample& header, std::uint16_t cpu);

  /// Stores the samples whose rows stand by now, and those that have waited too long.
  void look_again(MonotonicTime now);
  /// Stores all samples.
  void finish();
  [[nodiscard]] bool is_waiting() const { return !waiting_.empty(); }
  /// Tells the store which samples wait, if that has changed.
  void tell_store();

  struct Stats {
    std::uint64_t walked = 0;    ///< samples
    std::uint64_t given_up = 0;  ///< samples whose rows did not come in time
  };
  /// Any thread.
  [[nodiscard]] Stats stats() const { return {walked_.load(), given_up_.load()}; }

 private:
  struct Waiting {
    store::StackSample value;  ///< its borrowed parts are these:
    std::string comm;
    std::vector<Frame> frames;
    std::size_t kernel_frames = 0;
    KeptLinkedStack linked;
    StackSlices::Slice slice;
    std::shared_ptr<const symbolizer::MappingSet> maps;
    Frame missing;  ///< the code whose rows it waits for; of code that its process has made: the address
    bool is_visit = false;
    std::optional<std::uint64_t> off_cpu{};  ///< of the exact mode: the number of the wait
    MonotonicTime until{};                   ///< set by the first look

    [[nodiscard]] store::StackSample sample() const {
      store::StackSample sample = value;
      sample.comm = comm;
      sample.frames = frames;
      return sample;
    }
  };

  /// Is it code that was compiled at run time, by its mapping?
  [[nodiscard]] bool is_jit_code(const symbolizer::MappingSet& maps, std::uint64_t address) const;
  /// Is there an indirect call before the address?
  [[nodiscard]] bool may_call_any_code(const symbolizer::MappingSet& maps, std::uint64_t return_address) const;
  /// Code whose rows a walk met last.
  struct Met {
    const symbolizer::Mapping* mapping = nullptr;  ///< null: there is none
    Frame frame{};
  };
  struct Walked {
    unwinder::WalkedStack stack;
    bool is_guessed = false;  ///< see unwinder::guess_stack()
    std::vector<InterpretedFrame> interpreted{};
  };
  [[nodiscard]] std::vector<InterpretedFrame> interpreted_frames(const StackSlices::Slice& slice,
                                                                 const ProcessId& process,
                                                                 std::span<const std::uint64_t> stepped_by) const;
  [[nodiscard]] unwinder::Code find_made_code(const ProcessId& process, std::uint64_t address) const;
  [[nodiscard]] Walked walk(const StackSlices::Slice& slice, const ProcessId& process,
                            const symbolizer::MappingSet& maps, Met& met) const;
  /// `weight_ns`: the CPU time that the sample adds to what is missed for lack of the rows.
  bool are_rows_coming(symbolizer::Process& process, const Met& missing, const StackSlices::Slice& slice,
                       MonotonicTime now, std::int64_t weight_ns);
  /// The sample with that stack, in frames_.
  store::StackSample walked_sample(const Walked& walked, const symbolizer::MappingSet& maps,
                                   symbolizer::Process& process, const store::StackSample& sample,
                                   std::size_t kernel_frames);
  void store_walked(const Walked& walked, const symbolizer::MappingSet& maps, symbolizer::Process& process,
                    const store::StackSample& sample, std::size_t kernel_frames, const LinkedStack& linked);
  void give_up(const Waiting& waiting);

  const Parts parts_;
  std::vector<Waiting> waiting_;
  bool has_changed_ = false;           ///< since tell_store()
  std::vector<Frame> user_frames_;     ///< scratch of walked_sample()
  std::vector<Frame> frames_;          ///< likewise
  std::vector<std::uint64_t> places_;  ///< scratch of are_rows_coming()
  std::vector<std::uint64_t> calls_;   ///< scratch of store_walked()
  std::atomic<std::uint64_t> walked_ = 0, given_up_ = 0;
};

}  // namespace flamed::daemon
