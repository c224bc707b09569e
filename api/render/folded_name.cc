// SPDX-License-Identifier: Apache-2.0
#include "api/render/folded_name.h"

#include "api/text/utf8.h"

namespace flamed::api {

std::string folded_name(std::string_view raw) {
  if (raw.empty()) return "[unnamed]";
  std::string name = repair_utf8(raw);
  for (char& c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == ';') c = ':';
    if (byte < 0x20 || byte == 0x7F) c = '_';
  }
  return name;
}

}  // namespace flamed::api
