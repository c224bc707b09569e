// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/elf/elf_facts_reader.h"

#include <elf.h>

#include <cstring>
#include <filesystem>
#include <functional>

#include "test/catch.h"
#include "test/unit/symbolizer/victims.h"

namespace flamed::symbolizer {
namespace {

constexpr const char* kBuildId = "00112233445566778899aabbccddeeff01234567";

ElfFacts facts_of(const std::string& path) { return read_elf_facts(open_victim(path.c_str()).get()).value(); }
std::string split(const char* name) { return std::string(VICTIM_SPLIT) + "/" + name; }

TEST_CASE("a program with symbols and debug information is recognised") {
  for (const char* victim : {VICTIM_DEBUG, VICTIM_COMPRESSED}) {
    const ElfFacts facts = facts_of(victim);
    CHECK(facts.build_id == kBuildId);
    CHECK(facts.has_symtab);
    CHECK(facts.has_debug_info);
    CHECK_FALSE(facts.has_mini_debug_info);
    CHECK_FALSE(facts.is_go);
    CHECK(facts.debug_link.empty());
    CHECK(facts.alternate_link.empty());
  }
}

TEST_CASE("a stripped program has its build-id and nothing more") {
  ElfFacts expected;
  expected.build_id = kBuildId;
  CHECK(facts_of(split("stripped")) == expected);
}

TEST_CASE("a separate debug file has its program's build-id") {
  const ElfFacts facts = facts_of(split("stripped.debug"));
  CHECK(facts.build_id == kBuildId);
  CHECK(facts.has_symtab);
  CHECK(facts.has_debug_info);
}

TEST_CASE("a debuglink is a file name and a checksum") {
  const ElfFacts facts = facts_of(split("linked"));
  CHECK(facts.debug_link == "linked.debug");
  CHECK(facts.debug_link_crc != 0);
  CHECK(facts.build_id.empty());
}

TEST_CASE("MiniDebugInfo is recognised") { CHECK(facts_of(split("mini")).has_mini_debug_info); }

TEST_CASE("a file that shares pieces with others names them") {
  if (std::filesystem::file_size(split("dwz.debug")) == 0) {
    WARN("SKIP: there is no dwz here");
    return;
  }
  const ElfFacts facts = facts_of(split("dwz.debug"));
  CHECK(facts.alternate_link == "dwz.alternate");
  CHECK(facts.alternate_build_id == facts_of(split("dwz.alternate")).build_id);
  CHECK(facts.alternate_build_id.size() == 40);
}

/// The linked victim with another text in its .gnu_debuglink, of the same length at most.
ElfFacts with_link(const std::string& link) {
  std::string bytes = bytes_of(split("linked").c_str());
  const std::string old = "linked.debug";
  // The name is only in the section, and not in the debug file's path.
  const std::size_t at = bytes.find(old + '\0');
  REQUIRE(at != std::string::npos);
  REQUIRE(link.size() <= old.size());
  std::string padded = link;
  padded.resize(old.size(), '\0');
  bytes.replace(at, old.size(), padded);
  return read_elf_facts(file_with(bytes).get()).value();
}

TEST_CASE("a debuglink that is not a plain file name is ignored") {
  for (const char* link : {"", ".", "..", "../../passwd", "/etc/passwd", "a/b", "a\nb", "a\x1b[2J"}) {
    CHECK(with_link(link).debug_link.empty());
  }
  CHECK(with_link("other").debug_link == "other");
}

TEST_CASE("a debuglink without its end or its checksum is ignored") {
  const std::string whole = bytes_of(split("linked").c_str());
  Elf64_Ehdr header;
  std::memcpy(&header, whole.data(), sizeof(header));
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  std::memcpy(sections.data(), whole.data() + header.e_shoff, sections.size() * sizeof(Elf64_Shdr));
  const char* names = whole.data() + sections[header.e_shstrndx].sh_offset;
  std::size_t link = 0;
  while (std::string_view(names + sections[link].sh_name) != ".gnu_debuglink") ++link;
  const auto facts_with = [&](const std::function<void(Elf64_Shdr&)>& change) {
    std::string bytes = whole;
    Elf64_Shdr section = sections[link];
    change(section);
    std::memcpy(bytes.data() + header.e_shoff + link * sizeof(Elf64_Shdr), &section, sizeof(section));
    return read_elf_facts(file_with(bytes).get()).value();
  };
  REQUIRE(facts_with([](Elf64_Shdr&) {}).debug_link == "linked.debug");
  for (Elf64_Xword bytes = 0; bytes < sections[link].sh_size; ++bytes) {
    CHECK(facts_with([&](Elf64_Shdr& section) { section.sh_size = bytes; }).debug_link.empty());
  }
  for (const Elf64_Xword bytes : {std::uint64_t{4} << 30, UINT64_MAX, std::uint64_t{1} << 20}) {
    CHECK(facts_with([&](Elf64_Shdr& section) { section.sh_size = bytes; }).debug_link.empty());
  }
  CHECK(facts_with([](Elf64_Shdr& section) { section.sh_offset = UINT64_MAX - 8; }).debug_link.empty());
  CHECK(facts_with([](Elf64_Shdr& section) { section.sh_type = SHT_NOBITS; }).debug_link.empty());
  CHECK(facts_with([](Elf64_Shdr& section) { section.sh_flags = SHF_COMPRESSED; }).debug_link.empty());
}

TEST_CASE("a file that is not ELF has no facts") {
  CHECK(read_elf_facts(file_with("#!/bin/sh\n").get()).error().message() == "not an ELF file");
  CHECK(read_elf_facts(file_with("#!/bin/sh\n").get()).error().code() == ENOEXEC);
  CHECK_FALSE(read_elf_facts(-1).ok());
}

TEST_CASE("a file truncated anywhere gives an error or fewer facts, never a crash") {
  const std::string whole = bytes_of(split("mini").c_str());
  for (std::size_t bytes = 0; bytes < whole.size(); bytes += 1 + bytes / 50) {
    static_cast<void>(read_elf_facts(file_with(whole.substr(0, bytes)).get()));
  }
  SUCCEED("still alive");
}

}  // namespace
}  // namespace flamed::symbolizer
