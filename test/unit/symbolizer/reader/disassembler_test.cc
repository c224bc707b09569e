// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/reader/disassembler.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "symbolizer/reader/elf_symbol_reader.h"
#include "test/catch.h"
#include "test/unit/symbolizer/victims.h"

namespace flamed::symbolizer {
namespace {

using namespace std::string_view_literals;

ElfSymbols symbols_of(int fd) { return read_elf_symbols({fd}).value(); }

#if defined(__x86_64__)

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

/// Addresses of instructions, as objdump has them.
std::set<std::uint64_t> starts_by_objdump(const std::string& path) {
  std::set<std::uint64_t> starts;
  std::FILE* const out = ::popen(("objdump -d --no-show-raw-insn " + path).c_str(), "r");
  std::array<char, 1024> line{};
  while (out != nullptr && std::fgets(line.data(), line.size(), out) != nullptr) {
    std::uint64_t address = 0;
    char colon = 0;
    if (line[0] == ' ' && std::sscanf(line.data(), " %lx%c", &address, &colon) == 2 && colon == ':') {
      starts.insert(address);
    }
  }
  if (out != nullptr) ::pclose(out);
  return starts;
}

TEST_CASE("instructions of every function begin where objdump has them, and all have a text") {
  const std::string path = GENERATE(std::string(VICTIM_C), std::string(VICTIM_CPP), std::string(VICTIM_NO_PIE));
  const Fd file = open_victim(path.c_str());
  const ElfSymbols symbols = symbols_of(file.get());
  DisassemblyQuestion question;
  for (const auto& [name, offset] : truth_of(path.c_str())) {
    const auto function = symbols.function_at(offset + 1);
    REQUIRE(function);
    CHECK(function->start == offset);
    question.functions.push_back(*function);
  }
  REQUIRE_FALSE(question.functions.empty());
  const Disassembly disassembly = disassemble(file.get(), question).value();
  CHECK(disassembly.build_id == symbols.build_id());
  REQUIRE(disassembly.functions.size() == question.functions.size());
  const std::set<std::uint64_t> expected = starts_by_objdump(path);
  REQUIRE(expected.size() > 50);
  for (const FunctionCode& function : disassembly.functions) {
    CHECK(function.address == symbols.address_of(function.offset));
    std::uint64_t at = function.offset;
    std::set<std::uint64_t> starts;
    for (const Instruction& instruction : function.instructions) {
      CHECK(instruction.offset == at);
      CHECK_FALSE(instruction.text.empty());
      starts.insert(function.address + (instruction.offset - function.offset));
      at = instruction.end();
    }
    CHECK(at == function.offset + function.size);
    std::set<std::uint64_t> of_objdump(expected.lower_bound(function.address),
                                       expected.lower_bound(function.address + function.size));
    CHECK(starts == of_objdump);
  }
}

TEST_CASE("instructions are written in Intel's syntax") {
  const Disassembler disassembler(EM_X86_64);
  CHECK(disassembler.text(bytes("\x55"), 0) == "push rbp");
  CHECK(disassembler.text(bytes("\xe8\x0b\x00\x00\x00"sv), 0x1130) == "call 0x1140");
  // AVX-512, as in the string functions of a C library.
  CHECK(disassembler.text(bytes("\x62\xf1\xfe\x48\x6f\x06"), 0).starts_with("vmovdqu64 zmm0, "));
  CHECK(disassembler.length(bytes("\x62\xf1\xfe\x48\x6f\x06\x90")) == 6);
  CHECK(Disassembler(EM_386).text(bytes("\x40"), 0) == "inc eax");
}

TEST_CASE("what is no instruction is a byte without a text") {
  const Disassembler disassembler(EM_X86_64);
  CHECK(disassembler.length(bytes("\x06\x55")) == 1);
  CHECK(disassembler.text(bytes("\x06"), 0).empty());
  CHECK(disassembler.length(bytes("\xe8\x01")) == 1);  // cut off
}

/// A program whose one function is `code`.
Fd program_with(const std::string& code) {
  std::string image(sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr), '\0');
  Elf64_Ehdr header{};
  std::copy_n(ELFMAG, SELFMAG, header.e_ident);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_phoff = sizeof(header);
  header.e_ehsize = sizeof(header);
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 1;
  Elf64_Phdr segment{};
  segment.p_type = PT_LOAD;
  segment.p_flags = PF_R | PF_X;
  segment.p_offset = image.size();
  segment.p_vaddr = 0x10000 + image.size();
  segment.p_filesz = code.size();
  segment.p_memsz = code.size();
  std::memcpy(image.data(), &header, sizeof(header));
  std::memcpy(image.data() + sizeof(header), &segment, sizeof(segment));
  return file_with(image + code);
}
constexpr std::uint64_t kCodeAt = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr);

TEST_CASE("of a long function only the instructions near the places are shown, and each place has its own") {
  constexpr std::size_t kSize = 100'000;
  const Fd file = program_with(std::string(kSize, '\x90'));
  DisassemblyQuestion question{{{kCodeAt, kCodeAt + kSize}}, {kCodeAt, kCodeAt + 50'000, kCodeAt + kSize - 1}};
  const Disassembly disassembly = disassemble(file.get(), question).value();
  REQUIRE(disassembly.functions.size() == 1);
  const FunctionCode& function = disassembly.functions[0];
  CHECK(function.address == 0x10000 + kCodeAt);
  CHECK(function.size == kSize);
  constexpr std::size_t kContext = DisassemblyQuestion::kContext;
  CHECK(function.instructions.size() == (1 + kContext) + (1 + 2 * kContext) + (1 + kContext));
  for (const std::uint64_t place : question.places) {
    CHECK(std::any_of(function.instructions.begin(), function.instructions.end(),
                      [&](const Instruction& instruction) { return instruction.offset == place; }));
  }
}

TEST_CASE("a function outside of the file's code, or beyond the limit, has no instructions") {
  const Fd file = program_with("\x55\xc3");
  const DisassemblyQuestion question{{{0, 64},
                                      {kCodeAt, kCodeAt + 1000},
                                      {kCodeAt + 1000, kCodeAt + 2000},
                                      {kCodeAt, kCodeAt},
                                      {kCodeAt, kCodeAt + DisassemblyQuestion::kMostBytes + 1},
                                      {~std::uint64_t{0} - 1, ~std::uint64_t{0}}},
                                     {}};
  const Disassembly disassembly = disassemble(file.get(), question).value();
  REQUIRE(disassembly.functions.size() == question.functions.size());
  // The second one is cut at the end of the code.
  CHECK(disassembly.functions[1].instructions.size() == 2);
  for (const std::size_t i : {0U, 2U, 3U, 4U, 5U}) CHECK(disassembly.functions[i].instructions.empty());
}

#else

TEST_CASE("instructions of arm64 are addresses and bytes, 4 each") {
  const Fd file = open_victim(VICTIM_C);
  const ElfSymbols symbols = symbols_of(file.get());
  DisassemblyQuestion question;
  for (const auto& [name, offset] : truth_of(VICTIM_C)) {
    const auto function = symbols.function_at(offset);
    REQUIRE(function);
    question.functions.push_back(*function);
  }
  REQUIRE_FALSE(question.functions.empty());
  const Disassembly disassembly = disassemble(file.get(), question).value();
  for (const FunctionCode& function : disassembly.functions) {
    REQUIRE_FALSE(function.instructions.empty());
    CHECK(function.instructions.size() * 4 == function.size);
    for (std::size_t i = 0; i < function.instructions.size(); ++i) {
      CHECK(function.instructions[i].offset == function.offset + 4 * i);
      CHECK(function.instructions[i].bytes.size() == 4);
      CHECK(function.instructions[i].text.empty());
    }
  }
}

#endif

TEST_CASE("a file that is no program, or for a machine that is not read, is an error that says so") {
  const Fd text = file_with("no ELF file");
  CHECK_FALSE(disassemble(text.get(), {}));
  std::string other = bytes_of(VICTIM_C);
  other[offsetof(Elf64_Ehdr, e_machine)] = static_cast<char>(EM_RISCV);
  other[offsetof(Elf64_Ehdr, e_machine) + 1] = 0;
  const Result<Disassembly> refused = disassemble(file_with(other).get(), {});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message().find("243") != std::string::npos);
}

}  // namespace
}  // namespace flamed::symbolizer
