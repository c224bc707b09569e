// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as machine code: every byte is in exactly one instruction, and texts are short and printable. The first
// byte chooses whether they are code of x86-64, of x86-32, or an ELF file with functions at fixed places.
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "base/handle.h"
#include "symbolizer/reader/disassembler.h"

namespace {

using namespace flamed::symbolizer;

void check_text(const std::string& text) {
  if (text.size() > Disassembly::kMaxTextBytes) std::abort();
  if (!std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; })) std::abort();
}

void check_code(std::uint16_t machine, std::span<const std::byte> code) {
  const Disassembler disassembler(machine);
  for (std::size_t at = 0; at < code.size();) {
    const std::size_t length = disassembler.length(code.subspan(at));
    if (length == 0 || length > code.size() - at || length > Disassembly::kMaxInstructionBytes) std::abort();
    check_text(disassembler.text(code.subspan(at, length), 0x7fff'ffff'f000 + at));
    at += length;
  }
}

void check_file(std::span<const std::byte> bytes) {
  static const flamed::Fd file(::memfd_create("disassembler_fuzz", MFD_CLOEXEC));
  const auto size = static_cast<ssize_t>(bytes.size());
  if (::ftruncate(file.get(), 0) != 0 || ::pwrite(file.get(), bytes.data(), bytes.size(), 0) != size) return;
  static const DisassemblyQuestion kQuestion{
      {{0, 64}, {64, 4096}, {120, 8120}, {0x1000, 0x1139}, {0x1139, 0x1139}, {UINT64_MAX - 1, UINT64_MAX}},
      {0, 63, 64, 121, 0x1001, 0x1138, UINT64_MAX - 1}};
  const flamed::Result<Disassembly> disassembly = disassemble(file.get(), kQuestion);
  if (!disassembly) {
    if (disassembly.error().message().empty()) std::abort();
    return;
  }
  if (disassembly->functions.size() != kQuestion.functions.size()) std::abort();
  for (std::size_t i = 0; i < kQuestion.functions.size(); ++i) {
    const flamed::FunctionCode& function = disassembly->functions[i];
    const auto& [start, end] = kQuestion.functions[i];
    if (function.offset != start || function.size > end - start) std::abort();
    std::uint64_t at = start;
    for (const flamed::Instruction& instruction : function.instructions) {
      if (instruction.offset < at || instruction.bytes.empty() || instruction.end() > start + function.size)
        std::abort();
      check_text(instruction.text);
      at = instruction.end();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  switch (data[0] % 3) {
    case 0:
      check_code(EM_X86_64, bytes);
      break;
    case 1:
      check_code(EM_386, bytes);
      break;
    default:
      check_file(bytes);
      break;
  }
  return 0;
}
