// SPDX-License-Identifier: Apache-2.0
#include "runtimes/hotspot/names.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "daemon/unwind/program_layout.h"
#include "runtimes/hotspot/code_finder.h"
#include "runtimes/hotspot/interpreter.h"
#include "runtimes/linked_frames.h"
#include "test/catch.h"
#include "test/unit/runtimes/forged_hotspot.h"
#include "test/unit/runtimes/live_hotspot.h"

namespace flamed::runtimes {
namespace {

std::string text_of(const std::vector<ShownFrame>& stack) {
  std::string text;
  for (const ShownFrame& frame : stack) {
    text += frame.name + " " + frame.file + ":" + std::to_string(frame.line) + "\n";
  }
  return text;
}

class CompiledFrames {
 public:
  CompiledFrames(const LiveHotSpot& process, const LiveHotSpot::Module& module)
      : memory_(process.pid()),
        module_(module),
        names_(memory_, memory_, module.layout),
        words_(process.words_on_stack()) {}

  /// Of the program's own methods, innermost first, from a return address on to the first frame that is not compiled.
  std::vector<ShownFrame> from(HotSpotCodeFinder& finder, std::size_t at) {
    std::vector<ShownFrame> frames;
    while (at < words_.size()) {
      const std::optional<std::uint64_t> address = finder.find(words_[at]);
      const Result<HotSpotNamedCode> blob = address ? names_.code(*address) : Error("none");
      if (!blob || blob->kind != HotSpotCodeKind::kCompiled) break;
      const Result<std::vector<HotSpotCall>> calls = names_.calls(*blob, words_[at]);
      if (!calls) break;
      for (const HotSpotCall& call : *calls) {
        const Result<RuntimeFunction> method = names_.method(call.method);
        if (!method) FAIL(method.error().message());
        const bool is_shown =
            method->name.rfind("ShowOwnStack", 0) == 0 && method->name.find("$$") == std::string::npos;
        if (is_shown) frames.push_back({method->name, method->file, method->line_at(call.bytecode)});
      }
      const HotSpotPlace& size = module_.layout.blobs.frame_size;
      const auto frame_words = read_number<std::uint32_t>(memory_, blob->address + size.offset);
      if (!frame_words || *frame_words == 0) break;
      at += *frame_words;
    }
    return frames;
  }
  [[nodiscard]] std::size_t words() const { return words_.size(); }
  ProcessMemory& memory() { return memory_; }

 private:
  ProcessMemory memory_;
  const LiveHotSpot::Module& module_;
  HotSpotNames names_;
  std::vector<std::uint64_t> words_;
};

TEST_CASE("the compiled frames of a running JVM are those that it shows itself, with names, files and lines") {
  for (const std::string& java : jvms()) {
    INFO(java);
    const Result<LiveHotSpot> process = LiveHotSpot::start(java, {"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"});
    if (!process && process.error().message().find("javac") != std::string::npos) {
      WARN("SKIP: no JDK here (Debian: default-jdk-headless)");
      return;
    }
    if (!process) FAIL(process.error().message());
    const Result<LiveHotSpot::Module> module = process->find_module();
    if (!module) FAIL(module.error().message());
    INFO(module->layout.release_text());

    CompiledFrames frames(*process, *module);
    Result<HotSpotCodeFinder> finder = HotSpotCodeFinder::open(frames.memory(), module->layout, module->base);
    if (!finder) FAIL(finder.error().message());
    // main() runs only once and is not compiled.
    std::vector<ShownFrame> expected = process->stack();
    REQUIRE(expected.size() > 8);
    REQUIRE(expected.back().name == "ShowOwnStack.main");
    expected.pop_back();
    // Words that were left by earlier calls may be return addresses as well.
    std::string found;
    std::size_t compiled = 0;
    for (std::size_t at = 0; at < frames.words() && found != text_of(expected); ++at) {
      const std::vector<ShownFrame> stack = frames.from(*finder, at);
      if (stack.size() < compiled) continue;
      compiled = stack.size();
      found = text_of(stack);
    }
    CHECK(found == text_of(expected));
  }
}

TEST_CASE("each compiled method of a running JVM has the name that the JVM says") {
  for (const std::string& java : jvms()) {
    INFO(java);
    const Result<LiveHotSpot> process = LiveHotSpot::start(java, {});
    if (!process && process.error().message().find("javac") != std::string::npos) {
      WARN("SKIP: no JDK here (Debian: default-jdk-headless)");
      return;
    }
    if (!process) FAIL(process.error().message());
    const Result<LiveHotSpot::Module> module = process->find_module();
    if (!module) FAIL(module.error().message());
    INFO(module->layout.release_text());
    ProcessMemory memory(process->pid());
    HotSpotNames names(memory, memory, module->layout);
    Result<HotSpotCodeFinder> finder = HotSpotCodeFinder::open(memory, module->layout, module->base);
    if (!finder) FAIL(finder.error().message());
    std::size_t methods = 0;
    std::size_t inlined = 0;
    for (const auto& [low, high] : finder->ranges()) {
      for (std::uint64_t at = low; at < high;) {
        const std::optional<std::uint64_t> address = finder->find(at);
        const Result<HotSpotNamedCode> blob = address ? names.code(*address) : Error("none");
        if (!blob) {
          at += 64;
          continue;
        }
        at = std::max(at + 64, blob->address + blob->bytes);
        if (blob->kind != HotSpotCodeKind::kCompiled && blob->kind != HotSpotCodeKind::kNative) continue;
        const auto said = process->compiled().find(blob->compile_id);
        if (said == process->compiled().end()) continue;
        ++methods;
        INFO(blob->compile_id);
        const Result<RuntimeFunction> method = names.method(blob->method);
        if (!method) FAIL(method.error().message());
        // Of a hidden class the JVM says an address as well.
        std::string name = said->second;
        const std::size_t colons = name.find("::");
        const std::size_t slash = name.find('/');
        name = name.substr(0, std::min(slash, colons)) + "." + name.substr(colons + 2);
        name.resize(std::min(name.size(), name.find('(')));
        // Other characters than ASCII's are "\u00e4" there.
        if (name.find('\\') == std::string::npos && name != method->name) CHECK(name == method->name);
        if (blob->kind != HotSpotCodeKind::kCompiled) continue;
        std::size_t places = 0;
        std::string last_error;
        for (std::uint64_t pc = blob->code; pc < blob->address + blob->bytes; pc += blob->bytes / 16 + 1) {
          const Result<std::vector<HotSpotCall>> calls = names.calls(*blob, pc);
          if (!calls) {
            last_error = calls.error().message();
            continue;
          }
          ++places;
          inlined += calls->size() - 1;
          if (calls->back().method != blob->method) CHECK(calls->back().method == blob->method);
        }
        INFO(last_error);
        if (places == 0) CHECK(places != 0);
      }
    }
    CHECK(methods > 100);
    CHECK(inlined > 100);
  }
}

// -- Forged ----------------------------------------------------------------------------------------------------------

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> all;
  for (const int value : values) all.push_back(static_cast<std::byte>(value));
  return all;
}

TEST_CASE("a table of lines is read as HotSpot writes it") {
  // Three instructions on, one line on; the same again; then 300 instructions and 20 lines back by signed numbers.
  const auto table = bytes({3 << 3 | 1, 3 << 3 | 1, 0xff, 600 % 64 + 192, (600 - 600 % 64 - 192) / 64 & 0xff, 3, 0});
  const std::vector<LineRun> runs = read_bytecode_lines(bytes({3 << 3 | 1, 3 << 3 | 1, 0}), 0);
  CHECK(runs == std::vector<LineRun>{{3, 1}, {6, 2}});
  CHECK(read_bytecode_lines({}, 0).empty());
  CHECK_FALSE(read_bytecode_lines(table, 0).empty());
  // -2 is 3 in zigzag, and 4 where no byte is 0.
  CHECK(read_bytecode_lines(bytes({5 << 3 | 7, 0xff, 8, 3, 0}), 0) == std::vector<LineRun>{{5, 7}, {9, 5}});
  CHECK(read_bytecode_lines(bytes({5 << 3 | 7, 0xff, 9, 4, 0}), 1) == std::vector<LineRun>{{5, 7}, {9, 5}});
}

TEST_CASE("a table of lines that goes back is put in order, and one that leaves the method is cut") {
  CHECK(read_bytecode_lines(bytes({8 << 3 | 7, 0xff, 7, 3, 0}), 0) == std::vector<LineRun>{{4, 5}, {8, 7}});
  CHECK(read_bytecode_lines(bytes({8 << 3 | 7, 0xff, 63, 3, 0}), 0) == std::vector<LineRun>{{8, 7}});
}

TEST_CASE("a forged method has its name, file and lines") {
  ForgedHotSpot memory;
  HotSpotNames names(memory, memory, memory.layout);
  const auto method = names.method(ForgedHotSpot::kMethod);
  REQUIRE(method);
  CHECK(method->name == "java.util.Map$Node.get");
  CHECK(method->file == "Map.java");
  CHECK(method->line_at(0) == 7);
  CHECK(method->line_at(-1) == 7);
  CHECK(method->line_at(40) == 9);
}

TEST_CASE("the class of a method is shown without the address that a hidden class has in its name") {
  ForgedHotSpot memory;
  memory.put_text(ForgedHotSpot::kClassName, "Main$$Lambda$14+0x00007f0000000a00");
  CHECK(HotSpotNames(memory, memory, memory.layout).method(ForgedHotSpot::kMethod)->name == "Main$$Lambda$14.get");
}

TEST_CASE("characters beyond the first 65,536 are one character of a name, and broken texts are none") {
  ForgedHotSpot memory;
  HotSpotNames names(memory, memory, memory.layout);
  memory.put_text(ForgedHotSpot::kClassName, "\xed\xa0\xb5\xed\xb2\xb3");
  CHECK(names.method(ForgedHotSpot::kMethod)->name == "𝒳.get");
  for (const char* const broken : {"\xed\xa0\xb5", "\xed\xb2\xb3", "\x80", "\xff", "a\xc3", "\xed\xa0\xb5x"}) {
    memory.put_text(ForgedHotSpot::kClassName, broken);
    CHECK_FALSE(names.method(ForgedHotSpot::kMethod));
  }
}

TEST_CASE("what is no method has no name") {
  const auto is_method = [](auto change) {
    ForgedHotSpot memory;
    change(memory);
    return HotSpotNames(memory, memory, memory.layout).method(ForgedHotSpot::kMethod).ok();
  };
  CHECK(is_method([](ForgedHotSpot&) {}));
  CHECK_FALSE(is_method([](ForgedHotSpot& memory) { memory.put<std::uint64_t>(ForgedHotSpot::kMethod + 8, 8); }));
  // The class has other constants.
  CHECK_FALSE(is_method([](ForgedHotSpot& memory) { memory.put<std::uint64_t>(ForgedHotSpot::kClass + 32, 8); }));
  // The name is a number.
  CHECK_FALSE(is_method([](ForgedHotSpot& memory) { memory.put<std::uint8_t>(ForgedHotSpot::kTags + 4 + 1, 3); }));
  // The name lies behind the constants.
  CHECK_FALSE(is_method([](ForgedHotSpot& memory) { memory.put<std::uint32_t>(ForgedHotSpot::kPool + 60, 1); }));
}

TEST_CASE("a place in compiled code has the methods that are described next, innermost first") {
  ForgedHotSpot memory;
  HotSpotNames names(memory, memory, memory.layout);
  const auto blob = names.code(ForgedHotSpot::kBlob);
  REQUIRE(blob);
  CHECK(blob->kind == HotSpotCodeKind::kCompiled);
  CHECK(blob->compile_id == 77);
  const std::uint64_t other = ForgedHotSpot::kMethod + 1000;
  const auto calls = [&](std::uint64_t offset) { return names.calls(*blob, blob->code + offset); };
  CHECK(calls(0).value() == std::vector<HotSpotCall>{{ForgedHotSpot::kMethod, 5}});
  CHECK(calls(0x10).value() == std::vector<HotSpotCall>{{ForgedHotSpot::kMethod, 5}});
  CHECK(calls(0x11).value() == std::vector<HotSpotCall>{{other, 2}, {ForgedHotSpot::kMethod, 9}});
  CHECK(calls(0x21).value() == std::vector<HotSpotCall>{{ForgedHotSpot::kMethod, HotSpotCall::kNotKnown}});
  CHECK_FALSE(names.calls(*blob, blob->code - 1));
}

TEST_CASE("the end of a loop belongs to its safepoint poll") {
  ForgedHotSpot memory;
  HotSpotNames names(memory, memory, memory.layout);
  const auto blob = names.code(ForgedHotSpot::kBlob);
  REQUIRE(blob);
  // The poll is at 0x10.
  const auto is_in_loop = [&](std::uint64_t offset) {
    return names.calls(*blob, blob->code + offset).value() == std::vector<HotSpotCall>{{ForgedHotSpot::kMethod, 5}};
  };
  const std::uint64_t poll = ForgedHotSpot::kCode + 0x10;
  memory.put_bytes(poll, {0x41, 0x85, 0x03, 0x48, 0x3b, 0xcd, 0x7c, 0xcd, 0x90});  // test, cmp, jl
  CHECK(is_in_loop(0x13));
  CHECK(is_in_loop(0x17));
  CHECK_FALSE(is_in_loop(0x18));
  memory.put_bytes(poll, {0x85, 0x05, 1, 2, 3, 4, 0x3b, 0xc8, 0x0f, 0x8c, 0, 0xff, 0xff, 0xff, 0x90});
  CHECK(is_in_loop(0x1d));
  CHECK_FALSE(is_in_loop(0x1e));
  // Forwards.
  memory.put_bytes(poll, {0x41, 0x85, 0x03, 0x48, 0x3b, 0xcd, 0x7c, 0x10, 0, 0, 0, 0, 0, 0, 0});
  CHECK_FALSE(is_in_loop(0x13));
  // A call.
  memory.put_bytes(poll, {0xe8, 1, 2, 3, 4, 0x48, 0x3b, 0xcd, 0x7c, 0xcd});
  CHECK_FALSE(is_in_loop(0x13));
}

TEST_CASE("a compiled method whose descriptions lead in a circle or elsewhere has no methods") {
  const auto has_calls = [](auto change) {
    ForgedHotSpot memory;
    change(memory);
    HotSpotNames names(memory, memory, memory.layout);
    const auto blob = names.code(ForgedHotSpot::kBlob);
    return blob && names.calls(*blob, blob->code + 0x20).ok();
  };
  CHECK(has_calls([](ForgedHotSpot&) {}));
  // The caller is the place itself.
  CHECK_FALSE(has_calls([](ForgedHotSpot& memory) { memory.put<std::uint8_t>(ForgedHotSpot::kScopes + 7, 7); }));
  // The method is not among the metadata.
  CHECK_FALSE(has_calls([](ForgedHotSpot& memory) { memory.put<std::uint8_t>(ForgedHotSpot::kScopes + 8, 9); }));
  // The outermost method is another one.
  CHECK_FALSE(has_calls([](ForgedHotSpot& memory) { memory.put<std::uint64_t>(ForgedHotSpot::kBlob + 112, 8); }));
}

/// Of the method of ForgedHotSpot.
std::uint64_t forged_check(ForgedHotSpot& memory) {
  std::array<std::uint64_t, 4> words{};
  REQUIRE(memory.read(ForgedHotSpot::kConstMethod + 8, std::as_writable_bytes(std::span(words))));
  return check_word(words);
}

TEST_CASE("an interpreted method has the bytecode that its frame says, if it is that method") {
  ForgedHotSpot memory;
  HotSpotNames names(memory, memory, memory.layout);
  constexpr std::uint64_t kMethod = ForgedHotSpot::kMethod;
  constexpr std::uint64_t kConstMethod = ForgedHotSpot::kConstMethod;
  constexpr std::uint64_t kBytecode = kConstMethod + 48;
  CHECK(names.const_method_of(kMethod) == kConstMethod);
  CHECK(names.const_method(kConstMethod).value().name == "java.util.Map$Node.get");
  const auto by_address = [&](std::uint64_t at) { return names.bytecode_of({kMethod, 0, at}, kConstMethod); };
  CHECK(by_address(kBytecode + 39).value() == 39);
  CHECK(by_address(0).value() == HotSpotCall::kEntry);
  CHECK_FALSE(by_address(kBytecode - 1));
  CHECK_FALSE(by_address(kBytecode + 40));
  const std::uint64_t check = forged_check(memory);
  const auto by_check = [&](std::uint64_t after) {
    return names.bytecode_of({kConstMethod, check, after}, kConstMethod);
  };
  CHECK(by_check(0).value() == HotSpotCall::kEntry);
  CHECK(by_check(40).value() == 39);
  CHECK(by_check(41).value() == HotSpotCall::kNotKnown);
  memory.put<std::uint16_t>(kConstMethod + 32, 39);
  CHECK_FALSE(by_check(1));
  CHECK_FALSE(names.bytecode_of({kMethod, 0, 0}, ForgedHotSpot::kStart - 8));
}

TEST_CASE("frames of the interpreter are read as the JVM's version has them") {
  const auto slots = [](std::uint32_t version) { return interpreter_slots(forged_hotspot_layout(version)); };
  REQUIRE(slots(8));
  CHECK(slots(8)->function == 3);
  CHECK(slots(8)->instruction == 7);
  CHECK(slots(8)->guard == 6);
  REQUIRE(slots(25));
  CHECK(slots(25)->instruction == 8);
  CHECK(slots(25)->guard == 7);
  CHECK(slots(25)->check.at == 8);
  CHECK(slots(25)->first_instruction == 48);
  CHECK(daemon::as_program_layout(*slots(25)));

  HotSpotLayout layout = forged_hotspot_layout(17);
  layout.methods.const_method = {};
  CHECK_FALSE(interpreter_slots(layout));
  layout = forged_hotspot_layout(17);
  layout.methods.constants.offset = 24;  // the words of the check would not be in it
  CHECK_FALSE(interpreter_slots(layout));
  layout.methods.const_method_bytes = 4096;
  CHECK_FALSE(interpreter_slots(layout));
}

TEST_CASE("a blob that was replaced is noticed") {
  ForgedHotSpot memory;
  HotSpotNames names(memory, memory, memory.layout);
  const auto blob = names.code(ForgedHotSpot::kBlob);
  REQUIRE(blob);
  CHECK(names.is_unchanged(*blob));
  memory.put<std::uint32_t>(ForgedHotSpot::kBlob + 200, 78);
  CHECK_FALSE(names.is_unchanged(*blob));
}

}  // namespace
}  // namespace flamed::runtimes
