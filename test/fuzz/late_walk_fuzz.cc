// SPDX-License-Identifier: Apache-2.0
//
// Any slice of a stack, walked by any rules: the walk ends, within its number of frames, and reads nothing outside of
// the slice. Bytes: architecture, number of rules, the rules, the sample's fields of the slice, the ring's blocks.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "daemon/sampler/stack_slices.h"
#include "runtimes/frame_slots.h"
#include "unwinder/walk.h"

namespace {

using namespace flamed;
using unwinder::Rule;

constexpr std::size_t kMostRules = 16;
constexpr std::size_t kMostFrames = 1024;

void require(bool holds) {
  if (!holds) std::abort();
}

class Bytes {
 public:
  explicit Bytes(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  /// Missing bytes are 0.
  template <typename T>
  T take() {
    T value{};
    fill(&value, sizeof(value));
    return value;
  }
  void fill(void* to, std::size_t size) {
    const std::size_t taken = std::min(size, bytes_.size());
    if (taken != 0) std::memcpy(to, bytes_.data(), taken);
    bytes_ = bytes_.subspan(taken);
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

/// Of the kinds that there are: the worker's answers are checked for that (ValueCodec).
Rule take_rule(Bytes& bytes) {
  std::array<std::uint8_t, 3> kinds{};
  bytes.fill(kinds.data(), kinds.size());
  Rule rule;
  bytes.fill(&rule, sizeof(rule));
  rule.cfa = static_cast<unwinder::CfaKind>(kinds[0] % unwinder::kCfaKinds);
  rule.fp = static_cast<unwinder::FpKind>(kinds[1] % 6);
  rule.ra = static_cast<unwinder::RaKind>(kinds[2] % unwinder::kRaKinds);
  return rule;
}

/// As HotSpot's.
runtimes::FrameSlots interpreter() {
  runtimes::FrameSlots slots;
  slots.function = 3;
  slots.instruction = 8;
  slots.guard = 7;
  slots.guard_register = 14;
  slots.instruction_register = 13;
  slots.entry_function_register = 3;
  slots.entry_cfa_register = 13;
  return slots;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::unique_ptr<flamed_slice_ring> ring = std::make_unique<flamed_slice_ring>();
  static daemon::StackSlices slices;
  Bytes bytes({data, size});
  const auto architecture =
      bytes.take<std::uint8_t>() % 2 == 0 ? unwinder::Architecture::kX86_64 : unwinder::Architecture::kArm64;
  std::vector<Rule> rules(bytes.take<std::uint8_t>() % kMostRules);
  for (Rule& rule : rules) rule = take_rule(bytes);
  flamed_sample sample{};
  sample.slice_place = bytes.take<std::uint16_t>();
  sample.slice_blocks = bytes.take<std::uint16_t>() % (FLAMED_SLICE_BLOCKS + 3);
  *ring = {};
  ring->tail = bytes.take<std::uint64_t>();
  ring->head = ring->tail + bytes.take<std::uint16_t>() % (FLAMED_SLICE_RING_BLOCKS + 1);
  for (std::uint64_t at = ring->tail; at != ring->head; ++at) {
    bytes.fill(&ring->blocks[at % FLAMED_SLICE_RING_BLOCKS], FLAMED_SLICE_BLOCK_BYTES);
  }

  slices.add_ring(0, *ring);
  const std::optional<daemon::StackSlices::Slice> slice = slices.take(0, sample);
  require(ring->head - ring->tail <= FLAMED_SLICE_RING_BLOCKS);
  if (!slice) return 0;
  const std::size_t words = slice->words().size();
  require(words <= FLAMED_SLICE_BLOCKS * FLAMED_SLICE_BLOCK_BYTES / 8);
  const auto find = [&](std::uint64_t address) -> unwinder::Code {
    using Is = unwinder::Code::Is;
    const std::uint64_t choice = address % (rules.size() + 4);
    if (choice < rules.size()) return {Is::kRuled, rules[choice]};
    if (choice == rules.size()) return {address % 64 == 0 ? Is::kPending : Is::kUnmapped};
    return {Is::kWithoutRows};
  };
  const auto read = [&](std::uint64_t address) { return slice->read(address); };
  const unwinder::WalkedStack stack =
      unwinder::walk_stack(architecture, slice->registers(), kMostFrames, find, read, slice->thread_pointer());
  require(!stack.addresses.empty());
  require(stack.addresses.size() <= kMostFrames);
  require(stack.stepped_by.size() + 1 == stack.addresses.size());
  for (std::size_t i = 0; i < stack.stepped_by.size(); ++i) {
    const std::array<std::uint64_t, FLAMED_REGISTERS> registers = slice->registers();
    const auto innermost = i == 0 ? std::span(registers) : std::span<const std::uint64_t>();
    static_cast<void>(runtimes::read_slots(interpreter(), stack.stepped_by[i], innermost, read));
  }
  if (!stack.unsure) return 0;
  require(stack.sure_addresses != 0 && stack.sure_addresses <= stack.addresses.size());
  const auto guess = unwinder::guess_stack(architecture, stack, kMostFrames, find, read,
                                           [](std::uint64_t address) { return address % 3 != 0; });
  if (!guess || guess->end == unwinder::WalkEnd::kPending) return 0;
  require(guess->addresses.size() > stack.sure_addresses && guess->addresses.size() <= kMostFrames);
  require(guess->end == unwinder::WalkEnd::kOutermost);
  return 0;
}
