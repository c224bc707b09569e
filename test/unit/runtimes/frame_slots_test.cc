// SPDX-License-Identifier: Apache-2.0
//
// The kernel program's pass over frames with slots, on the host.
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "test/catch.h"

namespace flamed::runtimes {
namespace {

std::map<std::uint64_t, std::uint64_t> slot_words;

long read_slot_words(void* to, std::size_t size, std::uint64_t address) {
  std::memset(to, 0, size);
  for (std::size_t i = 0; i < size; i += 8) {
    const auto found = slot_words.find(address + i);
    if (found == slot_words.end()) return -14;
    std::memcpy(static_cast<char*>(to) + i, &found->second, 8);
  }
  return 0;
}

}  // namespace
}  // namespace flamed::runtimes

#define bpf_probe_read_user(to, size, from) \
  flamed::runtimes::read_slot_words(to, size, reinterpret_cast<std::uint64_t>(from))
#include "bpf/frame_slots.h"
#include "daemon/unwind/program_layout.h"
#include "runtimes/linked_frames.h"

namespace flamed::runtimes {
namespace {

constexpr std::uint64_t kFrame = 0x7000;
constexpr std::uint64_t kFunction = 0x100000;
constexpr std::uint64_t kCode = 0x200000;

flamed_slot_layout some_layout() {
  FrameSlots frames;
  frames.mark = 1;
  frames.mark_bits = 1;
  frames.function = 2;
  frames.instruction = 5;
  frames.guard = 4;
  frames.guard_register = 12;
  frames.instruction_register = 9;
  frames.code = 24;
  frames.first_instruction = 53;
  frames.check = 16;
  frames.check_words = 4;
  return *daemon::as_program_layout(frames);
}

/// A frame whose instruction is 40.
struct Stack {
  Stack() {
    slot_words.clear();
    slot_words[kFrame - 8] = 0x5001;
    slot_words[kFrame - 16] = kFunction + 1;
    slot_words[kFrame - 24] = 1;
    slot_words[kFrame - 32] = 0x6001;
    slot_words[kFrame - 40] = std::uint64_t{53 + 40} << 32;
    slot_words[kFunction + 24] = kCode + 1;
    for (std::uint64_t i = 0; i < 4; ++i) slot_words[kCode + 16 + 8 * i] = 0x1000 + i;
    slots_begin(walk.get());
    walk->tgid = 7;
    walk->now_seconds = 100;
  }
  std::vector<flamed_linked_frame> step(std::uint64_t number = 3) {
    const slot_frame frame{kFrame, number, registers.data()};
    slots_step(walk.get(), &layout, known.get(), met.get(), &frame, 1);
    return {walk->frames, walk->frames + walk->frame_count};
  }

  const flamed_slot_layout layout = some_layout();
  std::unique_ptr<linked_walk> walk = std::make_unique<linked_walk>();
  std::unique_ptr<known_codes> known = std::make_unique<known_codes>();
  std::unique_ptr<met_codes> met = std::make_unique<met_codes>();
  std::array<__u64, FLAMED_REGISTERS> registers{};
};

std::uint64_t instruction_of(const flamed_linked_frame& frame) { return frame.code & FLAMED_MOST_INSTRUCTION; }

TEST_CASE("a frame's code object, its check word, its instruction and its number are noted") {
  Stack stack;
  const auto frames = stack.step();
  REQUIRE(frames.size() == 1);
  CHECK(frames[0].code >> FLAMED_INSTRUCTION_BITS << 3 == kCode);
  CHECK(instruction_of(frames[0]) == 41);
  CHECK(frames[0].check >> FLAMED_CHECK_BITS == 3);
  const std::array<std::uint64_t, 4> words{0x1000, 0x1001, 0x1002, 0x1003};
  CHECK((frames[0].check & ((std::uint64_t{1} << FLAMED_CHECK_BITS) - 1)) == check_word(words));
  CHECK(stack.walk->is_news == 1);
}

TEST_CASE("frames without the mark, and functions that can't be read, are left out") {
  Stack stack;
  slot_words[kFrame - 8] = 0x22;
  CHECK(stack.step().empty());
  slot_words[kFrame - 8] = 0x5001;
  slot_words[kFrame - 16] = 0x9001;
  CHECK(stack.step().empty());
  slot_words.erase(kFrame - 16);
  CHECK(stack.step().empty());
}

TEST_CASE("what is no small integer is no instruction") {
  Stack stack;
  slot_words[kFrame - 40] = 0x7001;
  CHECK(instruction_of(stack.step()[0]) == FLAMED_MOST_INSTRUCTION);
  slot_words[kFrame - 40] = std::uint64_t{1} << 32;  // before the first one
  CHECK(instruction_of(stack.step()[1]) == FLAMED_MOST_INSTRUCTION);
}

TEST_CASE("the innermost frame's instruction is in a register as long as another one has the guard") {
  Stack stack;
  stack.registers[9] = 53 + 99;
  stack.registers[12] = 0x6001;
  CHECK(instruction_of(stack.step(0)[0]) == 100);
  CHECK(instruction_of(stack.step(1)[1]) == 41);
  stack.registers[12] = 0x6002;
  CHECK(instruction_of(stack.step(0)[2]) == 41);
}

TEST_CASE("no more frames are noted than there is room for") {
  Stack stack;
  for (int i = 0; i < FLAMED_MAX_LINKED_FRAMES; ++i) static_cast<void>(stack.step());
  CHECK(stack.walk->is_cut == 0);
  CHECK(stack.step().size() == FLAMED_MAX_LINKED_FRAMES);
  CHECK(stack.walk->is_cut == 1);
}

TEST_CASE("places out of reach have no layout") {
  FrameSlots frames;
  frames.check_words = 4;
  frames.instruction = 16;
  CHECK_FALSE(daemon::as_program_layout(frames));
  frames.instruction = 5;
  CHECK(daemon::as_program_layout(frames));
  frames.check_words = 5;
  CHECK_FALSE(daemon::as_program_layout(frames));
}

}  // namespace
}  // namespace flamed::runtimes
