// SPDX-License-Identifier: Apache-2.0
//
// GoRecording: the tables that cut_go_tables.py extracted from a Go program. { text start, address of the function
// data, size of the line table: 64 bits each; line table; function data }
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "symbolizer/go/go_line_table.h"

namespace flamed::symbolizer {

/// Points into `bytes`. Parts that don't fit are empty.
inline GoParts go_recording(std::string_view bytes) {
  GoParts parts;
  std::uint64_t words[3] = {};
  if (bytes.size() < sizeof(words)) return parts;
  std::memcpy(words, bytes.data(), sizeof(words));
  parts.text_start = words[0];
  parts.function_data_address = words[1];
  parts.line_table = bytes.substr(sizeof(words), words[2]);
  parts.function_data = bytes.substr(sizeof(words) + parts.line_table.size());
  return parts;
}

}  // namespace flamed::symbolizer
