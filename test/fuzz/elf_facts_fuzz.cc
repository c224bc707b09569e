// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as an ELF file whose debug file is looked for: no name leads to another folder.
#include "symbolizer/elf/elf_facts_reader.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/handle.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flamed;
  static const Fd file(::memfd_create("elf_facts_fuzz", MFD_CLOEXEC));
  if (::ftruncate(file.get(), 0) != 0 || ::pwrite(file.get(), data, size, 0) != static_cast<ssize_t>(size)) return 0;
  const Result<symbolizer::ElfFacts> facts = symbolizer::read_elf_facts(file.get());
  if (!facts.ok()) {
    if (facts.error().message().empty()) std::abort();
    return 0;
  }
  if (facts->debug_link.find('/') != std::string::npos || facts->debug_link == "..") std::abort();
  for (const std::string& id : {facts->build_id, facts->alternate_build_id}) {
    if (id.size() > 128 || id.find_first_not_of("0123456789abcdef") != std::string::npos) std::abort();
  }
  for (const std::string& name : {facts->debug_link, facts->alternate_link}) {
    for (const char c : name) {
      if (static_cast<unsigned char>(c) < 0x20) std::abort();
    }
  }
  return 0;
}
