// SPDX-License-Identifier: Apache-2.0
#include "daemon/flow/late_walks.h"

#include <algorithm>
#include <utility>

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

/// `last`: the mapping of the last address that was looked up; null if there is none.
unwinder::WalkedStack LateWalks::walk(const StackSlices::Slice& slice, const MappingSet& maps,
                                      const Mapping*& last) const {
  const unwinder::AllRegisters registers = slice.registers();
  last = nullptr;
  const auto find = [&](std::uint64_t address) -> unwinder::Code {
    if (last == nullptr || address < last->start || address >= last->end) last = maps.find(address);
    if (last == nullptr) return {unwinder::Code::Is::kUnmapped};
    if (last->module == kNoModule) return {unwinder::Code::Is::kWithoutRows};
    return parts_.unwind.find_code(last->module, last->frame_at(address).offset);
  };
  return unwinder::walk_stack(kArchitecture, registers, FLAMED_MAX_USER_FRAMES, find,
                              [&](std::uint64_t address) { return slice.read(address); });
}

bool LateWalks::take(const flamed_sample& header, symbolizer::Process& process, const store::StackSample& sample,
                     std::size_t kernel_frames) {
  std::optional<StackSlices::Slice> slice = parts_.slices.take(sample.cpu, header);
  if (!slice) return false;
  std::shared_ptr<const MappingSet> maps = symbolizer::ProcessTracker::maps_at(process, sample.time);
  if (maps == nullptr) return false;
  const Mapping* last = nullptr;
  const unwinder::WalkedStack stack = walk(*slice, *maps, last);
  if (stack.end != WalkEnd::kPending) {
    store_walked(stack, *maps, process, sample, kernel_frames);
    return true;
  }
  if (!are_rows_coming(process, *last, sample.time, static_cast<std::int64_t>(header.weight_ns))) return false;
  waiting_.push_back({sample,
                      std::string(sample.comm),
                      {sample.frames.begin(), sample.frames.end()},
                      kernel_frames,
                      static_cast<std::int64_t>(header.weight_ns),
                      std::move(*slice),
                      std::move(maps),
                      last->module});
  has_changed_ = true;
  return true;
}

/// Requests the rows of a mapping's module. False: there will be none soon.
bool LateWalks::are_rows_coming(symbolizer::Process& process, const Mapping& mapping, MonotonicTime now,
                                std::int64_t weight_ns) {
  const std::uint64_t code_bytes = mapping.end - mapping.start;
  parts_.processes.want_rows(process, mapping, now);
  if (parts_.unwind.should_build(mapping.module, weight_ns, code_bytes)) parts_.modules.want_again(mapping.module);
  return parts_.unwind.is_being_built(mapping.module) || parts_.unwind.is_worth_at_once(code_bytes);
}

void LateWalks::look_again(MonotonicTime now) {
  const auto is_done = [&](Waiting& waiting) {
    const bool is_over = now.ns - waiting.value.time.ns >= kLongestWaitNs;
    if (!is_over && !parts_.unwind.is_ready(waiting.missing)) return false;
    symbolizer::Process& process = parts_.processes.resolve(waiting.value.process, waiting.value.time);
    const Mapping* last = nullptr;
    const unwinder::WalkedStack stack = walk(waiting.slice, *waiting.maps, last);
    if (stack.end != WalkEnd::kPending) {
      store_walked(stack, *waiting.maps, process, waiting.sample(), waiting.kernel_frames);
      return true;
    }
    if (is_over || !are_rows_coming(process, *last, now, waiting.weight_ns)) {
      give_up(waiting);
      return true;
    }
    waiting.missing = last->module;
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
  parts_.store.add(waiting.sample());
  ++given_up_;
}

void LateWalks::store_walked(const unwinder::WalkedStack& stack, const MappingSet& maps, symbolizer::Process& process,
                             const store::StackSample& sample, std::size_t kernel_frames) {
  user_frames_.clear();
  const symbolizer::StackTrust trust =
      parts_.processes.locate_in(maps, process, sample.time, stack.addresses, user_frames_);
  frames_.assign(user_frames_.rbegin(), user_frames_.rend());
  frames_.insert(frames_.end(), sample.frames.end() - static_cast<std::ptrdiff_t>(kernel_frames), sample.frames.end());
  store::StackSample walked = sample;
  walked.frames = frames_;
  // The kernel's part is cut where it was cut.
  if (sample.truncation != Truncation::kKernelDepthLimit) {
    walked.truncation = truncation_of(stack.end);
    if (trust != symbolizer::StackTrust::kAll) walked.truncation = Truncation::kNoMapping;
  }
  parts_.store.add(walked);
  ++walked_;
}

void LateWalks::tell_store() {
  if (!std::exchange(has_changed_, false)) return;
  std::vector<store::PendingSample> pending;
  pending.reserve(waiting_.size());
  for (const Waiting& waiting : waiting_) {
    pending.push_back({waiting.value.time, waiting.value.process, waiting.value.tid});
  }
  parts_.store.set_pending(std::move(pending));
}

}  // namespace flamed::daemon
