// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as an ELF file: the rows of single functions in it are one for each place, in order, and hold that place.
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/handle.h"
#include "symbolizer/reader/function_rows.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const flamed::Fd file(::memfd_create("function_rows_fuzz", MFD_CLOEXEC));
  if (::ftruncate(file.get(), 0) != 0 || ::pwrite(file.get(), data, size, 0) != static_cast<ssize_t>(size)) return 0;
  constexpr std::array<std::uint64_t, 6> kPlaces{0, 0x1000, 0x1001, 0x1139, 0x2000, UINT64_MAX};
  const auto functions = flamed::symbolizer::read_function_rows(file.get(), kPlaces);
  if (!functions) {
    if (functions.error().message().empty()) std::abort();
    return 0;
  }
  if (functions->size() != kPlaces.size()) std::abort();
  for (std::size_t i = 0; i < kPlaces.size(); ++i) {
    const auto& [base, rows, rules, stats] = (*functions)[i];
    if (rows.empty()) continue;
    if (base + rows.front().offset > kPlaces[i] || base + rows.back().offset <= kPlaces[i]) std::abort();
    for (const auto& row : rows) {
      if (row.rule.value >= rules.size()) std::abort();
    }
  }
  return 0;
}
