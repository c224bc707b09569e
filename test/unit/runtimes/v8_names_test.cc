// SPDX-License-Identifier: Apache-2.0
#include "runtimes/v8/names.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtimes/v8/positions.h"
#include "test/catch.h"

namespace flamed::runtimes {
namespace {

constexpr std::uint16_t kShared = 262;
constexpr std::uint16_t kScope = 261;
constexpr std::uint16_t kScript = 167;
constexpr std::uint16_t kBytecode = 191;
constexpr std::uint16_t kBytes = 190;
constexpr std::uint16_t kStream = 252;
constexpr std::uint16_t kCode = 245;
constexpr std::uint16_t kArray = 175;
constexpr std::uint16_t kOneByteString = 40;
constexpr std::uint16_t kTwoByteString = 32;
constexpr std::uint16_t kConcatenated = 41;
constexpr std::uint16_t kUndefined = 131;

V8Objects some_objects() {
  V8Objects objects;
  objects.map_instance_type = 12;
  objects.shared_data = 8;
  objects.shared_name = 16;
  objects.shared_script = 32;
  objects.shared_token_offset = 44;
  objects.scope_flags = 12;
  objects.scope_locals = 24;
  objects.scope_names = 32;
  objects.script_source = 8;
  objects.script_name = 16;
  objects.script_line_offset = 24;
  objects.bytecode_positions = 32;
  objects.array_length = 8;
  objects.array_data = 16;
  objects.string_length = 12;
  objects.string_text = 16;
  objects.string_first = 16;
  objects.string_second = 24;
  objects.string_actual = 16;
  objects.string_parent = 16;
  objects.string_offset = 24;
  objects.string_resource = 24;
  objects.code_head = 16;
  objects.code_descriptor = 8;
  objects.code_start = 40;
  objects.code_size = 56;
  objects.code_flags = 48;
  objects.code_data = 16;
  objects.code_positions = 24;
  objects.baseline_kind = 11;
  objects.data_shared = 64;
  objects.shared_type = kShared;
  objects.scope_type = kScope;
  objects.script_type = kScript;
  objects.bytecode_type = kBytecode;
  objects.position_type = kBytes;
  objects.code_type = kStream;
  objects.descriptor_type = kCode;
  return objects;
}

/// A function "run" from line 3 of /srv/app.js, whose bytecode is of the lines 3 and 4.
class Heap final : public RemoteMemory {
 public:
  static constexpr std::uint64_t kBase = 0x10000;
  static constexpr std::uint64_t kFunction = 0x20000;
  static constexpr std::uint64_t kScopeAt = 0x21000;
  static constexpr std::uint64_t kScriptAt = 0x22000;
  static constexpr std::uint64_t kNameAt = 0x23000;
  static constexpr std::uint64_t kSourceAt = 0x24000;
  static constexpr std::uint64_t kBytecodeAt = 0x25000;
  static constexpr std::uint64_t kPositionsAt = 0x26000;
  static constexpr std::uint64_t kFileAt = 0x27000;
  static constexpr std::uint64_t kInferredAt = 0x28000;
  static constexpr std::uint64_t kNoneAt = 0x29000;
  static constexpr std::uint64_t kMaps = 0x30000;

  Heap() {
    object(kFunction, kShared);
    tagged(kFunction + 8, kBytecodeAt);
    tagged(kFunction + 16, kScopeAt);
    tagged(kFunction + 32, kScriptAt);
    put<std::uint16_t>(kFunction + 44, 12);  // "function run"
    object(kScopeAt, kScope);
    put<std::uint32_t>(kScopeAt + 12, 3U << 12 | 1U << 14);
    small(kScopeAt + 24, 2);         // locals: two names and two numbers
    tagged(kScopeAt + 64, kNameAt);  // the function's name and a number
    tagged(kScopeAt + 80, kNoneAt);  // no inferred one
    small(kScopeAt + 88, 15 + 12);   // where its parameters begin
    object(kScriptAt, kScript);
    tagged(kScriptAt + 8, kSourceAt);
    tagged(kScriptAt + 16, kFileAt);
    small(kScriptAt + 24, 0);
    text(kNameAt, "run");
    text(kFileAt, "/srv/app.js");
    text(kSourceAt, "// one\r// two\r\nfunction run() {\n  spin();\n}\n");
    text(kInferredAt, "app.run");
    object(kNoneAt, kUndefined);
    object(kBytecodeAt, kBytecode);
    tagged(kBytecodeAt + 32, kPositionsAt);
    object(kPositionsAt, kBytes);
    // {-1, character 27}, {+7, character 34}, each times two for the lowest bits
    positions({{0, 2 * (27 + 1)}, {7, 2 * 7}});
  }

  bool read(std::uint64_t address, std::span<std::byte> to) override {
    if (on_read) on_read();
    if (address < kBase || address - kBase > bytes_.size() || to.size() > bytes_.size() - (address - kBase))
      return false;
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(address - kBase), to.size(), to.begin());
    return true;
  }

  template <typename T>
  void put(std::uint64_t address, T value) {
    std::memcpy(&bytes_.at(address - kBase), &value, sizeof(value));
  }
  void tagged(std::uint64_t at, std::uint64_t object) { put<std::uint64_t>(at, object + 1); }
  void small(std::uint64_t at, std::int32_t value) {
    put<std::uint64_t>(at, static_cast<std::uint64_t>(static_cast<std::uint32_t>(value)) << 32);
  }
  void object(std::uint64_t at, std::uint16_t type) {
    const std::uint64_t map = kMaps + std::uint64_t{type} * 64;
    tagged(at, map);
    put<std::uint16_t>(map + 12, type);
  }
  void text(std::uint64_t at, const std::string& text, std::uint16_t type = kOneByteString) {
    object(at, type);
    put<std::uint32_t>(at + 12, static_cast<std::uint32_t>(text.size() / (type == kTwoByteString ? 2 : 1)));
    std::memcpy(&bytes_.at(at + 16 - kBase), text.data(), text.size());
  }
  void positions(const std::vector<std::pair<std::int64_t, std::int64_t>>& steps) {
    std::uint64_t at = kPositionsAt + 16;
    const auto number = [&](std::int64_t value) {
      std::uint64_t bits = static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63);
      do {
        put<std::uint8_t>(at++, static_cast<std::uint8_t>((bits & 0x7f) | (bits > 0x7f ? 0x80 : 0)));
      } while ((bits >>= 7) != 0);
    };
    for (const auto& [instruction, source] : steps) {
      number(instruction);
      number(source);
    }
    small(kPositionsAt + 8, static_cast<std::int32_t>(at - kPositionsAt - 16));
  }

  std::function<void()> on_read;

 private:
  std::vector<std::byte> bytes_ = std::vector<std::byte>(0x40000);
};

Result<std::optional<RuntimeFunction>> function_of(Heap& heap) {
  const V8Objects objects = some_objects();
  return V8Reader(heap, objects).function(Heap::kFunction);
}

RuntimeFunction named(Heap& heap) {
  Result<std::optional<RuntimeFunction>> function = function_of(heap);
  if (!function) FAIL(function.error().message());
  REQUIRE(*function);
  return **function;
}

TEST_CASE("a function has its name, its file, its first line, and the lines of its bytecode") {
  Heap heap;
  const RuntimeFunction function = named(heap);
  CHECK(function.name == "run");
  CHECK(function.file == "/srv/app.js");
  CHECK(function.first_line == 3);
  CHECK(function.line_at(0) == 3);
  CHECK(function.line_at(5) == 3);
  CHECK(function.line_at(6) == 4);
  CHECK(function.line_at(100) == 4);
}

TEST_CASE("where V8 has kept no positions, there is only the first line") {
  Heap heap;
  heap.tagged(Heap::kBytecodeAt + 32, Heap::kNoneAt);
  CHECK(named(heap).line_at(100) == 3);
}

TEST_CASE("a function without a name has the one that V8 has inferred, or is anonymous") {
  Heap heap;
  heap.text(Heap::kNameAt, "");
  heap.tagged(Heap::kScopeAt + 80, Heap::kInferredAt);
  CHECK(named(heap).name == "app.run");
  heap.tagged(Heap::kScopeAt + 80, Heap::kNoneAt);
  CHECK(named(heap).name == "(anonymous)");
}

TEST_CASE("names of two bytes a character, and concatenated ones, are read") {
  Heap heap;
  heap.text(Heap::kNameAt, std::string("\x3d\xd8\x00\xde\xe9\x00", 6), kTwoByteString);
  CHECK(named(heap).name == "😀é");
  heap.object(Heap::kNameAt, kConcatenated);
  heap.put<std::uint32_t>(Heap::kNameAt + 12, 18);
  heap.tagged(Heap::kNameAt + 16, Heap::kFileAt);
  heap.tagged(Heap::kNameAt + 24, Heap::kInferredAt);
  CHECK(named(heap).name == "/srv/app.jsapp.run");
  heap.tagged(Heap::kNameAt + 16, Heap::kNameAt);  // a loop
  heap.tagged(Heap::kNameAt + 24, Heap::kNameAt);
  CHECK(named(heap).name == "(anonymous)");
}

TEST_CASE("code without a script is V8's own") {
  Heap heap;
  heap.tagged(Heap::kFunction + 32, Heap::kNoneAt);
  const auto function = function_of(heap);
  REQUIRE(function);
  CHECK_FALSE(*function);
}

TEST_CASE("what is no function, or is moved while it is read, has no name") {
  Heap heap;
  int reads = 0;
  heap.on_read = [&] { ++reads; };
  static_cast<void>(named(heap));
  const int all = reads;
  for (int at = 3; at < all; ++at) {
    Heap moved;
    int read = 0;
    moved.on_read = [&] {
      if (++read == at) moved.tagged(Heap::kFunction + 16, Heap::kFileAt);
    };
    CAPTURE(at, all);
    CHECK_FALSE(function_of(moved));
  }
  heap.object(Heap::kFunction, kScript);
  REQUIRE_FALSE(function_of(heap));
  CHECK(function_of(heap).error().message() == "no function");
}

TEST_CASE("compiled code is found from an instruction in it, and its function from what it was made of") {
  constexpr std::uint64_t kStart = 0x18000;
  constexpr std::uint64_t kDescriptorAt = 0x2a000;
  constexpr std::uint64_t kDataAt = 0x2b000;
  const V8Objects objects = some_objects();
  Heap heap;
  heap.object(kStart - 16, kStream);
  heap.tagged(kStart - 8, kDescriptorAt);
  heap.object(kDescriptorAt, kCode);
  heap.put<std::uint64_t>(kDescriptorAt + 40, kStart);
  heap.put<std::uint32_t>(kDescriptorAt + 48, 0x100 | 13);
  heap.put<std::uint32_t>(kDescriptorAt + 56, 0x5000);
  heap.object(kDataAt, kArray);
  heap.tagged(kDescriptorAt + 16, kDataAt);
  heap.tagged(kDataAt + 64, Heap::kFunction);
  V8Reader reader(heap, objects);
  for (const std::uint64_t pc : {kStart, kStart + 33, kStart + 0x4fff}) {
    const auto code = reader.code_at(pc, 0x77777);
    REQUIRE(code);
    CHECK(code->start == kStart);
    CHECK(code->size == 0x5000);
    CHECK(code->shared == Heap::kFunction);
  }
  CHECK_FALSE(reader.code_at(kStart + 0x5000, Heap::kFunction));
  CHECK_FALSE(reader.code_at(kStart - 1, Heap::kFunction));
  CHECK_FALSE(reader.code_at(0, 0));
  CHECK_FALSE(reader.code_at(UINT64_MAX, 0));
  // Baseline code does not know its function; the function knows it.
  heap.put<std::uint32_t>(kDescriptorAt + 48, 0x100 | 11);
  CHECK(reader.code_at(kStart, Heap::kFunction)->shared == 0);
  heap.tagged(Heap::kFunction + 8, kDescriptorAt);
  CHECK(reader.code_at(kStart, Heap::kFunction)->shared == Heap::kFunction);
  CHECK_FALSE(reader.code_at(kStart, Heap::kFunction)->is_own);
  // A regular expression's is of no function.
  heap.put<std::uint32_t>(kDescriptorAt + 48, 0x100 | 3);
  CHECK(reader.code_at(kStart, Heap::kFunction)->is_own);
  CHECK(reader.code_at(kStart, Heap::kFunction)->shared == 0);
}

TEST_CASE("where no function is expected, less memory is searched for code, and few objects in it are looked at") {
  constexpr std::uint64_t kPc = 0x3fff0;
  const V8Objects objects = some_objects();
  Heap heap;
  // As machine code may look like: the lowest bits are those of an address.
  for (std::uint64_t at = Heap::kBase; at < kPc; at += 16) heap.put<std::uint64_t>(at, 0x4889'0000'0000'0001);
  int reads = 0;
  heap.on_read = [&] { ++reads; };
  V8Reader reader(heap, objects);
  CHECK_FALSE(reader.code_at(kPc, Heap::kFunction));
  CHECK(reads < 100);
  const int of_all = std::exchange(reads, 0);
  CHECK_FALSE(reader.code_at(kPc, 0));
  CHECK(reads < of_all);
}

TEST_CASE("any bytes are a table of positions") {
  CHECK(read_v8_positions({}, 10).empty());
  const std::vector<std::byte> endless(100, std::byte{0xff});
  CHECK(read_v8_positions(endless, 10).empty());
  const std::vector<std::byte> zeros(100, std::byte{4});
  CHECK(read_v8_positions(zeros, 10).size() == 10);
}

}  // namespace
}  // namespace flamed::runtimes
