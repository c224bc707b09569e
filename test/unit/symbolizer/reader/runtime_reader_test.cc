// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/reader/runtime_reader.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/handle.h"
#include "runtimes/code_check.h"
#include "symbolizer/reader/open_memory.h"
#include "test/catch.h"
#include "test/unit/runtimes/forged_python.h"

namespace flamed::symbolizer {
namespace {

/// A process's memory with code objects of CPython 3.12, in a file.
class ForgedProcess {
 public:
  static constexpr std::uint64_t kBase = 0x1000;

  ForgedProcess() {
    REQUIRE(memory_);
    process.kind = runtimes::RuntimeKind::kPython;
    process.base = kBase;
    process.python = runtimes::kForgedPython;
    process.check = {.at = 64, .words = 10, .name = 128, .file = 112, .text = 40};
    put_text(kFile, "server.py");
    put<std::uint64_t>(kLines + 8, kBase + 0x300);
    put<std::uint64_t>(kLines + 16, 1);
    put<std::uint8_t>(kLines + 32, 0xd7);
  }

  /// As a sample meets it.
  RuntimeCode put_code(std::uint64_t address, std::string_view name) {
    const std::uint64_t text = address + 0x200;
    put_text(text, name);
    put<std::uint64_t>(address + 8, kBase + 0x100);
    put<std::int32_t>(address + 68, 7);
    put<std::uint64_t>(address + 112, kFile);
    put<std::uint64_t>(address + 128, text);
    put<std::uint64_t>(address + 136, kLines);
    OpenMemory memory(memory_.get());
    return {address, runtimes::read_check_word(memory, process.check, address), 0};
  }
  void put_text(std::uint64_t address, std::string_view text) {
    put<std::uint64_t>(address + 8, kBase + 0x200);
    put<std::uint64_t>(address + 16, text.size());
    put<std::uint64_t>(address + 24, std::hash<std::string_view>()(text));
    put<std::uint32_t>(address + 32, 0x64);
    write(address + 40, std::as_bytes(std::span(text)));
  }
  template <typename T>
  void put(std::uint64_t address, T value) {
    write(address, std::as_bytes(std::span(&value, 1)));
  }

  [[nodiscard]] std::vector<RuntimeAnswer> read(std::span<const RuntimeCode> codes,
                                                std::span<const CopiedCode> copies = {}) const {
    return read_runtime_functions(memory_.get(), process, codes, copies);
  }
  /// What the kernel program copies of it.
  [[nodiscard]] CopiedCode copy(const RuntimeCode& code) const {
    CopiedCode copy{code, {}, {}};
    const std::array<std::uint64_t, CopiedCode::kParts> places{code.address, code.address + 0x200, kFile, kLines};
    for (std::size_t i = 0; i < places.size(); ++i) {
      copy.places[i] = {places[i], CopiedCode::kPartBytes};
      OpenMemory memory(memory_.get());
      REQUIRE(memory.read(places[i], copy.parts[i]));
    }
    return copy;
  }

  RuntimeProcess process;

 private:
  static constexpr std::uint64_t kFile = 0x40000;
  static constexpr std::uint64_t kLines = 0x50000;

  void write(std::uint64_t address, std::span<const std::byte> bytes) {
    REQUIRE(::pwrite(memory_.get(), bytes.data(), bytes.size(), static_cast<off_t>(address)) ==
            static_cast<ssize_t>(bytes.size()));
    REQUIRE(::ftruncate(memory_.get(), 0x100000) == 0);
  }

  Fd memory_{::memfd_create("forged", MFD_CLOEXEC)};
};

TEST_CASE("code objects are read at once, each with its own name") {
  ForgedProcess process;
  std::vector<RuntimeCode> codes;
  for (std::uint64_t i = 0; i < 20; ++i) {
    codes.push_back(process.put_code(0x20000 + i * 0x340, "function_" + std::to_string(i)));
  }
  const std::vector<RuntimeAnswer> answers = process.read(codes);
  REQUIRE(answers.size() == codes.size());
  for (std::size_t i = 0; i < answers.size(); ++i) {
    CHECK(answers[i].function.name == "function_" + std::to_string(i));
    CHECK(answers[i].function.file == "server.py");
    CHECK(answers[i].function.first_line == 7);
    CHECK(answers[i].why_not.empty());
  }
}

TEST_CASE("a code object that has taken another one's place does not get its name") {
  ForgedProcess process;
  const RuntimeCode stays = process.put_code(0x20000, "stays");
  const RuntimeCode goes = process.put_code(0x21000, "goes");
  const CopiedCode copy = process.copy(goes);
  const RuntimeCode comes = process.put_code(0x21000, "comes");
  REQUIRE(goes.check != comes.check);
  const std::array codes{stays, goes, comes};
  const std::vector<RuntimeAnswer> answers = process.read(codes);
  REQUIRE(answers.size() == codes.size());
  CHECK(answers[0].function.name == "stays");
  CHECK(answers[1].function.name.empty());
  CHECK(answers[1].why_not == "another one is at its address by now");
  CHECK(answers[2].function.name == "comes");

  // Its copy, which was made when a sample met it, still tells.
  const std::vector<RuntimeAnswer> with_copy = process.read(codes, std::span(&copy, 1));
  CHECK(with_copy[1].function.name == "goes");
  CHECK(with_copy[2].function.name == "comes");
}

TEST_CASE("a copy of a code object that is not the one that was met is not used") {
  ForgedProcess process;
  RuntimeCode code = process.put_code(0x20000, "run");
  CopiedCode copy = process.copy(code);
  code.check ^= 2;
  copy.code = code;
  const std::vector<RuntimeAnswer> answers = process.read(std::span(&code, 1), std::span(&copy, 1));
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].function.name.empty());
  CHECK(answers[0].why_not == "another one is at its address by now");
}

}  // namespace
}  // namespace flamed::symbolizer
