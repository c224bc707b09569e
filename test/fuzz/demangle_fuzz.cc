// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a symbol's name, demangled and made printable.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "symbolizer/model/clean_name.h"
#include "symbolizer/reader/demangle.h"
#include "symbolizer/reader/short_name.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flamed::symbolizer;
  const std::string_view mangled(reinterpret_cast<const char*>(data), size);
  const DemangledName names = demangle(mangled);
  if (names.name.empty() && size != 0) std::abort();
  if (!names.full_name.empty() && names.name.size() > names.full_name.size()) std::abort();
  for (const std::string& name : {names.name, names.full_name}) {
    // The suffix of a compiler's copy is added to the demangled name.
    if (name != mangled && name.size() > kMaxDemangledBytes + kMaxMangledBytes + 16) std::abort();
    const std::string clean = clean_name(name);
    if (clean.size() > kMaxNameBytes) std::abort();
    for (const char c : clean) {
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) std::abort();
    }
    // Clean names do not change.
    if (clean_name(clean) != clean) std::abort();
  }
  // Shortens any text as a name.
  for (const NameLanguage language : {NameLanguage::kCpp, NameLanguage::kRust}) {
    if (short_name(mangled, language).size() > size + 3) std::abort();
  }
  return 0;
}
