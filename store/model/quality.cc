// SPDX-License-Identifier: Apache-2.0
#include "store/model/quality.h"

#include <numeric>

namespace flamed::store {

std::string_view name_of(Truncation reason) {
  switch (reason) {
    case Truncation::kDepthLimit:
      return "depth_limit";
    case Truncation::kBrokenFramePointer:
      return "broken_frame_pointer";
    case Truncation::kUnreadableStack:
      return "unreadable_stack";
    case Truncation::kNoUserRegisters:
      return "no_user_registers";
    case Truncation::kKernelDepthLimit:
      return "kernel_depth_limit";
    case Truncation::kStoreFull:
      return "store_full";
    case Truncation::kNewProcess:
      return "new_process";
    case Truncation::kNoMapping:
      return "no_mapping";
    case Truncation::kRowsPending:
      return "rows_pending";
    case Truncation::kNoUnwindInformation:
      return "no_unwind_information";
    case Truncation::kUnsupportedUnwind:
      return "unsupported_unwind";
    case Truncation::kUnknownRegister:
      return "unknown_register";
    case Truncation::kDamagedStack:
      return "damaged_stack";
    case Truncation::kUserShare:
      return "user_share";
    case Truncation::kSliceEnded:
      return "slice_ended";
    case Truncation::kGuessed:
      return "guessed";
    case Truncation::kStackLater:
      return "stack_later";
    case Truncation::kStackRan:
      return "stack_ran";
    case Truncation::kStackNotRead:
      return "stack_not_read";
  }
  return "unknown";
}

std::string_view name_of(Loss reason) {
  switch (reason) {
    case Loss::kRingFull:
      return "ring_full";
    case Loss::kNoRing:
      return "no_ring";
    case Loss::kMalformed:
      return "malformed";
    case Loss::kTooOld:
      return "too_old";
    case Loss::kStoreFull:
      return "store_full";
  }
  return "unknown";
}

std::string_view describe(Truncation reason) {
  switch (reason) {
    case Truncation::kDepthLimit:
      return "deeper than a sample can hold";
    case Truncation::kBrokenFramePointer:
      return "built without frame pointers";
    case Truncation::kUnreadableStack:
      return "stack page not in memory";
    case Truncation::kNoUserRegisters:
      return "user registers not available";
    case Truncation::kKernelDepthLimit:
      return "kernel stack deeper than the record";
    case Truncation::kStoreFull:
      return "no room for new stacks in the memory budget";
    case Truncation::kNewProcess:
      return "the process had only just begun";
    case Truncation::kNoMapping:
      return "address outside of all known code";
    case Truncation::kRowsPending:
      return "unwind rows not ready";
    case Truncation::kNoUnwindInformation:
      return "no unwind information and no frame pointer";
    case Truncation::kUnsupportedUnwind:
      return "unsupported unwind information";
    case Truncation::kUnknownRegister:
      return "unwinding needs a register that is not known";
    case Truncation::kDamagedStack:
      return "the stack does not grow upwards";
    case Truncation::kUserShare:
      return "its user had more than a share of the memory budget";
    case Truncation::kSliceEnded:
      return "longer than the slice of the stack that was kept";
    case Truncation::kGuessed:
      return "frames of code without unwind information are missing";
    case Truncation::kStackLater:
      return "stack not read yet";
    case Truncation::kStackRan:
      return "the thread ran before its stack was read";
    case Truncation::kStackNotRead:
      return "stack not read in time";
  }
  return "unknown reason";
}

std::string marker_of(Truncation reason) {
  return (reason == Truncation::kGuessed ? "[guessed: " : "[truncated: ") + std::string(describe(reason)) + "]";
}

std::string_view describe(Loss reason) {
  switch (reason) {
    case Loss::kRingFull:
      return "the CPU's ring of samples was full";
    case Loss::kNoRing:
      return "the CPU had no ring of samples";
    case Loss::kMalformed:
      return "the record could not be decoded";
    case Loss::kTooOld:
      return "older than anything retained when it arrived";
    case Loss::kStoreFull:
      return "no room for it in the memory budget";
  }
  return "unknown reason";
}

std::uint64_t Quality::truncated_total() const {
  return std::accumulate(truncated.begin(), truncated.end(), std::uint64_t{0}) - guessed();
}

std::uint64_t Quality::lost_total() const { return std::accumulate(lost.begin(), lost.end(), std::uint64_t{0}); }

std::uint64_t Quality::stored() const { return whole + guessed() + truncated_total(); }

Quality& Quality::operator+=(const Quality& other) {
  whole += other.whole;
  for (std::size_t i = 0; i < truncated.size(); ++i) truncated[i] += other.truncated[i];
  for (std::size_t i = 0; i < lost.size(); ++i) lost[i] += other.lost[i];
  pending += other.pending;
  return *this;
}

}  // namespace flamed::store
