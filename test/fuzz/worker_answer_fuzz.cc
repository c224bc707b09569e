// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as an answer of the ELF worker: damage, or a valid value that is equal after it is encoded and decoded
// again. The first byte chooses the kind of value, the second how many were requested.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

#include "symbolizer/worker/value_codec.h"

namespace {

using namespace flamed::symbolizer;
namespace unwinder = flamed::unwinder;
using Bytes = std::vector<std::byte>;

void use(const SymbolTable& table) {
  for (std::uint64_t address = 0; address < 0x4000; address += 61) {
    const auto found = table.find(address);
    if (found && (found->name.empty() || found->offset > address)) std::abort();
  }
  static_cast<void>(table.find(UINT64_MAX));
}
void use(const ElfSymbols& symbols) {
  use(symbols.parts().table);
  const FunctionRanges& unnamed = symbols.parts().unnamed;
  for (std::uint64_t address = 0; address < 0x4000; address += 61) {
    const auto function = unnamed.find(address);
    if (function && (!function->holds(address) || unnamed.end_of(address) != function->end)) std::abort();
    static_cast<void>(symbols.find_unnamed(address));
  }
  static_cast<void>(unnamed.find(UINT64_MAX));
}
void use(const unwinder::UnwindRows& rows) {
  for (std::uint64_t address = 0; address < 0x4000; address += 61) static_cast<void>(rows.find(address));
  static_cast<void>(rows.find(UINT64_MAX));
}
void use(const SourcedRows& rows) { use(rows.rows); }
void use(const ElfFacts& facts) {
  if (facts.debug_link.find('/') != std::string::npos) std::abort();
}
void use(const std::vector<SourceChain>& chains) { static_cast<void>(chains); }
void use(const Disassembly& disassembly) {
  for (const auto& function : disassembly.functions) {
    for (const auto& instruction : function.instructions) {
      if (instruction.offset < function.offset || instruction.end() > function.offset + function.size) std::abort();
    }
  }
}
void use(const std::vector<DemangledName>& names) { static_cast<void>(names); }
void use(const ContainerNames& names) {
  for (const std::string& name : {names.name, names.pod, names.pod_namespace}) {
    if (name.size() > kMaxContainerNameBytes || name.find_first_of("/\n\x1b") != std::string::npos) std::abort();
  }
}

template <typename T, typename Decode>
void arrive(std::span<const std::byte> bytes, Decode decode) {
  T value;
  MemorySource source(bytes);
  WireReader reader(source, bytes.size());
  const bool good = decode(reader, value) && reader.finished();
  if (good != (reader.damage() == nullptr)) std::abort();
  if (!good) return;
  use(value);

  WireWriter writer;
  ValueCodec::encode(writer, value);
  const Bytes again = writer.bytes();
  T other;
  MemorySource other_source(again);
  WireReader other_reader(other_source, again.size());
  if (!decode(other_reader, other) || !other_reader.finished()) std::abort();
  WireWriter third;
  ValueCodec::encode(third, other);
  if (third.bytes() != again) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::size_t count = data[1];
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(2);
  const auto plain = [](WireReader& from, auto& value) { return ValueCodec::decode(from, value); };
  const auto counted = [&](WireReader& from, auto& value) { return ValueCodec::decode(from, value, count); };
  const DisassemblyQuestion question{{{0x40, 0x80}, {0x100, 0x100 + count}}, {}};
  const auto of_functions = [&](WireReader& from, auto& value) { return ValueCodec::decode(from, value, question); };
  switch (data[0] % 9) {
    case 0:
      arrive<ElfFacts>(bytes, plain);
      break;
    case 1:
      arrive<SymbolTable>(bytes, plain);
      break;
    case 2:
      arrive<ElfSymbols>(bytes, plain);
      break;
    case 3:
      arrive<unwinder::UnwindRows>(bytes, plain);
      break;
    case 4:
      arrive<std::vector<SourceChain>>(bytes, counted);
      break;
    case 5:
      arrive<SourcedRows>(bytes, plain);
      break;
    case 6:
      arrive<Disassembly>(bytes, of_functions);
      break;
    case 7:
      arrive<std::vector<DemangledName>>(bytes, counted);
      break;
    default:
      arrive<ContainerNames>(bytes, plain);
      break;
  }
  return 0;
}
