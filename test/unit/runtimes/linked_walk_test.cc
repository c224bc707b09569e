// SPDX-License-Identifier: Apache-2.0
//
// The kernel program's walk of linked frames, on the host.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "test/catch.h"
#include "test/unit/runtimes/live_python.h"
#include "test/unit/runtimes/plain_walk.h"

namespace flamed::runtimes {
namespace {

RemoteMemory* walked_memory = nullptr;

long read_walked_memory(void* to, std::size_t size, std::uint64_t address) {
  std::memset(to, 0, size);
  return walked_memory->read(address, std::span(static_cast<std::byte*>(to), size)) ? 0 : -14;
}

}  // namespace
}  // namespace flamed::runtimes

#define bpf_probe_read_user(to, size, from) \
  flamed::runtimes::read_walked_memory(to, size, reinterpret_cast<std::uint64_t>(from))
#include "bpf/walk/linked_frames.h"
#include "test/unit/runtimes/program_layout.h"

namespace flamed::runtimes {
namespace {

void walk_all(linked_walk& walk, const flamed_linked_layout& layout, known_codes& known, met_codes& met,
              std::uint32_t may_notify) {
  while (linked_step(&walk, &layout, &known, &met, may_notify) != 0) {
  }
}

std::unique_ptr<linked_walk> walk(RemoteMemory& memory, const flamed_linked_layout& layout, std::uint64_t base,
                                  std::uint64_t thread_pointer) {
  auto walk = std::make_unique<linked_walk>();
  const auto known = std::make_unique<known_codes>();
  const auto met = std::make_unique<met_codes>();
  walked_memory = &memory;
  linked_begin(walk.get(), &layout, base, thread_pointer);
  walk_all(*walk, layout, *known, *met, 1);
  return walk;
}

/// What the plain walk found, in the form of the program's.
std::uint64_t as_program_code(const PlainFrame& frame) {
  return frame.code >> 3 << FLAMED_INSTRUCTION_BITS | static_cast<std::uint64_t>(frame.instruction + 1);
}

/// [start, end) of the first thread's stack.
std::pair<std::uint64_t, std::uint64_t> stack_of(pid_t pid) {
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("[stack]") == std::string::npos) continue;
    return {std::stoull(line, nullptr, 16), std::stoull(line.substr(line.find('-') + 1), nullptr, 16)};
  }
  return {0, 0};
}

TEST_CASE("the program finds the frames of a running Python, and what each call from native code has on the stack") {
#if !defined(__x86_64__)
  WARN("SKIP: Python is read on x86-64 only");
  return;
#endif
  for (const std::string& python : pythons()) {
    for (const std::string mode : {"wait", "spin"}) {
      INFO(python << " " << mode);
      const Result<LivePython> process = LivePython::start(python, mode);
      if (!process) FAIL(process.error().message());
      const Result<LivePython::Module> module = process->find_module();
      if (!module) FAIL(module.error().message());
      const LinkedFrames& layout = module->layout.frames;
      ProcessMemory memory(process->pid());
      const auto plain = walk_linked_frames(memory, layout, module->base, process->thread());
      const auto found = walk(memory, as_program_layout(layout), module->base, process->thread());

      CHECK(found->is_cut == 0);
      REQUIRE(found->frame_count == plain.size());
      std::uint64_t call = 0;
      for (std::size_t i = 0; i < plain.size(); ++i) {
        // What spins is elsewhere in its innermost function by now.
        const unsigned ignored = mode == "spin" && i == 0 ? FLAMED_INSTRUCTION_BITS : 0;
        CHECK(found->frames[i].code >> ignored == as_program_code(plain[i]) >> ignored);
        CHECK(found->frames[i].check >> FLAMED_CHECK_BITS == call);
        const std::uint64_t check = found->frames[i].check & ((1ULL << FLAMED_CHECK_BITS) - 1);
        CHECK(check == read_check_word(memory, layout.check, plain[i].code));
        CHECK(check != 0);
        if (plain[i].is_outermost_of_call && layout.boundary_kind != LinkedFrames::Boundary::kEachFrame) ++call;
      }
      REQUIRE(found->call_count >= call);
      const auto [stack, stack_end] = stack_of(process->pid());
      std::uint64_t below = 0;
      for (std::uint64_t i = 0; i < call; ++i) {
        // 3.11 has the outermost one in the thread state.
        const std::uint64_t address = found->calls[i] & FLAMED_CALL_ADDRESS;
        CHECK(address >= stack);
        CHECK(address < stack_end);
        CHECK(address > below);
        below = address;
      }
    }
  }
}

/// Words by address; all else can't be read.
class Words final : public RemoteMemory {
 public:
  bool read(std::uint64_t address, std::span<std::byte> to) override {
    for (std::size_t i = 0; i < to.size(); ++i) {
      const auto found = words_.find((address + i) & ~std::uint64_t{7});
      if (found == words_.end()) return false;
      to[i] = static_cast<std::byte>(found->second >> (8 * ((address + i) & 7)));
    }
    return true;
  }
  void put(std::uint64_t address, std::uint64_t word) { words_[address] = word; }

 private:
  std::map<std::uint64_t, std::uint64_t> words_;
};

constexpr std::uint64_t kThread = 0x7000;
constexpr std::uint64_t kState = 0x10000;
constexpr std::uint64_t kFrames = 0x20000;
constexpr std::uint64_t kCodes = 0x900000;

/// Version 3.12's, with its state at a thread-local variable.
LinkedFrames forged_layout() {
  LinkedFrames layout;
  layout.thread_states = {{ThreadStatePlace::Kind::kThreadLocal, -8, 0}};
  layout.thread_id = 136;
  layout.innermost = {72};
  layout.previous = 8;
  layout.instruction = 56;
  layout.first_instruction = 192;
  layout.boundary = 70;
  layout.boundary_value = 3;
  layout.check = {.at = 112, .words = 4};
  return layout;
}

std::uint64_t frame_at(std::uint64_t number) { return kFrames + 128 * number; }
std::uint64_t code_at(std::uint64_t number) { return kCodes + 256 * number; }

/// A frame whose code has its number; the caller is the next one.
void put_frame(Words& memory, std::uint64_t number, std::uint64_t owner = 0) {
  const std::uint64_t at = frame_at(number);
  memory.put(at, owner < 3 ? code_at(number) : 0);
  memory.put(at + 8, frame_at(number + 1));
  for (std::uint64_t word = 16; word < 80; word += 8) memory.put(at + word, 0);
  memory.put(at + 56, code_at(number) + 192 + 2 * number);
  memory.put(at + 64, owner << 48);
  for (std::uint64_t word = 0; word < 4; ++word) memory.put(code_at(number) + 112 + 8 * word, number + word);
}

Words forged_thread(std::uint64_t frames) {
  Words memory;
  memory.put(kThread - 8, kState);
  memory.put(kState + 136, kThread);
  memory.put(kState + 72, frame_at(0));
  for (std::uint64_t i = 0; i < frames; ++i) put_frame(memory, i);
  if (frames > 0) memory.put(frame_at(frames - 1) + 8, 0);
  return memory;
}

const flamed_linked_layout kForged = as_program_layout(forged_layout());

TEST_CASE("frames have their code, instruction and check word") {
  Words memory = forged_thread(3);
  const auto found = walk(memory, kForged, 0, kThread);
  REQUIRE(found->frame_count == 3);
  CHECK(found->is_cut == 0);
  for (std::uint64_t i = 0; i < 3; ++i) {
    CHECK(found->frames[i].code == (code_at(i) >> 3 << FLAMED_INSTRUCTION_BITS | (i + 1)));
  }
  CHECK(found->frames[0].check != found->frames[1].check);
  // Another code object at the same address.
  const std::uint64_t before = found->frames[1].check;
  memory.put(code_at(1) + 136, 77);
  CHECK(walk(memory, kForged, 0, kThread)->frames[1].check != before);
}

TEST_CASE("the program's check word is the one that names are read with") {
  Words memory = forged_thread(2);
  const auto found = walk(memory, kForged, 0, kThread);
  const std::array<std::uint64_t, 4> words{1, 2, 3, 4};
  CHECK((found->frames[1].check & ((1ULL << FLAMED_CHECK_BITS) - 1)) == check_word(words));
}

TEST_CASE("the state of another thread is not walked") {
  Words memory = forged_thread(3);
  memory.put(kState + 136, kThread + 64);
  CHECK(walk(memory, kForged, 0, kThread)->frame_count == 0);
}

TEST_CASE("the second place of a thread state is used if the first one has none of this thread") {
  Words memory = forged_thread(3);
  LinkedFrames layout = forged_layout();
  layout.thread_states = {{ThreadStatePlace::Kind::kGlobal, 0, 0x100}, {ThreadStatePlace::Kind::kThreadKey, 0, 0x200}};
  memory.put(0x5100, 0x66666);
  memory.put(0x5200, 0x1234500000003);  // beside the key lies something else
  memory.put(kThread + 0x310 + 3 * 16 + 8, kState);
  CHECK(walk(memory, as_program_layout(layout), 0x5000, kThread)->frame_count == 3);
  memory.put(0x5200, 99);
  CHECK(walk(memory, as_program_layout(layout), 0x5000, kThread)->frame_count == 0);
}

TEST_CASE("a thread state lies in a library's block of thread-local variables") {
  Words memory = forged_thread(3);
  LinkedFrames layout = forged_layout();
  layout.thread_states = {{ThreadStatePlace::Kind::kThreadBlock, 24, 0x300}};
  const flamed_linked_layout to = as_program_layout(layout);
  memory.put(0x5300, 2);
  memory.put(kThread + 8, 0x6000);
  memory.put(0x6020, UINT64_MAX);  // not allocated yet
  CHECK(walk(memory, to, 0x5000, kThread)->frame_count == 0);
  memory.put(0x6020, 0x6800);
  memory.put(0x6818, kState);
  CHECK(walk(memory, to, 0x5000, kThread)->frame_count == 3);
}

TEST_CASE("calls from native code end groups of frames") {
  Words memory = forged_thread(7);
  put_frame(memory, 2, 3);
  put_frame(memory, 5, 4);
  const auto found = walk(memory, kForged, 0, kThread);
  REQUIRE(found->frame_count == 5);
  REQUIRE(found->call_count == 2);
  CHECK(found->calls[0] == (frame_at(2) | FLAMED_NO_NATIVE_FRAME << FLAMED_CALL_BITS));
  CHECK(found->calls[1] == (frame_at(5) | FLAMED_NO_NATIVE_FRAME << FLAMED_CALL_BITS));
  std::vector<std::uint64_t> calls;
  for (std::uint32_t i = 0; i < found->frame_count; ++i) calls.push_back(found->frames[i].check >> FLAMED_CHECK_BITS);
  CHECK(calls == std::vector<std::uint64_t>{0, 0, 1, 1, 2});
}

TEST_CASE("a native frame that has a call on the stack is noted with the call, from the innermost one on") {
  Words memory = forged_thread(7);
  put_frame(memory, 2, 3);
  put_frame(memory, 5, 4);
  const auto found = walk(memory, kForged, 0, kThread);
  CHECK(linked_join(found.get(), 4) == frame_at(5));
  CHECK(linked_join(found.get(), 9) == ~0ULL);
  CHECK(linked_join(found.get(), 11) == ~0ULL);
  CHECK(found->calls[0] == (frame_at(2) | std::uint64_t{4} << FLAMED_CALL_BITS));
  CHECK(found->calls[1] == (frame_at(5) | std::uint64_t{9} << FLAMED_CALL_BITS));
}

/// Samples of one process.
struct Sampled {
  std::unique_ptr<linked_walk> walk_at(std::uint32_t seconds, known_codes& of_cpu, std::uint32_t may_notify = 1) {
    auto walk = std::make_unique<linked_walk>();
    walked_memory = &memory;
    linked_begin(walk.get(), &layout, 0, kThread);
    walk->tgid = 7;
    walk->now_seconds = seconds;
    linked_trust(walk.get(), met.get());
    walk_all(*walk, layout, of_cpu, *met, may_notify);
    return walk;
  }
  /// Of its second frame.
  std::uint64_t check_at(std::uint32_t seconds) { return walk_at(seconds, *known)->frames[1].check; }
  void replace(std::uint64_t value) { memory.put(code_at(1) + 136, value); }

  Words memory = forged_thread(2);
  flamed_linked_layout layout = kForged;
  std::unique_ptr<known_codes> known = std::make_unique<known_codes>();
  std::unique_ptr<met_codes> met = std::make_unique<met_codes>();
};

TEST_CASE("code that has been known for a while has its check word read once in a second") {
  Sampled process;
  const std::uint64_t first = process.check_at(5);
  const std::uint32_t old = 5 + FLAMED_YOUNG_CODE_SECONDS;
  CHECK(process.check_at(old) == first);
  process.replace(77);
  CHECK(process.check_at(old) == first);
  CHECK(process.check_at(old + 1) != first);
}

TEST_CASE("code that was met for the first time lately has its check word read in each sample") {
  Sampled process;
  const std::uint64_t first = process.check_at(5);
  const std::uint32_t last = 5 + FLAMED_YOUNG_CODE_SECONDS - 1;
  CHECK(process.check_at(last) == first);
  process.replace(77);
  CHECK(process.check_at(last) != first);
}

TEST_CASE("a process that has lately replaced code has the check words of all its code read in each sample") {
  Sampled process;
  process.check_at(5);
  process.replace(77);
  process.check_at(5);
  const auto outer = [&](std::uint32_t seconds) { return process.walk_at(seconds, *process.known)->frames[0].check; };
  const std::uint32_t last = 5 + FLAMED_REPLACED_CODE_SECONDS - 1;
  const std::uint64_t before = outer(last);
  process.memory.put(code_at(0) + 112, 99);
  const std::uint64_t after = outer(last);
  CHECK(after != before);
  const std::uint32_t much_later = last + 2 * FLAMED_REPLACED_CODE_SECONDS;
  CHECK(outer(much_later) == after);
  process.memory.put(code_at(0) + 112, 100);
  CHECK(outer(much_later) == after);
}

TEST_CASE("new code is news only to the first CPU, and if there was no time for the news, a second later") {
  Sampled process;
  CHECK(process.walk_at(5, *process.known, 0)->is_news == 0);
  CHECK(process.walk_at(5, *process.known)->is_news == 0);
  CHECK(process.walk_at(6, *process.known)->is_news == 1);
  CHECK(process.walk_at(6, *process.known)->is_news == 0);
  const auto other_cpu = std::make_unique<known_codes>();
  CHECK(process.walk_at(6, *other_cpu)->is_news == 0);
  process.replace(77);
  CHECK(process.walk_at(6, *process.known)->is_news == 1);
}

TEST_CASE(
    "where the interpreter counts its code objects, their check words are read again when the count has changed") {
  Sampled process;
  constexpr std::uint64_t kInterpreter = 0x700000;
  process.layout.interpreter = 16;
  process.layout.generation = 0x4000;
  process.memory.put(kState + 16, kInterpreter);
  process.memory.put(kInterpreter + 0x4000, 3);
  const std::uint64_t first = process.check_at(5);
  process.replace(77);
  CHECK(process.check_at(5) == first);
  process.memory.put(kInterpreter + 0x4000, 4);
  const std::uint64_t second = process.check_at(5);
  CHECK(second != first);

  // The same count of another interpreter.
  constexpr std::uint64_t kOther = 0x780000;
  process.replace(78);
  process.memory.put(kOther + 0x4000, 4);
  process.memory.put(kState + 16, kOther);
  CHECK(process.check_at(5) != second);

  // 0 is no count.
  process.memory.put(kOther + 0x4000, 0);
  const std::uint64_t third = process.check_at(5);
  process.replace(79);
  CHECK(process.check_at(5) != third);
}

TEST_CASE("the content of a name and of the end of a file's name counts where the layout says so") {
  Sampled process;
  constexpr std::uint64_t kName = 0x600000;
  constexpr std::uint64_t kFile = 0x610000;
  CodeCheck check{.at = 112, .words = 4, .name = 112, .file = 120, .text = 48};
  process.layout.check = daemon::as_program_check(check);
  process.memory.put(code_at(1) + 112, kName);
  process.memory.put(code_at(1) + 120, kFile);
  for (std::uint64_t word = 0; word < 512; word += 8) {
    process.memory.put(kName + word, 0);
    process.memory.put(kFile + word, 0);
  }
  const auto put_length = [&](std::uint64_t length) { process.memory.put(kFile + 16, length); };
  std::set<std::uint64_t> words;
  const auto is_new = [&] {
    const std::uint64_t word = process.check_at(5) & ((1ULL << FLAMED_CHECK_BITS) - 1);
    CHECK(word == read_check_word(process.memory, check, code_at(1)));
    return words.insert(word).second;
  };
  put_length(20);
  CHECK(is_new());
  process.memory.put(kName + 24, 1);  // its hash
  CHECK(is_new());
  process.memory.put(kFile + 48 + 8, 2);
  CHECK(is_new());
  process.memory.put(kFile + 48 + 24, 2);  // behind it
  CHECK_FALSE(is_new());
  put_length(1000);
  CHECK(is_new());
  process.memory.put(kFile + 48 + 184, 3);
  CHECK(is_new());
  process.memory.put(kFile + 48 + 192, 3);
  CHECK_FALSE(is_new());
  // What can't be read counts as 0.
  process.memory.put(code_at(1) + 112, 8);
  CHECK(is_new());
  // Lengths that no text has.
  put_length(std::uint64_t{1} << 63);
  CHECK_FALSE(is_new());
  put_length(UINT64_MAX);
  CHECK(is_new());
  put_length(0);
  CHECK(is_new());
}

TEST_CASE("code of a young process that no CPU has met is copied, and no more than there is room for") {
  Words memory = forged_thread(FLAMED_MOST_CODE_COPIES + 4);
  const auto known = std::make_unique<known_codes>();
  const auto met = std::make_unique<met_codes>();
  const auto walk_young = [&] {
    auto walk = std::make_unique<linked_walk>();
    walked_memory = &memory;
    linked_begin(walk.get(), &kForged, 0, kThread);
    walk->may_copy = 1;
    walk->now_seconds = 2;
    walk_all(*walk, kForged, *known, *met, 0);
    return walk;
  };
  const auto first = walk_young();
  CHECK(first->is_news == 0);
  REQUIRE(first->copy_count == FLAMED_MOST_CODE_COPIES);
  CHECK(first->copies[3].code == code_at(3));
  CHECK(first->copies[3].check == (first->frames[3].check & ((1ULL << FLAMED_CHECK_BITS) - 1)));
  // Those that had no room are met by the next sample.
  const auto fresh = std::make_unique<known_codes>();
  *known = *fresh;
  const auto second = walk_young();
  REQUIRE(second->copy_count == 4);
  CHECK(second->copies[0].code == code_at(FLAMED_MOST_CODE_COPIES));
}

TEST_CASE("a copy of code has what its pointers point to, up to the end of a page that is the last one") {
  Words memory;
  constexpr std::uint64_t kCode = 0x10000;
  flamed_linked_layout layout = kForged;
  layout.parts[0] = 128;
  layout.parts[1] = 112;
  layout.parts[2] = 136;
  const auto put_zeros = [&](std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t at = from; at < to; at += 8) memory.put(at, 0);
  };
  put_zeros(kCode, kCode + FLAMED_CODE_PART_BYTES);
  put_zeros(0x20f80, 0x21000);  // what is left of its page
  put_zeros(0x30000, 0x30000 + FLAMED_CODE_PART_BYTES);
  memory.put(kCode + 128, 0x20f80);
  memory.put(kCode + 136, 0x30000);
  memory.put(0x20f88, 11);
  memory.put(0x30008, 12);
  walked_memory = &memory;
  flamed_code_copy copy{};
  linked_copy_code(&copy, &layout, kCode);
  CHECK(copy.places[0].address == kCode);
  CHECK(copy.places[0].bytes == FLAMED_CODE_PART_BYTES);
  CHECK(copy.places[1].address == 0x20f80);
  CHECK(copy.places[1].bytes == 128);
  CHECK(copy.parts[1][8] == 11);
  CHECK(copy.places[2].bytes == 0);
  CHECK(copy.places[3].bytes == FLAMED_CODE_PART_BYTES);
  CHECK(copy.parts[3][8] == 12);
}

TEST_CASE("instructions that are far away, or before the first one, are told apart from others") {
  Words memory = forged_thread(3);
  memory.put(frame_at(0) + 56, code_at(0) + 190);
  memory.put(frame_at(1) + 56, code_at(1) + 192 + (1 << 22));
  memory.put(frame_at(2) + 56, 0);
  const auto found = walk(memory, kForged, 0, kThread);
  CHECK((found->frames[0].code & FLAMED_MOST_INSTRUCTION) == 0);
  CHECK((found->frames[1].code & FLAMED_MOST_INSTRUCTION) == FLAMED_MOST_INSTRUCTION);
  CHECK((found->frames[2].code & FLAMED_MOST_INSTRUCTION) == FLAMED_MOST_INSTRUCTION);
}

TEST_CASE("a frame that refers to itself, and circles, end at the largest depth") {
  Words memory = forged_thread(3);
  memory.put(frame_at(2) + 8, frame_at(2));
  auto found = walk(memory, kForged, 0, kThread);
  CHECK(found->frame_count == FLAMED_MAX_LINKED_FRAMES);
  CHECK(found->is_cut == 1);
  memory.put(frame_at(2) + 8, frame_at(0));
  CHECK(walk(memory, kForged, 0, kThread)->frame_count == FLAMED_MAX_LINKED_FRAMES);
}

TEST_CASE("a circle of calls alone ends as well") {
  Words memory = forged_thread(1);
  put_frame(memory, 0, 3);
  memory.put(frame_at(0) + 8, frame_at(0));
  auto found = std::make_unique<linked_walk>();
  walked_memory = &memory;
  linked_begin(found.get(), &kForged, 0, kThread);
  // The program makes this many steps in a run, and few runs.
  const auto known = std::make_unique<known_codes>();
  const auto met = std::make_unique<met_codes>();
  for (int i = 0; i < 4 * FLAMED_LINKED_RUN; ++i) linked_step(found.get(), &kForged, known.get(), met.get(), 1);
  CHECK(found->frame_count == 0);
  CHECK(found->call_count == FLAMED_MAX_LINKED_CALLS);
}

TEST_CASE("frames and code that can't be read are told") {
  Words memory = forged_thread(3);
  memory.put(frame_at(1) + 8, 0x400000);
  const auto cut = walk(memory, kForged, 0, kThread);
  CHECK(cut->frame_count == 2);
  CHECK(cut->is_cut == 1);
  memory.put(frame_at(1) + 8, 0);
  memory.put(frame_at(1), 0x500001);
  const auto found = walk(memory, kForged, 0, kThread);
  REQUIRE(found->frame_count == 2);
  CHECK((found->frames[1].check & ((1ULL << FLAMED_CHECK_BITS) - 1)) == 0);
}

}  // namespace
}  // namespace flamed::runtimes
