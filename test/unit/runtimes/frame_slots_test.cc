// SPDX-License-Identifier: Apache-2.0
//
// The kernel program's pass over frames with slots, on the host, and the same of a stack that was copied.
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
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
#include "bpf/walk/frame_slots.h"
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
  frames.check = {.at = 16, .words = 4};
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
    linked_trust(walk.get(), met.get());
  }
  std::vector<flamed_linked_frame> step(std::uint64_t number = 3) {
    const slot_frame frame{kFrame, number, registers.data()};
    CHECK(slots_enter(walk.get(), &layout, known.get(), met.get(), &frame, 1) == 0);
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

/// Of HotSpot's interpreter.
FrameSlots interpreted_slots() {
  FrameSlots frames;
  frames.function = 3;
  frames.instruction_kind = FrameSlots::Instruction::kAddress;
  frames.instruction = 8;
  frames.guard = 7;
  frames.guard_register = 14;
  frames.instruction_register = 13;
  frames.entry_function_register = 3;
  frames.entry_cfa_register = 13;
  frames.code = 8;
  frames.first_instruction = 48;
  frames.check = {.at = 8, .words = 4};
  return frames;
}

constexpr std::uint64_t kLocals = 0x7018;

/// A frame that runs bytecode 20.
struct InterpretedStack : Stack {
  InterpretedStack() {
    slot_words.clear();
    for (std::uint64_t i = 1; i <= 8; ++i) slot_words[kFrame - 8 * i] = 0x22;
    slot_words[kFrame - 24] = kFunction;
    slot_words[kFrame - 56] = kLocals;
    slot_words[kFrame - 64] = kCode + 48 + 20;
    slot_words[kFunction + 8] = kCode;
    for (std::uint64_t i = 0; i < 4; ++i) slot_words[kCode + 8 + 8 * i] = 0x1000 + i;
    registers[7] = kFrame - 0x100;
  }
  std::optional<std::uint64_t> instruction(std::uint64_t number, std::uint64_t stepped_by = kFrame) {
    const __u32 before = walk->frame_count;
    const slot_frame frame{stepped_by, number, registers.data()};
    // As walk_frame_slots() does.
    if (number != 0 || slots_enter(walk.get(), &program, known.get(), met.get(), &frame, 1) == 0)
      slots_step(walk.get(), &program, known.get(), met.get(), &frame, 1);
    if (walk->frame_count == before) return std::nullopt;
    CHECK(walk->frames[before].code >> FLAMED_INSTRUCTION_BITS << 3 == kCode);
    return instruction_of(walk->frames[before]);
  }
  std::optional<SlotWords> words(std::uint64_t number, std::uint64_t stepped_by = kFrame) const {
    const auto read = [](std::uint64_t address) -> std::optional<std::uint64_t> {
      const auto found = slot_words.find(address);
      return found == slot_words.end() ? std::nullopt : std::optional<std::uint64_t>(found->second);
    };
    const std::vector<std::uint64_t> known_registers(registers.begin(), registers.end());
    return read_slots(interpreted_slots(), stepped_by,
                      number == 0 ? std::span(known_registers) : std::span<const std::uint64_t>(), read);
  }

  const flamed_slot_layout program = *daemon::as_program_layout(interpreted_slots());
};

TEST_CASE("an interpreted frame's instruction is counted from where its code object has the first one") {
  InterpretedStack stack;
  CHECK(stack.instruction(2) == 21);
  CHECK(stack.words(2) == SlotWords{kFunction, kCode + 68});
  slot_words[kFrame - 64] = kCode + 47;
  CHECK(stack.instruction(2) == 0);
  slot_words[kFrame - 64] = 0;
  CHECK(stack.instruction(2) == FLAMED_MOST_INSTRUCTION);
  slot_words.erase(kFrame - 64);
  CHECK_FALSE(stack.instruction(2));
  CHECK_FALSE(stack.words(2));
}

TEST_CASE("the innermost interpreted frame's instruction is in a register while its locals are in another one") {
  InterpretedStack stack;
  stack.registers[13] = kCode + 48 + 99;
  for (const std::uint64_t locals : {kLocals, (kLocals - kFrame) / 8}) {
    slot_words[kFrame - 56] = locals;
    stack.registers[14] = kLocals;
    CHECK(stack.instruction(0) == 100);
    CHECK(stack.words(0) == SlotWords{kFunction, kCode + 48 + 99});
    CHECK(stack.instruction(1) == 21);
    CHECK(stack.words(1) == SlotWords{kFunction, kCode + 68});
    stack.registers[14] = kLocals + 8;
    CHECK(stack.instruction(0) == 21);
    CHECK(stack.words(0) == SlotWords{kFunction, kCode + 68});
  }
}

TEST_CASE("a method whose frame is being set up is in a register, and at its beginning") {
  InterpretedStack stack;
  stack.registers[3] = kFunction;
  // The frame does not reach down to all places.
  stack.registers[7] = kFrame - 56;
  slot_words[kFrame - 24] = 0x22;
  CHECK(stack.instruction(0) == 0);
  CHECK(stack.words(0) == SlotWords{kFunction, 0});
  stack.registers[7] = kFrame - 64;
  CHECK_FALSE(stack.instruction(0));
  // There is no frame yet.
  CHECK(stack.instruction(0, 13) == 0);
  CHECK(stack.words(0, 13) == SlotWords{kFunction, 0});
  CHECK_FALSE(stack.instruction(0, 3));
  CHECK_FALSE(stack.words(0, 3));
  // Of callers no register is known.
  CHECK_FALSE(stack.instruction(1, 13));
  CHECK_FALSE(stack.words(1, 13));
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
  frames.check.words = 4;
  frames.instruction = 16;
  CHECK_FALSE(daemon::as_program_layout(frames));
  frames.instruction = 5;
  CHECK(daemon::as_program_layout(frames));
  frames.check.words = 13;
  CHECK_FALSE(daemon::as_program_layout(frames));
}

}  // namespace
}  // namespace flamed::runtimes
