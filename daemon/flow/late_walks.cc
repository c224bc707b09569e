// SPDX-License-Identifier: Apache-2.0
#include "daemon/flow/late_walks.h"

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <utility>

#include "unwinder/call_site.h"

namespace flamed::daemon {
namespace {

using store::Truncation;
using symbolizer::Mapping;
using symbolizer::MappingSet;
using unwinder::WalkEnd;

#if defined(__aarch64__)
constexpr unwinder::Architecture kArchitecture = unwinder::Architecture::kArm64;
#else
constexpr unwinder::Architecture kArchitecture = unwinder::Architecture::kX86_64;
#endif
static_assert(unwinder::registers_of(kArchitecture).pc == FLAMED_PC_REGISTER);
static_assert(unwinder::registers_of(kArchitecture).sp == FLAMED_SP_REGISTER);

/// As linked_join() does in the kernel program: which native frame has each call on the stack.
void join_calls(std::span<const std::uint64_t> calls, std::span<const std::uint64_t> frame_ends,
                std::vector<std::uint64_t>& joined) {
  joined.clear();
  std::size_t frame = 0;
  for (const std::uint64_t call : calls) {
    const std::uint64_t address = call & FLAMED_CALL_ADDRESS;
    while (frame < frame_ends.size() && frame_ends[frame] <= address) ++frame;
    const std::uint64_t number = frame < frame_ends.size() ? frame : FLAMED_NO_NATIVE_FRAME;
    joined.push_back(address | number << FLAMED_CALL_BITS);
  }
}
/// Visits that wait for rows.
constexpr std::ptrdiff_t kMostVisits = 64;

std::optional<Truncation> truncation_of(WalkEnd end) {
  switch (end) {
    case WalkEnd::kOutermost:
      return std::nullopt;
    case WalkEnd::kTooDeep:
      return Truncation::kDepthLimit;
    case WalkEnd::kUnmapped:
      return Truncation::kNoMapping;
    case WalkEnd::kPending:
      return Truncation::kRowsPending;
    case WalkEnd::kNoInformation:
      return Truncation::kNoUnwindInformation;
    case WalkEnd::kUnsupported:
      return Truncation::kUnsupportedUnwind;
    case WalkEnd::kUnknownRegister:
      return Truncation::kUnknownRegister;
    case WalkEnd::kUnreadable:
      return Truncation::kSliceEnded;
    case WalkEnd::kNotGrowing:
      return Truncation::kDamagedStack;
  }
  return Truncation::kDamagedStack;
}

}  // namespace

bool LateWalks::is_jit_code(const MappingSet& maps, std::uint64_t address) const {
  const Mapping* const mapping = maps.find(address);
  if (mapping == nullptr) return false;
  if (mapping->module == kNoModule) return true;
  const symbolizer::ModulePtr module = parts_.modules.find(mapping->module);
  return module != nullptr &&
         (module->kind == symbolizer::ModuleKind::kAnonymous || module->path.starts_with("/memfd:"));
}

/// By the code in the mapped file. Its file system may not answer, so only what the kernel has in memory is read.
bool LateWalks::may_call_any_code(const MappingSet& maps, std::uint64_t return_address) const {
  const Mapping* const mapping = maps.find(return_address - 1);
  if (mapping == nullptr || return_address - mapping->start < unwinder::kCallBytes) return false;
  const symbolizer::ModulePtr module = parts_.modules.find(mapping->module);
  if (module == nullptr || !module->file) return false;
  std::array<std::byte, unwinder::kCallBytes> code{};
  const iovec to{code.data(), code.size()};
  const std::uint64_t offset = mapping->frame_at(return_address - unwinder::kCallBytes).offset;
  const ssize_t got = ::preadv2(module->file.get(), &to, 1, static_cast<off_t>(offset), RWF_NOWAIT);
  return got == static_cast<ssize_t>(code.size()) && unwinder::is_indirect_call(kArchitecture, code);
}

/// Code in memory without a file.
unwinder::Code LateWalks::find_made_code(const ProcessId& process, std::uint64_t address) const {
  const CodePlacePtr place = parts_.code == nullptr ? nullptr : parts_.code->find(process);
  return place == nullptr ? unwinder::Code{unwinder::Code::Is::kWithoutRows} : parts_.unwind.find_code(*place, address);
}

LateWalks::Walked LateWalks::walk(const StackSlices::Slice& slice, const ProcessId& process, const MappingSet& maps,
                                  Met& met) const {
  const unwinder::AllRegisters registers = slice.registers();
  const auto find = [&](std::uint64_t address) -> unwinder::Code {
    const Mapping*& mapping = met.mapping;
    if (mapping == nullptr || address < mapping->start || address >= mapping->end) mapping = maps.find(address);
    if (mapping == nullptr) return {unwinder::Code::Is::kUnmapped};
    if (mapping->module == kNoModule) {
      met.frame = {kNoModule, address};
      return find_made_code(process, address);
    }
    met.frame = mapping->frame_at(address);
    return parts_.unwind.find_code(met.frame.module, met.frame.offset);
  };
  const auto read = [&](std::uint64_t address) { return slice.read(address); };
  unwinder::WalkedStack stack =
      unwinder::walk_stack(kArchitecture, registers, FLAMED_MAX_USER_FRAMES, find, read, slice.thread_pointer());
  const bool has_failed =
      stack.end != WalkEnd::kOutermost && stack.end != WalkEnd::kTooDeep && stack.end != WalkEnd::kPending;
  if (has_failed && stack.unsure && is_jit_code(maps, stack.unsure->lookup_address())) {
    const auto may_call = [&](std::uint64_t address) { return may_call_any_code(maps, address); };
    std::optional<unwinder::WalkedStack> guess =
        unwinder::guess_stack(kArchitecture, stack, FLAMED_MAX_USER_FRAMES, find, read, may_call);
    if (guess) return {std::move(*guess), true, {}};
  }
  std::vector<InterpretedFrame> interpreted = interpreted_frames(slice, process, stack.stepped_by);
  return {std::move(stack), false, std::move(interpreted)};
}

/// As the kernel program's pass (bpf/walk/frame_slots.h), but the slice has no more than the stack.
std::vector<InterpretedFrame> LateWalks::interpreted_frames(const StackSlices::Slice& slice, const ProcessId& process,
                                                            std::span<const std::uint64_t> stepped_by) const {
  std::vector<InterpretedFrame> frames;
  const CodePlacePtr place = parts_.code == nullptr ? nullptr : parts_.code->find(process);
  if (place == nullptr || !place->interpreter) return frames;
  const unwinder::AllRegisters registers = slice.registers();
  const auto read = [&](std::uint64_t address) { return slice.read(address); };
  for (std::size_t i = 0; i < stepped_by.size(); ++i) {
    if (stepped_by[i] == 0) continue;
    const std::span<const std::uint64_t> innermost = i == 0 ? std::span(registers) : std::span<const std::uint64_t>();
    const auto words = runtimes::read_slots(*place->interpreter, stepped_by[i], innermost, read);
    if (words) frames.push_back({i, {words->function, 0, words->instruction}});
  }
  return frames;
}

void LateWalks::drop(const flamed_sample& header, std::uint16_t cpu) {
  static_cast<void>(parts_.slices.take(cpu, header));
}

bool LateWalks::take(const flamed_sample& header, symbolizer::Process& process, const store::StackSample& sample,
                     std::size_t kernel_frames, const LinkedStack& linked) {
  std::optional<StackSlices::Slice> slice = parts_.slices.take(sample.cpu, header);
  if (!slice) return false;
  std::shared_ptr<const MappingSet> maps = symbolizer::ProcessTracker::maps_at(process, sample.time);
  if (maps == nullptr) return false;
  Met met;
  const Walked walked = walk(*slice, process.id, *maps, met);
  if (walked.stack.end != WalkEnd::kPending) {
    process.walked_late = true;
    store_walked(walked, *maps, process, sample, kernel_frames, linked);
    return true;
  }
  // Ingest has counted those that the kernel program walked up to the missing rows.
  const bool is_counted = header.user_end == FLAMED_END_ROWS_PENDING;
  const auto weight_ns = is_counted ? 0 : static_cast<std::int64_t>(header.weight_ns);
  if (!are_rows_coming(process, met, *slice, sample.time, weight_ns)) return false;
  waiting_.push_back({sample,
                      std::string(sample.comm),
                      {sample.frames.begin(), sample.frames.end()},
                      kernel_frames,
                      KeptLinkedStack(linked),
                      std::move(*slice),
                      std::move(maps),
                      met.frame,
                      false});
  has_changed_ = true;
  return true;
}

std::optional<store::StackSample> LateWalks::take_visit(const flamed_sample& header, symbolizer::Process& process,
                                                        const store::StackSample& sample, std::size_t kernel_frames) {
  std::optional<StackSlices::Slice> slice = parts_.slices.take(sample.cpu, header);
  std::shared_ptr<const MappingSet> maps = symbolizer::ProcessTracker::maps_at(process, sample.time);
  if (!slice || maps == nullptr) {
    if (parts_.read_again) parts_.read_again(sample.tid);
    return std::nullopt;
  }
  Met met;
  const Walked walked = walk(*slice, process.id, *maps, met);
  store::StackSample known = walked_sample(walked, *maps, process, sample, kernel_frames);
  if (walked.stack.end != WalkEnd::kPending) return known;
  known.truncation = Truncation::kRowsPending;
  // Samples need the room for slices more. A wait costs no CPU time that is missed for lack of the rows.
  const auto visits =
      std::count_if(waiting_.begin(), waiting_.end(), [](const Waiting& waiting) { return waiting.is_visit; });
  if (visits < kMostVisits && are_rows_coming(process, met, *slice, sample.time, 0)) {
    waiting_.push_back({sample,
                        std::string(sample.comm),
                        {sample.frames.begin(), sample.frames.end()},
                        kernel_frames,
                        KeptLinkedStack(LinkedStack()),
                        std::move(*slice),
                        std::move(maps),
                        met.frame,
                        true});
  } else if (parts_.read_again) {
    parts_.read_again(sample.tid);
  }
  return known;
}

bool LateWalks::take_off_cpu(const flamed_sample& header, symbolizer::Process& process,
                             const store::StackSample& sample, std::size_t kernel_frames, std::uint64_t number) {
  std::optional<StackSlices::Slice> slice = parts_.slices.take(sample.cpu, header);
  std::shared_ptr<const MappingSet> maps = symbolizer::ProcessTracker::maps_at(process, sample.time);
  if (!slice || maps == nullptr) return false;
  Met met;
  const Walked walked = walk(*slice, process.id, *maps, met);
  const auto waiting = std::count_if(waiting_.begin(), waiting_.end(),
                                     [](const Waiting& other) { return other.is_visit || other.off_cpu; });
  if (walked.stack.end == WalkEnd::kPending && waiting < kMostVisits &&
      are_rows_coming(process, met, *slice, sample.time, 0)) {
    waiting_.push_back({sample,
                        std::string(sample.comm),
                        {sample.frames.begin(), sample.frames.end()},
                        kernel_frames,
                        KeptLinkedStack(LinkedStack()),
                        std::move(*slice),
                        std::move(maps),
                        met.frame,
                        false,
                        number});
    return true;
  }
  parts_.keep_off_cpu(walked_sample(walked, *maps, process, sample, kernel_frames), number);
  return true;
}

/// Requests the rows of the missing code: of its module, or if these are not worth building, of the function there. So
/// that the next functions need not be asked for one by one, of all functions of the module that the stack may return
/// to. False: there will be none soon.
bool LateWalks::are_rows_coming(symbolizer::Process& process, const Met& missing, const StackSlices::Slice& slice,
                                MonotonicTime now, std::int64_t weight_ns) {
  const Mapping& mapping = *missing.mapping;
  if (mapping.module == kNoModule) {
    return parts_.code != nullptr && parts_.code->missed(process, now, CodeHeaps::Miss::kPending);
  }
  const std::uint64_t code_bytes = mapping.end - mapping.start;
  const bool is_worth_it = parts_.unwind.should_build(mapping.module, weight_ns, code_bytes);
  bool are_functions_coming = false;
  if (!is_worth_it && !parts_.unwind.is_worth_at_once(code_bytes) && !parts_.unwind.is_being_built(mapping.module)) {
    places_.assign(1, missing.frame.offset);
    for (const std::uint64_t word : slice.words()) {
      if (word > mapping.start && word <= mapping.end) places_.push_back(mapping.frame_at(word - 1).offset);
    }
    are_functions_coming = parts_.unwind.want_functions(mapping.module, places_);
  }
  parts_.processes.want_rows(process, mapping, now);
  if (is_worth_it) parts_.modules.want_again(mapping.module);
  if (are_functions_coming) parts_.modules.want_functions(mapping.module);
  return are_functions_coming || parts_.unwind.is_being_built(mapping.module) ||
         parts_.unwind.is_worth_at_once(code_bytes);
}

void LateWalks::look_again(MonotonicTime now) {
  const auto is_done = [&](Waiting& waiting) {
    // The sample itself may be some seconds old by now.
    if (waiting.until.ns == 0) waiting.until.ns = now.ns + kLongestWaitNs;
    const bool is_over = waiting.until <= now;
    const auto [module, offset] = waiting.missing;
    const auto find = [&, at = offset, in = module] {
      return in == kNoModule ? find_made_code(waiting.value.process, at) : parts_.unwind.find_code(in, at);
    };
    if (!is_over && find().is == unwinder::Code::Is::kPending) return false;
    symbolizer::Process& process = parts_.processes.resolve(waiting.value.process, waiting.value.time);
    Met met;
    const Walked walked = walk(waiting.slice, process.id, *waiting.maps, met);
    if (walked.stack.end != WalkEnd::kPending) {
      if (waiting.off_cpu) {
        parts_.keep_off_cpu(walked_sample(walked, *waiting.maps, process, waiting.sample(), waiting.kernel_frames),
                            *waiting.off_cpu);
      } else if (waiting.is_visit) {
        parts_.store.correct_wait(
            walked_sample(walked, *waiting.maps, process, waiting.sample(), waiting.kernel_frames));
      } else {
        store_walked(walked, *waiting.maps, process, waiting.sample(), waiting.kernel_frames, waiting.linked.view());
      }
      return true;
    }
    if (is_over || !are_rows_coming(process, met, waiting.slice, now, 0)) {
      give_up(waiting);
      return true;
    }
    waiting.missing = met.frame;
    return false;
  };
  if (std::erase_if(waiting_, is_done) != 0) has_changed_ = true;
}

void LateWalks::finish() {
  for (const Waiting& waiting : waiting_) give_up(waiting);
  if (!waiting_.empty()) has_changed_ = true;
  waiting_.clear();
}

void LateWalks::give_up(const Waiting& waiting) {
  if (waiting.is_visit) {
    if (parts_.read_again) parts_.read_again(waiting.value.tid);
    return;
  }
  if (waiting.off_cpu) {
    store::StackSample cut = waiting.sample();
    cut.truncation = Truncation::kRowsPending;
    return parts_.keep_off_cpu(cut, *waiting.off_cpu);
  }
  const store::StackSample sample = waiting.sample();
  symbolizer::Process& process = parts_.processes.resolve(sample.process, sample.time);
  const std::size_t native = sample.frames.size() - waiting.kernel_frames;
  ++given_up_;
  if (parts_.runtimes != nullptr && parts_.runtimes->take(process, sample, native, waiting.linked.view())) return;
  if (parts_.java == nullptr || !parts_.java->take(process, sample, native, waiting.linked.view()))
    parts_.store.add(sample);
}

void LateWalks::store_walked(const Walked& walked, const MappingSet& maps, symbolizer::Process& process,
                             const store::StackSample& sample, std::size_t kernel_frames, const LinkedStack& linked) {
  const store::StackSample stored = walked_sample(walked, maps, process, sample, kernel_frames);
  ++walked_;
  if (parts_.runtimes != nullptr && (linked.layout & FLAMED_INTERPRETED) == 0) {
    LinkedStack joined = linked;
    join_calls(linked.calls, walked.stack.frame_ends, calls_);
    joined.calls = calls_;
    if (parts_.runtimes->take(process, stored, user_frames_.size(), joined)) return;
  }
  if (parts_.java == nullptr || !parts_.java->take(process, stored, user_frames_.size(), walked.interpreted))
    parts_.store.add(stored);
}

store::StackSample LateWalks::walked_sample(const Walked& walked, const MappingSet& maps, symbolizer::Process& process,
                                            const store::StackSample& sample, std::size_t kernel_frames) {
  user_frames_.clear();
  const symbolizer::StackTrust trust =
      parts_.processes.locate_in(maps, process, sample.time, walked.stack.addresses, user_frames_);
  frames_.assign(user_frames_.rbegin(), user_frames_.rend());
  frames_.insert(frames_.end(), sample.frames.end() - static_cast<std::ptrdiff_t>(kernel_frames), sample.frames.end());
  store::StackSample stored = sample;
  stored.frames = frames_;
  // The kernel's part is cut where it was cut.
  if (sample.truncation != Truncation::kKernelDepthLimit) {
    stored.truncation = walked.is_guessed ? Truncation::kGuessed : truncation_of(walked.stack.end);
    if (trust != symbolizer::StackTrust::kAll) stored.truncation = Truncation::kNoMapping;
  }
  return stored;
}

void LateWalks::tell_store() {
  bool has_names_changed = parts_.runtimes != nullptr && parts_.runtimes->take_changed();
  if (parts_.java != nullptr && parts_.java->take_changed()) has_names_changed = true;
  if (!std::exchange(has_changed_, false) && !has_names_changed) return;
  std::vector<store::PendingSample> pending;
  pending.reserve(waiting_.size());
  for (const Waiting& waiting : waiting_) {
    if (waiting.is_visit || waiting.off_cpu) continue;
    pending.push_back({waiting.value.time, waiting.value.process, waiting.value.tid});
  }
  if (parts_.runtimes != nullptr) parts_.runtimes->append_pending(pending);
  if (parts_.java != nullptr) parts_.java->append_pending(pending);
  parts_.store.set_pending(std::move(pending));
}

}  // namespace flamed::daemon
