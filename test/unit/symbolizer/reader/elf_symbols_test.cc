// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/reader/elf_symbol_reader.h"

#include <elf.h>

#include <cstring>
#include <functional>

#include "test/catch.h"
#include "test/unit/symbolizer/victims.h"

namespace flamed::symbolizer {
namespace {

ElfSymbols symbols_of(const char* victim) { return read_elf_symbols({open_victim(victim).get()}).value(); }

std::string name_at(const ElfSymbols& symbols, std::uint64_t offset) {
  const auto found = symbols.find(offset);
  return found ? std::string(found->name) : "-";
}

TEST_CASE("the functions of a position-independent program are where the running program says") {
  const Truth truth = truth_of(VICTIM_C);
  REQUIRE(truth.size() >= 3);
  const ElfSymbols symbols = symbols_of(VICTIM_C);
  CHECK(symbols.source() == ElfSymbols::Source::kSymtab);
  for (const auto& [name, offset] : truth) {
    if (name == "victim_exported") continue;  // has aliases
    CHECK(name_at(symbols, offset) == name);
    CHECK(symbols.find(offset + 1)->offset == 1);
  }
}

TEST_CASE("the functions of a static-pie are where the running program says") {
  const Truth truth = truth_of(VICTIM_STATIC_PIE);
  REQUIRE(truth.size() >= 3);
  const ElfSymbols symbols = symbols_of(VICTIM_STATIC_PIE);
  for (const auto& [name, offset] : truth) {
    if (name != "victim_exported") CHECK(name_at(symbols, offset) == name);
  }
}

TEST_CASE("of a function and its aliases the shortest name without underscores is shown") {
  CHECK(name_at(symbols_of(VICTIM_C), truth_of(VICTIM_C).at("victim_exported")) == "victim_alias");
}

TEST_CASE("a program stripped to its dynamic symbols has only its exported names") {
  const Truth truth = truth_of(VICTIM_STRIPPED);
  const ElfSymbols symbols = symbols_of(VICTIM_STRIPPED);
  CHECK(symbols.source() == ElfSymbols::Source::kDynsym);
  CHECK(name_at(symbols, truth.at("victim_exported")) == "victim_alias");
  CHECK(name_at(symbols, truth.at("main")) == "main");
  CHECK(name_at(symbols, truth.at("victim_private")) == "-");
}

TEST_CASE("a function without a symbol is found by its first byte, one with a symbol is not") {
  for (const char* victim : {VICTIM_STRIPPED, VICTIM_NAMELESS}) {
    const Truth truth = truth_of(victim);
    const ElfSymbols symbols = symbols_of(victim);
    const std::uint64_t start = truth.at("victim_private");
    for (const std::uint64_t into : {0U, 1U, 2U}) CHECK(symbols.find_unnamed(start + into) == start);
  }
  const Truth truth = truth_of(VICTIM_STRIPPED);
  CHECK_FALSE(symbols_of(VICTIM_STRIPPED).find_unnamed(truth.at("main")).has_value());
  CHECK(symbols_of(VICTIM_NAMELESS).find_unnamed(truth_of(VICTIM_NAMELESS).at("main") + 1) ==
        truth_of(VICTIM_NAMELESS).at("main"));
  CHECK_FALSE(symbols_of(VICTIM_NAMELESS).find_unnamed(0).has_value());
  CHECK_FALSE(symbols_of(VICTIM_NAMELESS).find_unnamed(UINT64_MAX).has_value());
}

TEST_CASE("the ranges of functions are kept only where there are no names, and count as memory") {
  const ElfSymbols named = symbols_of(VICTIM_C);
  const ElfSymbols nameless = symbols_of(VICTIM_NAMELESS);
  CHECK(named.parts().unnamed.size() < nameless.parts().unnamed.size());
  CHECK(nameless.parts().unnamed.size() >= 4);
  ElfSymbols::Parts without = nameless.parts();
  without.unnamed = {};
  CHECK(nameless.bytes() >= ElfSymbols(without).bytes() + 8 * nameless.parts().unnamed.size());
}

TEST_CASE("a program without function symbols is no error") {
  const Result<ElfSymbols> symbols = read_elf_symbols({open_victim(VICTIM_NAMELESS).get()});
  REQUIRE(symbols.ok());
  CHECK(symbols->source() == ElfSymbols::Source::kNone);
  CHECK(name_at(*symbols, truth_of(VICTIM_NAMELESS).at("main")) == "-");
}

#if defined(__x86_64__)
TEST_CASE("a label of assembly without type and size reaches to the next function") {
  const Truth truth = truth_of(VICTIM_C);
  const ElfSymbols symbols = symbols_of(VICTIM_C);
  CHECK(name_at(symbols, truth.at("victim_label")) == "victim_label");
  CHECK(name_at(symbols, truth.at("victim_after_label") - 1) == "victim_label");
  CHECK(name_at(symbols, truth.at("victim_after_label")) == "victim_after_label");
}

TEST_CASE("a label without a size does not name functions behind it that have no symbol") {
  const Truth truth = truth_of(VICTIM_STRIPPED);
  const ElfSymbols symbols = symbols_of(VICTIM_STRIPPED);
  const std::uint64_t described = truth.at("victim_described");
  CHECK(name_at(symbols, truth.at("victim_open_label")) == "victim_open_label");
  CHECK(name_at(symbols, described - 1) == "victim_open_label");
  CHECK(name_at(symbols, described) == "-");
  CHECK(symbols.find_unnamed(described + 2) == described);
}
#endif

TEST_CASE("a stub of the procedure linkage table has the name of the function that it calls") {
  for (const char* victim : {VICTIM_NO_PIE, VICTIM_NO_PIE_IBT}) {
    const Truth truth = truth_of(victim);
    REQUIRE(truth.count("getppid@plt") == 1);
    CHECK(name_at(symbols_of(victim), truth.at("getppid@plt")) == "getppid@plt");
  }
}

TEST_CASE("the build-id is read") {
  CHECK(symbols_of(VICTIM_C).build_id() == "00112233445566778899aabbccddeeff01234567");
  CHECK(symbols_of(VICTIM_NAMELESS).build_id().empty());
}

TEST_CASE("an offset outside the code has no name") {
  const ElfSymbols symbols = symbols_of(VICTIM_C);
  CHECK(name_at(symbols, 0) == "-");
  CHECK(name_at(symbols, UINT64_MAX) == "-");
  CHECK(name_at(symbols, std::uint64_t{1} << 40) == "-");
}

TEST_CASE("the descriptor's position in the file doesn't matter, and doesn't change") {
  const Fd fd = open_victim(VICTIM_C);
  REQUIRE(::lseek(fd.get(), 1234, SEEK_SET) == 1234);
  CHECK(read_elf_symbols({fd.get()}).ok());
  CHECK(::lseek(fd.get(), 0, SEEK_CUR) == 1234);
}

TEST_CASE("an image in memory has the same symbols as the file") {
  const std::string bytes = bytes_of(VICTIM_C);
  const Result<ElfSymbols> symbols = read_elf_symbols(std::as_bytes(std::span(bytes)));
  REQUIRE(symbols.ok());
  CHECK(symbols->size() == symbols_of(VICTIM_C).size());
}

// The tests below read invalid files.

/// The error for a file of `bytes`. A descriptor and memory must have the same one.
std::string error_for(const std::string& bytes) {
  const Fd fd = file_with(bytes);
  const Result<ElfSymbols> from_file = read_elf_symbols({fd.get()});
  const Result<ElfSymbols> from_memory = read_elf_symbols(std::as_bytes(std::span(bytes)));
  REQUIRE(from_file.ok() == from_memory.ok());
  if (from_file.ok()) return "";
  CHECK(from_file.error().message() == from_memory.error().message());
  return from_file.error().message();
}

/// The victim after `change` modified its headers.
std::string changed(const std::function<void(Elf64_Ehdr&, Elf64_Shdr*)>& change) {
  std::string bytes = bytes_of(VICTIM_C);
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  const std::size_t sections_at = header.e_shoff;
  std::memcpy(sections.data(), bytes.data() + sections_at, sections.size() * sizeof(Elf64_Shdr));
  change(header, sections.data());
  std::memcpy(bytes.data(), &header, sizeof(header));
  std::memcpy(bytes.data() + sections_at, sections.data(), sections.size() * sizeof(Elf64_Shdr));
  return bytes;
}

Elf64_Shdr& of_type(Elf64_Shdr* sections, Elf64_Word type) {
  while (sections->sh_type != type) ++sections;
  return *sections;
}

bool mentions(const std::string& message, const char* what) { return message.find(what) != std::string::npos; }

TEST_CASE("a file that is not ELF is reported as such") {
  CHECK(error_for("") == "the file is empty");
  CHECK(error_for("x") == "not an ELF file");
  CHECK(error_for("#!/bin/sh\necho hello, this is a longer script than an ELF header is\n") == "not an ELF file");
  CHECK(mentions(error_for("\177ELF"), "truncated"));
  CHECK(mentions(error_for("!<arch>\n"), "not an ELF file"));
}

TEST_CASE("a descriptor of a file that is not regular is refused") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const Fd reading(ends[0]);
  const Fd writing(ends[1]);
  CHECK(read_elf_symbols({reading.get()}).error().message() == "not a regular file");
  CHECK_FALSE(read_elf_symbols(ModuleFiles{}).ok());
}

TEST_CASE("a file of another byte order is refused") {
  CHECK(mentions(error_for(changed([](auto& h, auto*) { h.e_ident[EI_DATA] = ELFDATA2MSB; })), "byte order"));
}

TEST_CASE("an object file is refused") {
  CHECK(mentions(error_for(changed([](auto& h, auto*) { h.e_type = ET_REL; })), "neither a program"));
}

TEST_CASE("a file truncated anywhere gives an error or fewer symbols, never a crash") {
  const std::string whole = bytes_of(VICTIM_C);
  for (std::size_t bytes = 0; bytes < whole.size(); bytes += 1 + bytes / 50) {
    static_cast<void>(error_for(whole.substr(0, bytes)));
  }
  CHECK(mentions(error_for(whole.substr(0, whole.size() / 2)), "truncated"));
}

TEST_CASE("section headers outside the file are an error") {
  CHECK(mentions(error_for(changed([](auto& h, auto*) { h.e_shoff = std::uint64_t{1} << 62; })), "outside the file"));
  CHECK(mentions(error_for(changed([](auto& h, auto*) { h.e_shnum = 60'000; })), "don't fit"));
  CHECK(mentions(error_for(changed([](auto& h, auto*) { h.e_shentsize = 1; })), "wrong size"));
}

TEST_CASE("a count of sections in section 0 is not trusted") {
  const std::string bytes = changed([](auto& h, auto* sections) {
    h.e_shnum = 0;
    sections[0].sh_size = std::uint64_t{1} << 32;
  });
  CHECK(mentions(error_for(bytes), "4294967296 sections"));
}

TEST_CASE("program headers outside the file are an error") {
  CHECK(mentions(error_for(changed([](auto& h, auto*) { h.e_phoff = UINT64_MAX; })), "program headers"));
  CHECK(mentions(error_for(changed([](auto& h, auto*) { h.e_phnum = 60'000; })), "program headers"));
  const std::string bytes = changed([](auto& h, auto* sections) {
    h.e_phnum = PN_XNUM;
    sections[0].sh_info = 0xffffffff;
  });
  CHECK(mentions(error_for(bytes), "4294967295 program headers"));
}

TEST_CASE("a symbol table that claims 4 GiB is an error that says so") {
  const std::string bytes =
      changed([](auto&, auto* sections) { of_type(sections, SHT_SYMTAB).sh_size = std::uint64_t{4} << 30; });
  CHECK(mentions(error_for(bytes), ".symtab: truncated or damaged: a section of 4294967296 bytes"));
}

TEST_CASE("a symbol table larger than the limit is an error even if a sparse file holds it") {
  const std::string bytes = changed([](auto&, auto* sections) {
    of_type(sections, SHT_SYMTAB).sh_offset = 0;
    of_type(sections, SHT_SYMTAB).sh_size = std::uint64_t{240} << 20;
  });
  const Fd fd = file_with(bytes);
  REQUIRE(::ftruncate(fd.get(), off_t{1} << 30) == 0);
  const Result<ElfSymbols> symbols = read_elf_symbols({fd.get()});
  REQUIRE_FALSE(symbols.ok());
  CHECK(mentions(symbols.error().message(), "larger than the limit"));
}

TEST_CASE("a symbol table without a valid string table is an error") {
  const auto with_link = [](Elf64_Word link) {
    return changed([&](auto&, auto* sections) { of_type(sections, SHT_SYMTAB).sh_link = link; });
  };
  CHECK(mentions(error_for(with_link(0)), "no section holds its names"));
  CHECK(mentions(error_for(with_link(0xffffffff)), "no section holds its names"));
  CHECK(mentions(error_for(with_link(1)), "without strings"));
}

TEST_CASE("an empty symbol table falls back to the dynamic symbols") {
  const std::string bytes = changed([](auto&, auto* sections) { of_type(sections, SHT_SYMTAB).sh_size = 0; });
  CHECK(error_for(bytes).empty());
}

TEST_CASE("a compressed symbol table is an error") {
  const std::string bytes =
      changed([](auto&, auto* sections) { of_type(sections, SHT_SYMTAB).sh_flags |= SHF_COMPRESSED; });
  CHECK(mentions(error_for(bytes), "compressed"));
}

TEST_CASE("symbols whose names lie outside the string table are left out") {
  const std::string bytes = changed([](auto& h, auto* sections) {
    Elf64_Shdr& symtab = of_type(sections, SHT_SYMTAB);
    sections[symtab.sh_link].sh_size = 1;
    static_cast<void>(h);
  });
  CHECK(error_for(bytes).empty());
}

TEST_CASE("a file without section headers has no symbols but still its build-id") {
  const std::string bytes = changed([](auto& h, auto*) {
    h.e_shoff = 0;
    h.e_shnum = 0;
    h.e_shstrndx = 0;
  });
  const Result<ElfSymbols> symbols = read_elf_symbols({file_with(bytes).get()});
  REQUIRE(symbols.ok());
  CHECK(symbols->source() == ElfSymbols::Source::kNone);
  CHECK(symbols->build_id() == "00112233445566778899aabbccddeeff01234567");
  // PT_GNU_EH_FRAME leads to .eh_frame.
  const std::uint64_t start = truth_of(VICTIM_C).at("main");
  CHECK(symbols->find_unnamed(start + 1) == start);
}

TEST_CASE("any byte of the headers may be wrong without a crash") {
  const std::string whole = bytes_of(VICTIM_NAMELESS);
  Elf64_Ehdr header;
  std::memcpy(&header, whole.data(), sizeof(header));
  const auto damage = [&](std::size_t from, std::size_t bytes, std::size_t step) {
    for (std::size_t at = from; at < from + bytes && at < whole.size(); at += step) {
      for (const char value : {'\x00', '\x7f', '\xff'}) {
        std::string bad = whole;
        bad[at] = value;
        static_cast<void>(read_elf_symbols(std::as_bytes(std::span(bad))));
      }
    }
  };
  damage(0, sizeof(header), 1);
  damage(header.e_phoff, std::size_t{header.e_phnum} * header.e_phentsize, 3);
  damage(header.e_shoff, std::size_t{header.e_shnum} * header.e_shentsize, 3);
  SUCCEED("still alive");
}

}  // namespace
}  // namespace flamed::symbolizer
