// SPDX-License-Identifier: Apache-2.0
#include "runtimes/python/names.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "runtimes/copied_memory.h"
#include "test/catch.h"
#include "test/unit/runtimes/forged_python.h"
#include "test/unit/runtimes/live_python.h"
#include "test/unit/runtimes/plain_walk.h"

namespace flamed::runtimes {
namespace {

std::string text_of(const std::vector<ShownFrame>& stack) {
  std::string text;
  for (const ShownFrame& frame : stack) {
    text += frame.name + " " + frame.file + ":" + std::to_string(frame.line) + "\n";
  }
  return text;
}

TEST_CASE("the stack of a running Python is the one that it shows itself, with names, files and lines") {
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
      INFO("Python " << module->layout.version.text() << " in " << module->path);

      ProcessMemory memory(process->pid());
      std::vector<ShownFrame> read;
      const auto frames = walk_linked_frames(memory, module->layout.frames, module->base, process->thread());
      for (const PlainFrame& frame : frames) {
        const auto function = read_python_function(memory, module->layout.objects, module->base, frame.code);
        if (!function) {
          read.push_back({function.error().message(), "", 0});
          continue;
        }
        read.push_back({function->name, function->file, function->line_at(frame.instruction)});
      }
      CHECK(text_of(read) == text_of(process->stack()));
      REQUIRE(frames.size() > 8);
      CHECK(frames.back().is_outermost_of_call);
      // sorted() calls __call__(), and what that calls needs no native code, except before 3.11.
      const bool is_joined_by_order = module->layout.frames.boundary_kind == LinkedFrames::Boundary::kEachFrame;
      CHECK(frames.front().is_outermost_of_call == is_joined_by_order);
    }
  }
}

/// Objects of a forged process: of version 3.12, loaded at 0x1000.
class ForgedMemory final : public RemoteMemory {
 public:
  static constexpr std::uint64_t kBase = 0x1000;
  static constexpr std::uint64_t kCode = 0x20000;
  static constexpr std::uint64_t kName = 0x30000;
  static constexpr std::uint64_t kFile = 0x40000;
  static constexpr std::uint64_t kLines = 0x50000;

  ForgedMemory() {
    layout.objects = kForgedPython;
    put<std::uint64_t>(kCode + 8, kBase + 0x100);
    put<std::uint64_t>(kCode + 128, kName);
    put<std::uint64_t>(kCode + 112, kFile);
    put<std::int32_t>(kCode + 68, 7);
    put<std::uint64_t>(kCode + 136, kLines);
    put_text(kName, "run", 0x64);
    put_text(kFile, "server.py", 0x64);
    put<std::uint64_t>(kLines + 8, kBase + 0x300);
    put<std::uint64_t>(kLines + 16, 1);
    put<std::uint8_t>(kLines + 32, 0xd7);  // eight instructions on the first line
  }

  bool read(std::uint64_t address, std::span<std::byte> to) override {
    if (++reads_ == fail_at) return false;
    if (address < kCode || address - kCode > kBytes || to.size() > kBytes - (address - kCode)) return false;
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(address - kCode), to.size(), to.begin());
    return true;
  }

  template <typename T>
  void put(std::uint64_t address, T value) {
    std::memcpy(&bytes_.at(address - kCode), &value, sizeof(value));
  }
  /// `text` is in characters of the size that `state` says.
  void put_text(std::uint64_t address, const std::string& text, std::uint32_t state) {
    put<std::uint64_t>(address + 8, kBase + 0x200);
    put<std::uint32_t>(address + 32, state);
    put<std::uint64_t>(address + 16, text.size() / (state >> 2 & 7));
    std::memcpy(&bytes_.at(address - kCode + ((state & 0x40) != 0 ? 40 : 56)), text.data(), text.size());
  }

  Result<RuntimeFunction> function() {
    reads_ = 0;
    return read_python_function(*this, layout.objects, kBase, kCode);
  }

  PythonLayout layout;
  int fail_at = 0;

 private:
  static constexpr std::size_t kBytes = 0x40000;
  std::vector<std::byte> bytes_ = std::vector<std::byte>(kBytes);
  int reads_ = 0;
};

TEST_CASE("a code object's name, file and first line are read") {
  const auto function = ForgedMemory().function();
  REQUIRE(function);
  CHECK(function->name == "run");
  CHECK(function->file == "server.py");
  CHECK(function->first_line == 7);
  CHECK(function->line_at(0) == 7);
}

TEST_CASE("strings of one, two and four bytes a character are read, and no part of a pair of surrogates") {
  ForgedMemory memory;
  memory.put_text(ForgedMemory::kName,
                  "Gr\xf6\xdf"
                  "e",
                  0x24);
  CHECK(memory.function()->name == "Größe");
  memory.put_text(ForgedMemory::kName, std::string("\xfd\x51\x80\xdc", 4), 0x28);
  CHECK(memory.function()->name == "函\xef\xbf\xbd");
  memory.put_text(ForgedMemory::kName, std::string("\x00\xf6\x01\x00\xff\xff\xff\xff", 8), 0x30);
  CHECK(memory.function()->name == "😀\xef\xbf\xbd");
}

TEST_CASE("a long text is cut at the end of a character") {
  ForgedMemory memory;
  memory.put_text(ForgedMemory::kName, "abc", 0x24);
  memory.put<std::uint64_t>(ForgedMemory::kName + 16, UINT64_MAX / 2);
  REQUIRE(memory.function());
  CHECK(memory.function()->name.size() == kMostTextBytes);
  std::string wide;
  for (std::size_t i = 0; i < kMostTextBytes; ++i) wide += std::string("\xfd\x51", 2);
  memory.put_text(ForgedMemory::kName, wide, 0x28);
  REQUIRE(memory.function());
  CHECK(memory.function()->name.size() == kMostTextBytes / 3 * 3);
}

TEST_CASE("an endless line table is read to its bound") {
  ForgedMemory memory;
  memory.put<std::uint64_t>(ForgedMemory::kLines + 16, UINT64_MAX);
  for (std::uint64_t at = 0; at < 0x1000; ++at) memory.put<std::uint8_t>(ForgedMemory::kLines + 32 + at, 0xd8);
  CHECK_FALSE(memory.function());  // so much is not there
  memory.put<std::uint64_t>(ForgedMemory::kLines + 16, 0x1000);
  REQUIRE(memory.function());
  CHECK(memory.function()->line_at(9) == 17);
}

TEST_CASE("a copy of a code object is enough, with the lines that it has whole entries of") {
  ForgedMemory memory;
  constexpr std::uint64_t kEntries = 300;
  memory.put<std::uint64_t>(ForgedMemory::kLines + 16, 3 * kEntries);
  for (std::uint64_t i = 0; i < kEntries; ++i) {
    memory.put<std::uint8_t>(ForgedMemory::kLines + 32 + 3 * i, 0xe8);  // one instruction, two lines further
    memory.put<std::uint8_t>(ForgedMemory::kLines + 33 + 3 * i, 4);
    memory.put<std::uint8_t>(ForgedMemory::kLines + 34 + 3 * i, 0);
  }
  constexpr std::array<std::uint64_t, 4> kParts{ForgedMemory::kCode, ForgedMemory::kName, ForgedMemory::kFile,
                                                ForgedMemory::kLines};
  std::array<std::array<std::byte, 256>, 4> bytes{};
  std::array<MemoryCopy, 4> copies;
  for (std::size_t i = 0; i < copies.size(); ++i) {
    REQUIRE(memory.read(kParts[i], bytes[i]));
    copies[i] = {kParts[i], bytes[i]};
  }
  CopiedMemory copied(copies);
  const auto read = [&] { return read_python_function(copied, memory.layout.objects, ForgedMemory::kBase, kParts[0]); };
  const auto function = read();
  REQUIRE(function);
  CHECK(function->name == "run");
  CHECK(function->file == "server.py");
  // 224 bytes are 74 entries and the beginning of another one.
  CHECK(function->line_at(73) == 7 + 2 * 74);
  CHECK(function->line_at(74) == 0);
  CHECK(memory.function()->line_at(74) == 7 + 2 * 75);

  // Where the table does not say how far it goes, a part of it is not used.
  memory.layout.objects.lines_kind = PythonLines::kLineNumbers;
  CHECK_FALSE(read());
  memory.layout.objects.lines_kind = PythonLines::kRanges;
  CHECK(read());
  copies[1].bytes = copies[1].bytes.first(41);
  CHECK_FALSE(read());
}

TEST_CASE("what is not a code object has no name, for a reason") {
  const auto why = [](ForgedMemory& memory) {
    const auto function = memory.function();
    return function ? "named " + function->name : function.error().message();
  };
  ForgedMemory memory;
  memory.put<std::uint64_t>(ForgedMemory::kCode + 8, ForgedMemory::kBase + 0x200);
  CHECK(why(memory) == "no code object");
  memory = ForgedMemory();
  memory.put<std::uint64_t>(ForgedMemory::kCode + 128, ForgedMemory::kLines);
  CHECK(why(memory) == "a code object without a name");
  memory = ForgedMemory();
  memory.put<std::uint64_t>(ForgedMemory::kName + 16, 0);
  CHECK(why(memory) == "a code object without a name");
  memory = ForgedMemory();
  memory.put<std::uint32_t>(ForgedMemory::kName + 32, 0x4c);  // characters of three bytes
  CHECK(why(memory) == "a code object without a name");
  memory = ForgedMemory();
  memory.put<std::uint64_t>(ForgedMemory::kCode + 112, UINT64_MAX - 4);
  CHECK(why(memory) == "a code object without a file");
  memory = ForgedMemory();
  memory.put<std::uint64_t>(ForgedMemory::kCode + 136, ForgedMemory::kName);
  CHECK(why(memory) == "a code object without lines");
}

TEST_CASE("memory that ends anywhere is an error") {
  for (int i = 1; i <= 7; ++i) {
    ForgedMemory memory;
    memory.fail_at = i;
    CHECK_FALSE(memory.function());
  }
}

TEST_CASE("a layout beyond what is read of an object finds nothing") {
  ForgedMemory memory;
  memory.layout.objects.name = 1000;
  CHECK_FALSE(memory.function());
}

}  // namespace
}  // namespace flamed::runtimes
