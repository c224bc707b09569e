// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/names/vdso_symbols.h"

#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

#include <cstring>

#include "test/catch.h"

namespace flamed::symbolizer {
namespace {

TEST_CASE("the mapping that holds an address is found, its end excluded") {
  const char* maps =
      "garbage\n"
      "1000-2000 r-xp 00000000 00:00 0   [vdso]\n"
      "2000-3000 r--p 00000000 00:00 0   [vvar]";
  REQUIRE(mapping_that_holds(maps, 0x1fff));
  CHECK(mapping_that_holds(maps, 0x1fff)->start == 0x1000);
  CHECK(mapping_that_holds(maps, 0x2000)->end == 0x3000);
  CHECK_FALSE(mapping_that_holds(maps, 0x3000));
  CHECK_FALSE(mapping_that_holds("", 0));
}

TEST_CASE("this process's vdso names its clock function") {
  const std::uint64_t base = ::getauxval(AT_SYSINFO_EHDR);
  if (base == 0) {
    WARN("SKIP vdso: this kernel maps no vdso");
    return;
  }
  const Result<ElfSymbols> vdso = read_vdso_symbols();
  INFO((vdso.ok() ? std::string() : vdso.error().message()));
  REQUIRE(vdso.ok());
  // The expected place is the one in the vdso's own dynamic symbol table, which the test reads itself.
  const char* image = reinterpret_cast<const char*>(base);  // NOLINT(performance-no-int-to-ptr)
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(image);
  const auto* sections = reinterpret_cast<const ElfW(Shdr)*>(image + header->e_shoff);
  int checked = 0;
  for (int i = 0; i < header->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_DYNSYM) continue;
    const auto* symbols = reinterpret_cast<const ElfW(Sym)*>(image + sections[i].sh_offset);
    const char* strings = image + sections[sections[i].sh_link].sh_offset;
    for (std::size_t s = 1; s < sections[i].sh_size / sizeof(ElfW(Sym)); ++s) {
      const std::string name = strings + symbols[s].st_name;
      if (name.find("clock_gettime") == std::string::npos) continue;
      const auto found = vdso->find(symbols[s].st_value + 1);
      REQUIRE(found);
      CHECK(std::string(found->name).find("clock_gettime") != std::string::npos);
      CHECK(found->offset == 1);
      ++checked;
    }
  }
  CHECK(checked > 0);
}

}  // namespace
}  // namespace flamed::symbolizer
