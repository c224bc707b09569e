// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a module with debug information, and as the file that it shares a part with: chains within the limits or
// an error, never a crash.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "base/handle.h"
#include "symbolizer/dwarf/source_locator.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using flamed::symbolizer::SourceChain;
  static const flamed::Fd file(::memfd_create("source_locator_fuzz", MFD_CLOEXEC));
  if (::ftruncate(file.get(), 0) != 0 || ::pwrite(file.get(), data, size, 0) != static_cast<ssize_t>(size)) return 0;
  // The corpus has its code in the first 2 KiB.
  std::vector<std::uint64_t> offsets;
  for (std::uint64_t offset = 0; offset < 0x800; offset += 7) offsets.push_back(offset);
  offsets.push_back(UINT64_MAX);
  const auto chains = flamed::symbolizer::locate_sources({file.get(), -1, file.get()}, offsets);
  if (!chains.ok()) {
    if (chains.error().message().empty()) std::abort();
    return 0;
  }
  if (chains->size() != offsets.size()) std::abort();
  for (const SourceChain& chain : *chains) {
    if (!chain.empty() && chain.front().inlined) std::abort();
    for (std::size_t i = 1; i < chain.size(); ++i) {
      if (!chain[i].inlined) std::abort();
    }
  }
  return 0;
}
