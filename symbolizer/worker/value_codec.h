// SPDX-License-Identifier: Apache-2.0
//
// ValueCodec: what a ModuleReader answers, to bytes and back. Pure; any thread.
//
// Decoding is where the daemon meets what a process says that may have been taken over by a file. Everything that the
// users of a value rely on is checked: orders, references, terminators, limits. What comes through may still be a lie
// about the module that was asked for, and about nothing else.
//
// Each value is taken apart by a structured binding, which stops compiling when the type gains a field: then the field
// has to be added to both directions, and to value_codec_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "symbolizer/ipc/wire.h"
#include "symbolizer/model/demangled_name.h"
#include "symbolizer/model/elf_facts.h"
#include "symbolizer/model/elf_symbols.h"
#include "symbolizer/model/source_chain.h"
#include "symbolizer/model/symbol_table.h"
#include "unwinder/row.h"

namespace flamed::symbolizer {

class ValueCodec {
 public:
  /// Large arrays of `value` are not copied: it must outlive what is made of the writer.
  static void encode(WireWriter& to, const ElfFacts& value);
  static void encode(WireWriter& to, const SymbolTable& value);
  static void encode(WireWriter& to, const ElfSymbols& value);
  static void encode(WireWriter& to, const std::vector<SourceChain>& value);
  static void encode(WireWriter& to, const unwinder::UnwindRows& value);
  static void encode(WireWriter& to, const std::vector<DemangledName>& value);

  /// False: the bytes are damaged or their source failed; the reader says which, and `value` is of no use.
  [[nodiscard]] static bool decode(WireReader& from, ElfFacts& value);
  [[nodiscard]] static bool decode(WireReader& from, SymbolTable& value);
  [[nodiscard]] static bool decode(WireReader& from, ElfSymbols& value);
  [[nodiscard]] static bool decode(WireReader& from, unwinder::UnwindRows& value);
  /// One chain or name was asked for `count` times.
  [[nodiscard]] static bool decode(WireReader& from, std::vector<SourceChain>& value, std::size_t count);
  [[nodiscard]] static bool decode(WireReader& from, std::vector<DemangledName>& value, std::size_t count);

  /// What names, files and frames of one answer of SourceChains may take in the daemon's memory. Texts are shared on
  /// the wire and not in memory, so a short answer could stand for gigabytes. encode() leaves what is beyond it empty.
  static constexpr std::size_t kMaxChainBytes = std::size_t{256} << 20;
};

}  // namespace flamed::symbolizer
