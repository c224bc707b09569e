// SPDX-License-Identifier: Apache-2.0
//
// ValueCodec: encodes and decodes the answers of a ModuleReader. Pure; any thread.
//
// The decoder reads bytes from a process that a file may have exploited. It checks everything that users of a value
// rely on: orders, references, terminators, limits. A decoded value may still be wrong about its own module, but about
// nothing else.
//
// Each value is decomposed by a structured binding, which does not compile any more when the type gets a new field:
// then add the field to both directions, and to value_codec_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "symbolizer/ipc/wire.h"
#include "symbolizer/model/container_file.h"
#include "symbolizer/model/demangled_name.h"
#include "symbolizer/model/disassembly.h"
#include "symbolizer/model/elf_facts.h"
#include "symbolizer/model/elf_symbols.h"
#include "symbolizer/model/function_ranges.h"
#include "symbolizer/model/hotspot_module.h"
#include "symbolizer/model/hotspot_names.h"
#include "symbolizer/model/runtime_module.h"
#include "symbolizer/model/source_chain.h"
#include "symbolizer/model/sourced_rows.h"
#include "symbolizer/model/symbol_table.h"
#include "unwinder/row.h"

namespace flamed::symbolizer {

class ValueCodec {
 public:
  /// Large arrays of `value` are not copied: it must outlive the writer's pieces.
  static void encode(WireWriter& to, const ElfFacts& value);
  static void encode(WireWriter& to, const SymbolTable& value);
  static void encode(WireWriter& to, const FunctionRanges& value);
  static void encode(WireWriter& to, const ElfSymbols& value);
  static void encode(WireWriter& to, const std::vector<SourceChain>& value);
  static void encode(WireWriter& to, const unwinder::UnwindRows& value);
  static void encode(WireWriter& to, const SourcedRows& value);
  static void encode(WireWriter& to, const std::vector<unwinder::UnwindRows>& value);
  static void encode(WireWriter& to, const std::vector<DemangledName>& value);
  static void encode(WireWriter& to, const std::optional<RuntimeModule>& value);
  static void encode(WireWriter& to, const std::vector<RuntimeAnswer>& value);
  static void encode(WireWriter& to, const std::optional<HotSpotModule>& value);
  static void encode(WireWriter& to, const runtimes::HotSpotCode& value);
  static void encode(WireWriter& to, const HotSpotNames& value);
  static void encode(WireWriter& to, const ContainerNames& value);
  static void encode(WireWriter& to, const Disassembly& value);

  /// False: the bytes are damaged or their source failed, see the reader; `value` is invalid.
  [[nodiscard]] static bool decode(WireReader& from, ElfFacts& value);
  [[nodiscard]] static bool decode(WireReader& from, SymbolTable& value);
  [[nodiscard]] static bool decode(WireReader& from, FunctionRanges& value);
  [[nodiscard]] static bool decode(WireReader& from, ElfSymbols& value);
  [[nodiscard]] static bool decode(WireReader& from, unwinder::UnwindRows& value);
  [[nodiscard]] static bool decode(WireReader& from, SourcedRows& value);
  /// `count` functions, chains or names were requested.
  [[nodiscard]] static bool decode(WireReader& from, std::vector<unwinder::UnwindRows>& value, std::size_t count);
  [[nodiscard]] static bool decode(WireReader& from, std::vector<SourceChain>& value, std::size_t count);
  [[nodiscard]] static bool decode(WireReader& from, std::vector<DemangledName>& value, std::size_t count);
  [[nodiscard]] static bool decode(WireReader& from, std::vector<RuntimeAnswer>& value, std::size_t count);
  [[nodiscard]] static bool decode(WireReader& from, std::optional<RuntimeModule>& value);
  [[nodiscard]] static bool decode(WireReader& from, std::optional<HotSpotModule>& value);
  [[nodiscard]] static bool decode(WireReader& from, runtimes::HotSpotCode& value);
  [[nodiscard]] static bool decode(WireReader& from, HotSpotNames& value, const HotSpotQuestion& question);
  [[nodiscard]] static bool decode(WireReader& from, ContainerNames& value);
  [[nodiscard]] static bool decode(WireReader& from, Disassembly& value, const DisassemblyQuestion& question);

  /// The limit of the daemon's memory for one answer of SourceChains. Texts are shared on the wire and not in memory,
  /// so a short answer could decode to gigabytes. encode() leaves chains beyond the limit empty.
  static constexpr std::size_t kMaxChainBytes = std::size_t{256} << 20;
};

}  // namespace flamed::symbolizer
