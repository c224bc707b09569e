// SPDX-License-Identifier: Apache-2.0
//
// A forged JVM: its tables, and a code heap of three blocks.
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "runtimes/hotspot/code_heap.h"
#include "runtimes/hotspot/detect.h"
#include "test/catch.h"
#include "test/unit/runtimes/forged_memory.h"

namespace flamed::runtimes {
namespace {

constexpr std::uint64_t kBase = 0x7f0000000000;
constexpr std::uint64_t kEntries = kBase + 0x10000;
constexpr std::uint64_t kTypes = kBase + 0x20000;
constexpr std::uint64_t kNames = kBase + 0x30000;
constexpr std::uint64_t kVariables = 0x40000;  // of the module
constexpr std::uint64_t kObjects = kBase + 0x50000;
constexpr std::uint64_t kHeap = 0x7e0000000000;
constexpr std::uint64_t kSegment = 128;

/// A JVM that describes itself like one of JDK 17.
class ForgedJvm {
 public:
  ForgedJvm() {
    // An entry: type, field, type of the field, is it static, offset, address.
    const std::uint64_t offsets[] = {0, 8, 16, 24, 32, 40};
    std::uint64_t* const places[] = {&tables_.type_name, &tables_.field_name, &tables_.type_string,
                                     &tables_.is_static, &tables_.offset,     &tables_.address};
    for (std::size_t i = 0; i < 6; ++i) *places[i] = variable(offsets[i]);
    tables_.structures = {variable(kEntries), variable(48)};
    tables_.types = {variable(kTypes), variable(16)};
    tables_.size_type_name = variable(0);
    tables_.size = variable(8);
    add("GrowableArrayBase", "_len", "int", 0);
    add("GrowableArray<int>", "_data", "int*", 8);
    add("CodeHeap", "_memory", "VirtualSpace", 8);
    add("CodeHeap", "_segmap", "VirtualSpace", 72);
    add("CodeHeap", "_log2_segment_size", "int", 136);
    add("VirtualSpace", "_low", "char*", 16);
    add("VirtualSpace", "_high", "char*", 24);
    add("VirtualSpace", "_high_boundary", "char*", 8);
    add("HeapBlock::Header", "_length", "size_t", 0);
    add("HeapBlock::Header", "_used", "bool", 8);
    add("CodeBlob", "_name", "const char*", 96);
    add("CodeBlob", "_size", "int", 12);
    add("CodeBlob", "_frame_size", "int", 28);
    add("CodeBlob", "_frame_complete_offset", "int", 20);
    add("CodeBlob", "_code_begin", "address", 32);
    add("CodeBlob", "_code_end", "address", 40);
    add("nmethod", "_compile_id", "int", 128);
    add("nmethod", "_state", "volatile signed char", 132);
    add("StubQueue", "_stub_buffer", "address", 8);
    add("StubQueue", "_buffer_limit", "int", 20);
    add_static("CodeCache", "_heaps", heaps_at_ = variable(kObjects));
    add_static("AbstractInterpreter", "_code", variable(0));
    add_static("Abstract_VM_Version", "_s_vm_release", variable(text("17.0.15+6")));
    major_at_ = variable(17);
    add_static("Abstract_VM_Version", "_vm_major_version", major_at_);
    memory.clear(kEntries + entries_ * 48, 48);
    memory.write(kTypes, text("HeapBlock"));
    memory.write(kTypes + 8, std::uint64_t{16});
    memory.clear(kTypes + 16, 16);

    memory.write(kObjects, std::int32_t{1});
    memory.write(kObjects + 8, kObjects + 16);
    memory.write(kObjects + 16, kObjects + 32);
    memory.write(kObjects + 32 + 136, std::int32_t{7});
    set_range(kHeap, kHeap + 64 * kSegment, kHeap + 256 * kSegment);
    memory.clear(kHeap, 64 * kSegment);
    put(0, 4, "nmethod", 8, 100);
    put(4, 4, "StubRoutines (1)", 0, 0);
    put(8, 8, "nmethod", 8, 101);
  }

  void set_range(std::uint64_t low, std::uint64_t high, std::uint64_t end) {
    memory.write(kObjects + 32 + 8 + 16, low);
    memory.write(kObjects + 32 + 8 + 24, high);
    memory.write(kObjects + 32 + 8 + 8, end);
  }
  /// A block from a segment on, with code that sets up a frame of 64 bytes.
  void put(std::uint64_t segment, std::uint64_t segments, std::string_view name, std::int32_t frame_words,
           std::int32_t compile_id) {
    const std::uint64_t block = kHeap + segment * kSegment;
    const std::uint64_t blob = block + 16;
    memory.write(block, segments);
    memory.write(block + 8, std::uint8_t{1});
    memory.write(blob + 12, static_cast<std::int32_t>(segments * kSegment - 16));
    memory.write(blob + 20, std::int32_t{5});
    memory.write(blob + 28, frame_words);
    memory.write(blob + 32, blob + 160);
    memory.write(blob + 40, blob + 200);
    memory.write(blob + 96, text(name));
    memory.write(blob + 128, compile_id);
    memory.write(blob + 132, std::int8_t{0});
    const std::array<std::uint8_t, 11> code{0x55, 0x48, 0x83, 0xec, 0x30, 0x48, 0x83, 0xc4, 0x30, 0x5d, 0xc3};
    memory.write_bytes(blob + 160, code);
  }

  [[nodiscard]] Result<HotSpotLayout> layout() { return read_hotspot_layout(memory, tables_, kBase); }
  [[nodiscard]] Result<HotSpotCode> code(std::span<const HotSpotKnownBlob> known = {}) {
    const Result<HotSpotLayout> found = layout();
    if (!found) return found.error();
    return read_hotspot_code(memory, *found, kBase, known);
  }

  ForgedMemory memory;
  [[nodiscard]] std::uint64_t heaps_at() const { return kBase + heaps_at_; }
  [[nodiscard]] const HotSpotTables& tables() const { return tables_; }

 private:
  std::uint64_t text(std::string_view text) {
    const std::uint64_t at = next_name_;
    memory.write_text(at, text);
    // Whole pages are read.
    next_name_ += 128;
    memory.clear(at + text.size() + 1, 128 - text.size() - 1);
    return at;
  }
  std::uint64_t variable(std::uint64_t value) {
    const std::uint64_t at = kVariables + 8 * variables_++;
    memory.write(kBase + at, value);
    return at;
  }
  void add(std::string_view type, std::string_view field, std::string_view of, std::uint64_t offset) {
    put_entry(type, field, of, 0, offset, 0);
  }
  void add_static(std::string_view type, std::string_view field, std::uint64_t variable) {
    put_entry(type, field, "address", 1, 0, kBase + variable);
  }
  void put_entry(std::string_view type, std::string_view field, std::string_view of, std::int32_t is_static,
                 std::uint64_t offset, std::uint64_t address) {
    const std::uint64_t at = kEntries + 48 * entries_++;
    memory.write(at, text(type));
    memory.write(at + 8, text(field));
    memory.write(at + 16, text(of));
    memory.write(at + 24, std::uint64_t(is_static));
    memory.write(at + 32, offset);
    memory.write(at + 40, address);
  }

  HotSpotTables tables_;
  std::uint64_t next_name_ = kNames;
  std::uint64_t variables_ = 0;
  std::uint64_t entries_ = 0;
  std::uint64_t heaps_at_ = 0;
  std::uint64_t major_at_ = 0;
};

/// Page reads must not fail at the edges of what was written.
ForgedJvm& with_pages(ForgedJvm& jvm) {
  for (const std::uint64_t at : {kEntries, kTypes, kNames, kBase + kVariables, kObjects}) {
    for (std::uint64_t i = 0; i < 0x4000; ++i) {
      std::byte byte{};
      if (!jvm.memory.read(at + i, std::span(&byte, 1))) jvm.memory.write(at + i, '\0');
    }
  }
  return jvm;
}

TEST_CASE("a JVM's layout is read from its own tables") {
  ForgedJvm jvm;
  const Result<HotSpotLayout> layout = with_pages(jvm).layout();
  REQUIRE(layout);
  CHECK(layout->version == 17);
  CHECK(layout->release_text() == "17.0.15+6");
  CHECK(layout->blobs.name == HotSpotPlace{96, 8});
  CHECK(layout->blobs.bytes == HotSpotPlace{12, 4});
  CHECK(layout->heaps.block_segments == HotSpotPlace{0, 8});
  CHECK(layout->heaps.block_is_used == HotSpotPlace{8, 1});
  CHECK(layout->heaps.block_head_bytes == 16);
  CHECK(kBase + layout->heaps.heaps == jvm.heaps_at());
  CHECK_FALSE(layout->blobs.code_offset.is_there());
}

TEST_CASE("a JVM without a part of its tables says what is missing, and one that is being loaded that") {
  ForgedJvm jvm;
  with_pages(jvm);
  SECTION("a member") {
    jvm.memory.write(kEntries + 48 * 13, std::uint64_t{0});  // the table ends before the frame's size
    const Result<HotSpotLayout> layout = jvm.layout();
    REQUIRE(!layout);
    CHECK(layout.error().code() == 0);
    CHECK(layout.error().message().find("version") != std::string::npos);
  }
  SECTION("constructors have not run") {
    jvm.memory.write(kBase + jvm.tables().structures.stride, std::uint64_t{0});
    const Result<HotSpotLayout> layout = jvm.layout();
    REQUIRE(!layout);
    CHECK(layout.error().code() == EBUSY);
  }
  SECTION("an endless table") {
    jvm.memory.write(kBase + jvm.tables().structures.stride, std::uint64_t{1});
    CHECK(!jvm.layout());
  }
}

TEST_CASE("the code of a heap is found with its rows") {
  ForgedJvm jvm;
  const Result<HotSpotCode> code = with_pages(jvm).code();
  REQUIRE(code);
  REQUIRE(code->heaps.size() == 1);
  CHECK(code->heaps[0].low == kHeap);
  CHECK(code->heaps[0].end == kHeap + 256 * kSegment);
  REQUIRE(code->blobs.size() == 3);
  const HotSpotBlob& method = code->blobs[2];
  CHECK(method.kind == HotSpotCodeKind::kCompiled);
  CHECK(method.compile_id == 101);
  CHECK(method.address == kHeap + 8 * kSegment + 16);
  CHECK(method.code_begin == method.address + 160);
  CHECK(method.code_end == method.address + 200);
  REQUIRE(method.row_count > 3);
  CHECK(code->rows[method.first_row].offset == 0);
  CHECK(code->rules[code->rows[method.first_row + 2].rule.value].cfa_offset == 64);
  CHECK(code->blobs[1].kind == HotSpotCodeKind::kStub);
  CHECK(code->blobs[1].compile_id == 0);
}

TEST_CASE("code that is known is not read again") {
  ForgedJvm jvm;
  with_pages(jvm);
  Result<HotSpotCode> code = jvm.code();
  REQUIRE(code);
  std::vector<HotSpotKnownBlob> known;
  for (const HotSpotBlob& blob : code->blobs) known.push_back({blob.address, blob.bytes, blob.compile_id});
  jvm.put(8, 8, "nmethod", 8, 102);  // other code at the same place
  code = jvm.code(known);
  REQUIRE(code);
  REQUIRE(code->blobs.size() == 3);
  CHECK(code->blobs[0].is_known == 1);
  CHECK(code->blobs[0].row_count == 0);
  CHECK(code->blobs[1].is_known == 1);
  CHECK(code->blobs[2].is_known == 0);
  CHECK(code->blobs[2].row_count > 0);
}

TEST_CASE("what does not look like code is left out, and the rest is read") {
  ForgedJvm jvm;
  with_pages(jvm);
  const std::uint64_t first = kHeap + 16;
  SECTION("a free block") { jvm.memory.write(kHeap + 8, std::uint8_t{0}); }
  SECTION("a method that is not installed yet") { jvm.memory.write(first + 132, std::int8_t{-1}); }
  SECTION("code outside of its block") { jvm.memory.write(first + 40, first + 100'000); }
  SECTION("code that ends before it begins") { jvm.memory.write(first + 40, first + 100); }
  SECTION("more bytes than the block") { jvm.memory.write(first + 12, std::int32_t{100'000}); }
  SECTION("a name that can't be read") { jvm.memory.write(first + 96, std::uint64_t{8}); }
  const Result<HotSpotCode> code = jvm.code();
  REQUIRE(code);
  CHECK(code->blobs.size() == 2);
}

TEST_CASE("a damaged heap is an error, or ends where it is damaged") {
  ForgedJvm jvm;
  with_pages(jvm);
  SECTION("a block without a length") {
    jvm.memory.write(kHeap + 4 * kSegment, std::uint64_t{0});
    CHECK(jvm.code()->blobs.size() == 1);
  }
  SECTION("a block that is longer than the heap") {
    jvm.memory.write(kHeap + 4 * kSegment, ~std::uint64_t{0});
    CHECK(jvm.code()->blobs.size() == 1);
  }
  SECTION("a heap that ends before it begins") {
    jvm.set_range(kHeap, kHeap - 1, kHeap);
    CHECK(!jvm.code());
  }
  SECTION("a heap of 1 TiB") {
    jvm.set_range(kHeap, kHeap + kSegment, kHeap + (std::uint64_t{1} << 40));
    CHECK(!jvm.code());
  }
  SECTION("too many heaps") {
    jvm.memory.write(kObjects, std::int32_t{1000});
    CHECK(!jvm.code());
  }
  SECTION("none yet") {
    jvm.memory.write(kObjects, std::int32_t{0});
    const Result<HotSpotCode> code = jvm.code();
    REQUIRE(!code);
    CHECK(code.error().code() == EBUSY);
  }
}

}  // namespace
}  // namespace flamed::runtimes
