// SPDX-License-Identifier: Apache-2.0
#include "archive/codec/additions.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "archive/codec/block.h"
#include "archive/codec/texts.h"

namespace flamed::archive {
namespace {

constexpr std::uint8_t kVersion = 1;
/// Room for so many of each is taken before they were read.
constexpr std::uint64_t kTrustedRows = 1U << 16;
/// Of texts, modules, threads and processes in one block: a row of theirs takes much more memory than bytes.
constexpr std::uint64_t kMostRows = 1U << 20;
/// More processes than a session has.
constexpr DictionarySize kOfAnySession{.processes = 1U << 30};

// The columns. A text is a number in the block's own list of texts. Differences are to the row before, or to 0.
enum : std::size_t {
  kHead,          // for modules, frames, stacks, threads, processes: the first free number, how many are added; then
                  // how many gaps, and how many texts
  kTextSizes,     // of each text
  kTexts,         // one after the other
  kModules,       // kind, path; of kAnonymous: pid and start_ticks of the owner
  kFrameModules,  // difference
  kFrameOffsets,  // difference to the frame before that has the same module
  kCallers,       // of stacks: own number - caller - 1
  kStackFrames,  // of stacks: the next frame - frame; the next frame is the one after the highest so far in this block,
                 // at first the first that is added
  kThreads,      // see encode()
  kProcesses,    // likewise
  kTimes,        // of processes, likewise
  kGaps,         // likewise
  kColumns
};

Error damaged() { return Error("damaged additions"); }

std::int64_t as_signed(std::uint64_t value) { return static_cast<std::int64_t>(value); }

// Both wrap around, so that no value is too large.
std::int64_t difference(std::int64_t a, std::int64_t b) {
  return as_signed(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
std::int64_t sum(std::int64_t a, std::int64_t b) {
  return as_signed(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

/// Differences to the number before.
class Steps {
 public:
  std::int64_t to(std::int64_t value) { return difference(value, std::exchange(before_, value)); }
  std::int64_t add(std::int64_t step) { return before_ = sum(before_, step); }

 private:
  std::int64_t before_ = 0;
};

/// A process's start by its ticks is at a fixed distance from its start on the wall clock, unless that is set.
std::int64_t ticks_ns(const ProcessId& id) { return as_signed(id.start_ticks * ProcessId::kNsPerTick); }

struct ProcessSteps {
  Steps number, pid, ticks, parent_pid, parent_ticks, uid, owner, started, cgroup;
};

}  // namespace

DictionarySize Additions::after() const {
  DictionarySize size = before;
  size.modules += static_cast<std::uint32_t>(modules.size());
  size.frames += static_cast<std::uint32_t>(frames.size());
  size.stacks += static_cast<std::uint32_t>(stacks.size());
  size.threads += static_cast<std::uint32_t>(threads.size());
  for (const ProcessState& process : processes) size.processes = std::max(size.processes, process.number + 1);
  return size;
}

Result<std::vector<std::byte>> encode(const Additions& additions) {
  std::array<Column, kColumns> columns;
  TextWriter text(columns[kTextSizes], columns[kTexts]);

  for (const Module& module : additions.modules) {
    Column& column = columns[kModules];
    column.put(static_cast<std::uint64_t>(module.kind));
    column.put(text(module.path));
    if (module.kind != ModuleKind::kAnonymous) continue;
    column.put_signed(module.owner.pid);
    column.put(module.owner.start_ticks);
  }

  Steps module_steps;
  std::unordered_map<std::uint32_t, Steps> offset_steps;
  for (const FrameAddition& frame : additions.frames) {
    columns[kFrameModules].put_signed(module_steps.to(frame.module));
    columns[kFrameOffsets].put_signed(offset_steps[frame.module].to(as_signed(frame.offset)));
  }

  std::uint32_t number = additions.before.stacks;
  std::int64_t next_frame = additions.before.frames;
  for (const StackAddition& stack : additions.stacks) {
    columns[kCallers].put(number++ - stack.caller - 1);
    columns[kStackFrames].put_signed(next_frame - stack.frame);
    next_frame = std::max(next_frame, std::int64_t{stack.frame} + 1);
  }

  Steps process_steps;
  Steps tid_steps;
  Steps owner_steps;
  for (const ThreadAddition& thread : additions.threads) {
    Column& column = columns[kThreads];
    column.put_signed(process_steps.to(thread.process));
    column.put_signed(tid_steps.to(thread.tid));
    column.put(text(thread.comm));
    column.put_signed(owner_steps.to(thread.owner));
    column.put(thread.is_hidden ? 1 : 0);
  }

  ProcessSteps steps;
  for (const ProcessState& process : additions.processes) {
    const store::ProcessInfo& info = process.info;
    Column& column = columns[kProcesses];
    column.put_signed(steps.number.to(process.number));
    column.put_signed(steps.pid.to(info.id.pid));
    column.put_signed(steps.ticks.to(as_signed(info.id.start_ticks)));
    column.put_signed(steps.parent_pid.to(info.parent_pid));
    column.put_signed(steps.parent_ticks.to(as_signed(info.parent_start_ticks)));
    column.put_signed(steps.uid.to(info.uid.value_or(store::kNoUser)));
    column.put_signed(steps.owner.to(process.owner));
    column.put_signed(steps.cgroup.to(as_signed(info.cgroup_id)));
    for (const std::string* value :
         {&info.comm, &info.executable, &info.command_line, &info.cgroup, &info.unit, &info.container}) {
      column.put(text(*value));
    }
    column.put((process.is_hidden ? 1U : 0U) | (info.started ? 2U : 0U) | (info.ended ? 4U : 0U));
    if (info.started) columns[kTimes].put_signed(steps.started.to(difference(info.started->ns, ticks_ns(info.id))));
    if (info.ended) columns[kTimes].put_signed(difference(info.ended->ns, info.started ? info.started->ns : 0));
  }

  Steps from_steps;
  for (const store::Gap& gap : additions.gaps) {
    Column& column = columns[kGaps];
    column.put_signed(from_steps.to(gap.from.ns));
    column.put_signed(difference(gap.to.ns, gap.from.ns));
    column.put(static_cast<std::uint64_t>(gap.reason));
    column.put(gap.cpu ? *gap.cpu + 1U : 0U);
    column.put(gap.lost_samples);
  }

  if (std::max({text.count(), additions.modules.size(), additions.threads.size(), additions.processes.size()}) >
      kMostRows) {
    return Error("a minute adds too many names");
  }
  Column& head = columns[kHead];
  const DictionarySize& before = additions.before;
  const auto put = [&](std::uint32_t first, std::size_t count) {
    head.put(first);
    head.put(count);
  };
  put(before.modules, additions.modules.size());
  put(before.frames, additions.frames.size());
  put(before.stacks, additions.stacks.size());
  put(before.threads, additions.threads.size());
  put(before.processes, additions.processes.size());
  head.put(additions.gaps.size());
  head.put(text.count());
  return pack_block(kVersion, columns);
}

namespace {

/// Reads one block. Everything that goes wrong is remembered until the end.
class Decoder {
 public:
  Decoder(BlockReader& columns, const DictionarySize& known) : columns_(columns), known_(known) {}

  Result<Additions> decode() {
    additions_.before = known_;
    const std::uint64_t modules = take_count(known_.modules);
    const std::uint64_t frames = take_count(known_.frames);
    const std::uint64_t stacks = take_count(known_.stacks);
    const std::uint64_t threads = take_count(known_.threads);
    const std::uint64_t processes = take_count(known_.processes);
    const std::uint64_t gaps = columns_[kHead].uleb();
    take_texts(columns_[kHead].uleb());
    take_modules(modules);
    take_frames(frames);
    take_stacks(stacks);
    take_processes(processes);
    take_threads(threads);
    take_gaps(gaps);
    if (is_wrong_ || !columns_.ok()) return damaged();
    return std::move(additions_);
  }

 private:
  /// Whether another row should be read, which begins in that column: so there are no more rows than it has bytes. That
  /// another one has ended is seen in the end.
  [[nodiscard]] bool goes_on(std::size_t column) const { return !is_wrong_ && columns_[column].ok(); }
  void require(bool condition) { is_wrong_ = is_wrong_ || !condition; }

  std::uint64_t take_count(std::uint32_t expected_first) {
    require(columns_[kHead].uleb() == expected_first);
    const std::uint64_t count = columns_[kHead].uleb();
    require(count < kMostNumber - expected_first);
    return count;
  }
  std::int64_t take_signed(std::size_t column) { return unzigzag(columns_[column].uleb()); }
  template <typename T>
  T narrow(std::int64_t value) {
    require(std::numeric_limits<T>::min() <= value && value <= std::numeric_limits<T>::max());
    return static_cast<T>(value);
  }
  const std::string& take_text(std::size_t column) {
    static const std::string kNone;
    const std::uint64_t number = columns_[column].uleb();
    require(number < texts_.size());
    return number < texts_.size() ? texts_[number] : kNone;
  }
  template <typename T>
  static void make_room(std::vector<T>& rows, std::uint64_t count) {
    rows.reserve(std::min(count, kTrustedRows));
  }

  void take_texts(std::uint64_t count) {
    require(count <= kMostRows);
    make_room(texts_, count);
    while (goes_on(kTextSizes) && texts_.size() < count) {
      const std::span<const std::byte> text = columns_[kTexts].take(columns_[kTextSizes].uleb());
      texts_.emplace_back(reinterpret_cast<const char*>(text.data()), text.size());
    }
  }

  void take_modules(std::uint64_t count) {
    require(count <= kMostRows);
    make_room(additions_.modules, count);
    while (goes_on(kModules) && additions_.modules.size() < count) {
      Module module;
      const std::uint64_t kind = columns_[kModules].uleb();
      require(kind < kModuleKinds);
      module.kind = static_cast<ModuleKind>(kind);
      module.path = take_text(kModules);
      if (module.kind == ModuleKind::kAnonymous) {
        module.owner.pid = narrow<std::int32_t>(take_signed(kModules));
        module.owner.start_ticks = columns_[kModules].uleb();
      }
      additions_.modules.push_back(std::move(module));
    }
  }

  void take_frames(std::uint64_t count) {
    make_room(additions_.frames, count);
    Steps module_steps;
    std::unordered_map<std::uint32_t, Steps> offset_steps;
    const std::uint64_t modules = kFirstFreeModule.value + known_.modules + additions_.modules.size();
    while (goes_on(kFrameModules) && additions_.frames.size() < count) {
      const auto module = narrow<std::uint32_t>(module_steps.add(take_signed(kFrameModules)));
      require(module < modules);
      const std::int64_t offset = offset_steps[module].add(take_signed(kFrameOffsets));
      additions_.frames.push_back({module, static_cast<std::uint64_t>(offset)});
      require(module != kTruncatedModule.value || additions_.frames.back().offset < store::kTruncationCount);
    }
  }

  void take_stacks(std::uint64_t count) {
    make_room(additions_.stacks, count);
    const auto frames = as_signed(known_.frames + additions_.frames.size());
    std::int64_t next_frame = known_.frames;
    while (goes_on(kCallers) && additions_.stacks.size() < count) {
      const std::uint64_t number = known_.stacks + additions_.stacks.size();
      const std::uint64_t back = columns_[kCallers].uleb();
      require(back < number);
      const std::int64_t frame = difference(next_frame, take_signed(kStackFrames));
      require(0 <= frame && frame < frames);
      next_frame = std::max(next_frame, sum(frame, 1));
      additions_.stacks.push_back({static_cast<std::uint32_t>(number - back - 1), static_cast<std::uint32_t>(frame)});
    }
  }

  void take_threads(std::uint64_t count) {
    require(count <= kMostRows);
    make_room(additions_.threads, count);
    Steps process_steps;
    Steps tid_steps;
    Steps owner_steps;
    const std::uint32_t processes = additions_.after().processes;
    while (goes_on(kThreads) && additions_.threads.size() < count) {
      ThreadAddition thread;
      thread.process = narrow<std::uint32_t>(process_steps.add(take_signed(kThreads)));
      thread.tid = narrow<std::int32_t>(tid_steps.add(take_signed(kThreads)));
      thread.comm = take_text(kThreads);
      thread.owner = narrow<std::uint32_t>(owner_steps.add(take_signed(kThreads)));
      const std::uint64_t flags = columns_[kThreads].uleb();
      thread.is_hidden = flags == 1;
      require(thread.process < processes && flags <= 1);
      additions_.threads.push_back(std::move(thread));
    }
  }

  void take_processes(std::uint64_t count) {
    require(count <= kMostRows);
    make_room(additions_.processes, count);
    ProcessSteps steps;
    std::uint32_t next_number = known_.processes;
    while (goes_on(kProcesses) && additions_.processes.size() < count) {
      ProcessState process;
      store::ProcessInfo& info = process.info;
      process.number = narrow<std::uint32_t>(steps.number.add(take_signed(kProcesses)));
      require(process.number <= next_number);
      if (process.number == next_number) ++next_number;
      info.id.pid = narrow<std::int32_t>(steps.pid.add(take_signed(kProcesses)));
      info.id.start_ticks = static_cast<std::uint64_t>(steps.ticks.add(take_signed(kProcesses)));
      info.parent_pid = narrow<std::int32_t>(steps.parent_pid.add(take_signed(kProcesses)));
      info.parent_start_ticks = static_cast<std::uint64_t>(steps.parent_ticks.add(take_signed(kProcesses)));
      const auto uid = narrow<std::uint32_t>(steps.uid.add(take_signed(kProcesses)));
      if (uid != store::kNoUser) info.uid = uid;
      process.owner = narrow<std::uint32_t>(steps.owner.add(take_signed(kProcesses)));
      info.cgroup_id = static_cast<std::uint64_t>(steps.cgroup.add(take_signed(kProcesses)));
      for (std::string* value :
           {&info.comm, &info.executable, &info.command_line, &info.cgroup, &info.unit, &info.container}) {
        *value = take_text(kProcesses);
      }
      const std::uint64_t flags = columns_[kProcesses].uleb();
      require(flags < 8);
      process.is_hidden = (flags & 1) != 0;
      if ((flags & 2) != 0) info.started = WallTime{sum(steps.started.add(take_signed(kTimes)), ticks_ns(info.id))};
      if ((flags & 4) != 0) info.ended = WallTime{sum(take_signed(kTimes), info.started ? info.started->ns : 0)};
      additions_.processes.push_back(std::move(process));
    }
  }

  void take_gaps(std::uint64_t count) {
    make_room(additions_.gaps, count);
    Steps from_steps;
    while (goes_on(kGaps) && additions_.gaps.size() < count) {
      store::Gap gap;
      gap.from.ns = from_steps.add(take_signed(kGaps));
      gap.to.ns = sum(gap.from.ns, take_signed(kGaps));
      const std::uint64_t reason = columns_[kGaps].uleb();
      require(reason < store::kGapReasonCount);
      gap.reason = static_cast<store::GapReason>(reason);
      const std::uint64_t cpu = columns_[kGaps].uleb();
      require(cpu <= std::numeric_limits<std::uint16_t>::max() + 1U);
      if (cpu != 0) gap.cpu = static_cast<std::uint16_t>(cpu - 1);
      gap.lost_samples = columns_[kGaps].uleb();
      additions_.gaps.push_back(gap);
    }
  }

  /// Also leaves room for the numbers of fixed modules.
  static constexpr std::uint32_t kMostNumber = 1U << 31;

  BlockReader& columns_;
  const DictionarySize known_;
  Additions additions_;
  std::vector<std::string> texts_;
  bool is_wrong_ = false;
};

}  // namespace

std::size_t text_bytes_of(const ProcessState& state) {
  const store::ProcessInfo& info = state.info;
  return info.comm.size() + info.executable.size() + info.command_line.size() + info.cgroup.size() + info.unit.size() +
         info.container.size();
}

Result<std::vector<std::byte>> encode_states(std::vector<ProcessState> states) {
  Additions additions;
  additions.before = kOfAnySession;
  additions.processes = std::move(states);
  return encode(additions);
}

Result<std::vector<ProcessState>> decode_states(std::span<const std::byte> block) {
  Result<Additions> additions = decode_additions(block, kOfAnySession);
  if (!additions) return std::move(additions).error();
  return std::move(additions->processes);
}

Result<Additions> decode_additions(std::span<const std::byte> block, const DictionarySize& known) {
  Result<BlockReader> columns = BlockReader::open(block, kVersion, kColumns);
  if (!columns) return std::move(columns).error();
  return Decoder(*columns, known).decode();
}

}  // namespace flamed::archive
