// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/reader/disassembler.h"

#include <elf.h>
#include <gelf.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "symbolizer/elf/elf_input.h"
#include "symbolizer/elf/elf_sections.h"

#if defined(__x86_64__)
#include <Zydis/Zydis.h>
#endif

namespace flamed::symbolizer {
namespace {

#if defined(__x86_64__)
ZydisDecoder decoder_of(std::uint16_t machine) {
  ZydisDecoder decoder;
  if (machine == EM_386) {
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LEGACY_32, ZYDIS_STACK_WIDTH_32);
  } else {
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  }
  return decoder;
}

ZydisFormatter formatter() {
  ZydisFormatter formatter;
  // Its AT&T syntax has wrong suffixes, such as vmovdqu64z.
  ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
  ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE);
  // Targets of jumps and calls are absolute addresses without leading zeroes.
  ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE, ZYDIS_PADDING_DISABLED);
  return formatter;
}
#else
constexpr std::size_t kArm64InstructionBytes = 4;
#endif

}  // namespace

bool Disassembler::knows_machine() const {
#if defined(__x86_64__)
  return machine_ == EM_X86_64 || machine_ == EM_386;
#else
  return machine_ == EM_AARCH64;
#endif
}

bool Disassembler::has_text() const { return knows_machine() && machine_ != EM_AARCH64; }

std::size_t Disassembler::length(std::span<const std::byte> code) const {
#if defined(__x86_64__)
  const ZydisDecoder decoder = decoder_of(machine_);
  ZydisDecodedInstruction instruction;
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, nullptr, code.data(), code.size(), &instruction))) return 1;
  return instruction.length;
#else
  return std::min(kArm64InstructionBytes, code.size());
#endif
}

std::string Disassembler::text([[maybe_unused]] std::span<const std::byte> code,
                               [[maybe_unused]] std::uint64_t address) const {
#if defined(__x86_64__)
  const ZydisDecoder decoder = decoder_of(machine_);
  static const ZydisFormatter kFormatter = formatter();
  ZydisDecodedInstruction instruction;
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands{};
  std::array<char, Disassembly::kMaxTextBytes + 1> text{};
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code.data(), code.size(), &instruction, operands.data())) ||
      !ZYAN_SUCCESS(ZydisFormatterFormatInstruction(&kFormatter, &instruction, operands.data(),
                                                    instruction.operand_count_visible, text.data(), text.size(),
                                                    address, nullptr))) {
    return {};
  }
  return text.data();
#else
  return {};
#endif
}

namespace {

/// The bytes of a function, and where they are.
struct Code {
  std::vector<std::byte> bytes;
  std::uint64_t address = 0;
};

std::optional<Code> read_code(const ElfSections& file, const CodeRange& function) {
  if (function.end <= function.start || function.end - function.start > DisassemblyQuestion::kMostBytes) return {};
  for (const GElf_Phdr& segment : file.segments()) {
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    if (function.start < segment.p_offset || function.start - segment.p_offset >= segment.p_filesz) continue;
    const std::uint64_t skip = function.start - segment.p_offset;
    Code code;
    code.address = segment.p_vaddr + skip;
    code.bytes.resize(std::min(function.end - function.start, segment.p_filesz - skip));
    if (!file.input().read(function.start, code.bytes.data(), code.bytes.size())) return {};
    return code;
  }
  return {};
}

/// Which of the instructions that begin at `starts` are shown.
std::vector<bool> shown_of(std::span<const std::uint64_t> starts, std::uint64_t end,
                           std::span<const std::uint64_t> places, std::size_t shown_before) {
  const bool has_room = shown_before < DisassemblyQuestion::kMostShown;
  if (has_room && starts.size() <= DisassemblyQuestion::kMostWhole) return std::vector<bool>(starts.size(), true);
  std::vector<bool> shown(starts.size(), false);
  const std::size_t context = has_room ? DisassemblyQuestion::kContext : 0;
  for (auto place = std::lower_bound(places.begin(), places.end(), starts.front());
       place != places.end() && *place < end; ++place) {
    const auto next = static_cast<std::size_t>(std::upper_bound(starts.begin(), starts.end(), *place) - starts.begin());
    const std::size_t first = next - 1 - std::min(context, next - 1);
    const std::size_t last = std::min(next + context, starts.size());
    std::fill(shown.begin() + static_cast<std::ptrdiff_t>(first), shown.begin() + static_cast<std::ptrdiff_t>(last),
              true);
  }
  return shown;
}

void add_instructions(const Disassembler& disassembler, const Code& code, std::span<const std::uint64_t> places,
                      std::size_t& shown_so_far, FunctionCode& function) {
  const std::span<const std::byte> bytes(code.bytes);
  std::vector<std::uint64_t> starts;
  for (std::size_t at = 0; at < bytes.size(); at += disassembler.length(bytes.subspan(at))) {
    starts.push_back(function.offset + at);
  }
  const std::uint64_t end = function.offset + bytes.size();
  const std::vector<bool> shown = shown_of(starts, end, places, shown_so_far);
  for (std::size_t i = 0; i < starts.size(); ++i) {
    if (!shown[i]) continue;
    const std::uint64_t next = i + 1 < starts.size() ? starts[i + 1] : end;
    const std::span<const std::byte> own = bytes.subspan(starts[i] - function.offset, next - starts[i]);
    function.instructions.push_back(
        {starts[i], std::string(reinterpret_cast<const char*>(own.data()), own.size()),
         disassembler.has_text() ? disassembler.text(own, code.address + (starts[i] - function.offset)) : ""});
  }
  shown_so_far += function.instructions.size();
}

}  // namespace

Result<Disassembly> disassemble(int fd, const DisassemblyQuestion& question) {
  Result<ElfSections> file = ElfSections::open(fd);
  if (!file) return file.error();
  if (Status status = file->check_loadable(); !status) return std::move(status).error();
  const Disassembler disassembler(file->header().e_machine);
  if (!disassembler.knows_machine()) {
    return Error("it is for a machine (" + std::to_string(file->header().e_machine) + ") whose code is not read here");
  }
  Disassembly disassembly;
  disassembly.build_id = file->build_id();
  std::uint64_t left = DisassemblyQuestion::kMostBytes;
  std::size_t shown = 0;
  for (const CodeRange& range : question.functions) {
    FunctionCode& function = disassembly.functions.emplace_back();
    function.offset = range.start;
    const std::optional<Code> code = read_code(*file, range);
    if (!code || code->bytes.size() > left) continue;
    left -= code->bytes.size();
    function.size = code->bytes.size();
    function.address = code->address;
    add_instructions(disassembler, *code, question.places, shown, function);
  }
  return disassembly;
}

}  // namespace flamed::symbolizer
