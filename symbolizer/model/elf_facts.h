// SPDX-License-Identifier: Apache-2.0
//
// ElfFacts: the facts of an ELF file that are needed to find its debug files.
#pragma once

#include <cstdint>
#include <string>

namespace flamed::symbolizer {

struct ElfFacts {
  std::string build_id;    ///< in hex; empty: none
  std::string debug_link;  ///< file name in .gnu_debuglink, without directories; empty: none
  std::uint32_t debug_link_crc = 0;
  std::string alternate_link;      ///< path in .gnu_debugaltlink; empty: none
  std::string alternate_build_id;  ///< of the file at that path, in hex
  bool has_symtab = false;
  bool has_debug_info = false;
  bool has_mini_debug_info = false;  ///< .gnu_debugdata
  bool is_go = false;                ///< has code of the Go compiler

  friend bool operator==(const ElfFacts&, const ElfFacts&) = default;
};

}  // namespace flamed::symbolizer
