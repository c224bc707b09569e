// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/dwarf/source_locator.h"

#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/handle.h"
#include "symbolizer/elf/elf_sections.h"
#include "test/catch.h"

namespace flamed::symbolizer {
namespace {

std::string victim(const std::string& form) { return std::string(VICTIMS) + "/inlines_" + form; }

Fd open_file(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  REQUIRE(fd);
  return fd;
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// A file that no directory names.
Fd file_with(const std::string& bytes) {
  Fd fd(::memfd_create("flamed-test", MFD_CLOEXEC));
  REQUIRE(::write(fd.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  return fd;
}

/// Where a section is in its file.
std::size_t section_offset(const std::string& path, const std::string& name) {
  const Fd fd = open_file(path);
  Result<ElfSections> elf = ElfSections::open(fd.get());
  REQUIRE(elf.ok());
  const ElfSections::Section* section = elf->named(name);
  REQUIRE(section != nullptr);
  return static_cast<std::size_t>(section->header.sh_offset);
}

/// Where the PLACEs of a victim are in its file.
std::map<std::string, std::uint64_t> places_of(const std::string& path, std::size_t count = 8) {
  const Fd fd = open_file(path);
  REQUIRE(::elf_version(EV_CURRENT) != EV_NONE);
  const Handle<::Elf*, ::elf_end> elf(::elf_begin(fd.get(), ELF_C_READ, nullptr));
  std::map<std::string, std::uint64_t> places;
  for (::Elf_Scn* scn = nullptr; (scn = ::elf_nextscn(elf.get(), scn)) != nullptr;) {
    GElf_Shdr shdr{};
    REQUIRE(::gelf_getshdr(scn, &shdr) != nullptr);
    if (shdr.sh_type != SHT_SYMTAB) continue;
    ::Elf_Data* data = ::elf_getdata(scn, nullptr);
    for (int i = 0; i < static_cast<int>(shdr.sh_size / shdr.sh_entsize); ++i) {
      GElf_Sym symbol{};
      REQUIRE(::gelf_getsym(data, i, &symbol) != nullptr);
      const std::string name = ::elf_strptr(elf.get(), shdr.sh_link, symbol.st_name);
      if (name.substr(0, 6) != "place_") continue;
      std::size_t segments = 0;
      REQUIRE(::elf_getphdrnum(elf.get(), &segments) == 0);
      for (int k = 0; k < static_cast<int>(segments); ++k) {
        GElf_Phdr phdr{};
        REQUIRE(::gelf_getphdr(elf.get(), k, &phdr) != nullptr);
        if (phdr.p_type == PT_LOAD && symbol.st_value - phdr.p_vaddr < phdr.p_filesz) {
          places[name] = symbol.st_value - phdr.p_vaddr + phdr.p_offset;
        }
      }
    }
  }
  REQUIRE(places.size() == count);
  return places;
}

/// The line of a victim's source with "// @mark".
std::uint32_t line_of(const std::string& file, const std::string& mark) {
  std::ifstream source(std::string(VICTIM_SOURCES) + "/" + file);
  std::string text;
  for (std::uint32_t line = 1; std::getline(source, text); ++line) {
    const std::size_t at = text.find("// @");
    if (at != std::string::npos && text.substr(at + 4) == mark) return line;
  }
  FAIL("no line is marked " << mark);
  return 0;
}

/// "function file:line", without directories, for each frame, outermost first; "+" before inlined frames.
std::vector<std::string> written(const SourceChain& chain) {
  std::vector<std::string> frames;
  for (const SourceFrame& frame : chain) {
    frames.push_back((frame.inlined ? "+" : "") + frame.function + " " +
                     frame.file.substr(frame.file.find_last_of('/') + 1) + ":" + std::to_string(frame.line));
  }
  return frames;
}

std::string at(const std::string& function, const std::string& file, const std::string& mark) {
  return function + " " + file + ":" + std::to_string(line_of(file, mark));
}

using Chains = std::map<std::string, std::vector<std::string>>;

/// What must be found at each place, for every compiler.
Chains expected() {
  const std::string main = "victim_inlines.cc";
  const std::string other = "victim_inlines_other.cc";
  return {
      {"place_in_template",
       {at("draw", main, "call member"), at("+_ZN6shapes6Square4growEv", main, "call template"),
        at("+_ZN6shapes5grownIiEET_S1_", main, "template")}},
      {"place_in_member", {at("draw", main, "call member"), at("+_ZN6shapes6Square4growEv", main, "member")}},
      {"place_in_method", {at("_ZNK6shapes6Square4areaEv", main, "method")}},
      {"place_in_draw", {at("draw", main, "draw")}},
      {"place_in_other", {at("_Z5otheri", other, "other")}},
      {"place_in_header",
       {at("_Z5otheri", other, "call header"), at("+_Z11from_headeri", "victim_inlines.h", "header")}},
  };
}

/// What was found at the places with an expectation.
Chains found(const ModuleFiles& files, const std::map<std::string, std::uint64_t>& places) {
  std::vector<std::uint64_t> offsets;
  for (const auto& [name, offset] : places) offsets.push_back(offset);
  const Result<std::vector<SourceChain>> chains = locate_sources(files, offsets);
  REQUIRE(chains.ok());
  REQUIRE(chains->size() == offsets.size());
  Chains found;
  std::size_t i = 0;
  const Chains wanted = expected();
  for (const auto& [name, offset] : places) {
    if (wanted.count(name) != 0) found[name] = written((*chains)[i]);
    ++i;
  }
  return found;
}

Chains found(const std::string& path) {
  const Fd fd = open_file(path);
  return found({fd.get()}, places_of(path));
}

TEST_CASE("Chains are exact whatever compiler and form the debug information has", "[source_locator]") {
  const std::string form = GENERATE("dwarf2", "dwarf3", "dwarf4", "dwarf5", "dwarf64", "compressed", "compressed_gnu",
                                    "type_units", "sections", "lto", "clang_dwarf4", "clang_dwarf5", "clang_sections");
  CAPTURE(form);
  CHECK(found(victim(form)) == expected());
}

TEST_CASE("Lambdas are named as their compiler names them", "[source_locator]") {
  const auto [form, name] = GENERATE(table<std::string, std::string>(
      {{"dwarf5", "operator()"}, {"clang_dwarf5", "_ZZ4drawENK3$_0clEi"}}));  // GCC gives closures no linkage name
  CAPTURE(form);
  const Fd fd = open_file(victim(form));
  const std::uint64_t place = places_of(victim(form))["place_in_lambda"];
  const auto chains = locate_sources({fd.get()}, std::span(&place, 1));
  REQUIRE(chains.ok());
  CHECK(written((*chains)[0]) == std::vector<std::string>{at("draw", "victim_inlines.cc", "call lambda"),
                                                          at("+" + name, "victim_inlines.cc", "lambda")});
}

TEST_CASE("Functions without linkage are named too", "[source_locator]") {
  const Fd fd = open_file(victim("dwarf5"));
  const std::uint64_t place = places_of(victim("dwarf5"))["place_in_local"];
  const auto chains = locate_sources({fd.get()}, std::span(&place, 1));
  REQUIRE(chains.ok());
  CHECK(written((*chains)[0]) == std::vector<std::string>{at("local", "victim_inlines.cc", "local")});
}

TEST_CASE("Files are named with the directory that the compiler found them in", "[source_locator]") {
  const Fd fd = open_file(victim("dwarf5"));
  const std::uint64_t place = places_of(victim("dwarf5"))["place_in_header"];
  const auto chains = locate_sources({fd.get()}, std::span(&place, 1));
  REQUIRE(chains.ok());
  REQUIRE((*chains)[0].size() == 2);
  CHECK((*chains)[0][1].file.front() == '/');
  CHECK(std::ifstream((*chains)[0][1].file).good());
}

TEST_CASE("Debug information comes from the separate file of a stripped module", "[source_locator]") {
  const Fd module = open_file(victim("stripped"));
  const Fd debug = open_file(victim("debug"));
  CHECK(found({module.get(), debug.get()}, places_of(victim("dwarf5"))) == expected());
}

TEST_CASE("A module without debug information gives empty chains", "[source_locator]") {
  const Fd module = open_file(victim("stripped"));
  const std::vector<std::uint64_t> offsets = {0x1000, 0x1100};
  const auto chains = locate_sources({module.get()}, offsets);
  REQUIRE(chains.ok());
  CHECK(*chains == std::vector<SourceChain>(2));
}

TEST_CASE("Skeletons of split debug information give only lines", "[source_locator]") {
  const std::string form = GENERATE("split", "split4");
  CAPTURE(form);
  const Chains chains = found(victim(form));
  CHECK(chains.at("place_in_method") == std::vector<std::string>{at("", "victim_inlines.cc", "method")});
}

TEST_CASE("Answers are in the order of the query, including repeated and unknown offsets", "[source_locator]") {
  const Fd fd = open_file(victim("dwarf5"));
  auto places = places_of(victim("dwarf5"));
  const std::vector<std::uint64_t> offsets = {places["place_in_other"], UINT64_MAX, places["place_in_method"], 0,
                                              places["place_in_other"]};
  const auto chains = locate_sources({fd.get()}, offsets);
  REQUIRE(chains.ok());
  REQUIRE(chains->size() == 5);
  CHECK(written((*chains)[0]) == expected()["place_in_other"]);
  CHECK((*chains)[1].empty());
  CHECK(written((*chains)[2]) == expected()["place_in_method"]);
  CHECK((*chains)[3].empty());
  CHECK((*chains)[4] == (*chains)[0]);
}

TEST_CASE("Names come from the file that several debug files share", "[source_locator]") {
#ifdef HAS_DWZ
  const Fd module = open_file(victim("dwz_dwarf4"));
  const Fd shared = open_file(victim("dwz_shared"));
  CHECK(found({module.get(), -1, shared.get()}, places_of(victim("dwz_dwarf4"))) == expected());
  // Without it, there are still lines, and no wrong names.
  const Chains without = found({module.get()}, places_of(victim("dwz_dwarf4")));
  for (const auto& [place, frames] : expected()) {
    INFO(place);
    REQUIRE(without.at(place).size() == frames.size());
    for (std::size_t i = 0; i < frames.size(); ++i) {
      const std::string& found_frame = without.at(place)[i];
      const std::string nameless = (frames[i].front() == '+' ? "+" : "") + frames[i].substr(frames[i].find(' '));
      CHECK((found_frame == frames[i] || found_frame == nameless));
    }
  }
#else
  WARN("SKIP: there was no dwz (Debian: dwz) when this was configured");
#endif
}

TEST_CASE("References in a circle give a function without a name", "[source_locator]") {
  const Fd fd = open_file(victim("crafted"));
  const std::uint64_t place = places_of(victim("crafted"), 3)["place_looping"];
  const auto chains = locate_sources({fd.get()}, std::span(&place, 1));
  REQUIRE(chains.ok());
  CHECK((*chains)[0] == SourceChain{SourceFrame{}});
}

TEST_CASE("A chain of endlessly nested functions has the outermost and some of the others", "[source_locator]") {
  const Fd fd = open_file(victim("crafted"));
  const std::uint64_t place = places_of(victim("crafted"), 3)["place_deep"];
  const auto chains = locate_sources({fd.get()}, std::span(&place, 1));
  REQUIRE(chains.ok());
  const SourceChain& chain = (*chains)[0];
  REQUIRE(chain.size() > 100);
  CHECK(chain.size() <= 256);
  CHECK(chain.front().function == "deep");
  CHECK(chain.back().function == "x");
  CHECK(std::all_of(chain.begin() + 1, chain.end(), [](const SourceFrame& frame) { return frame.inlined; }));
}

TEST_CASE("An entry whose sibling is before it doesn't send the reader back", "[source_locator]") {
  const Fd fd = open_file(victim("crafted"));
  const std::uint64_t place = places_of(victim("crafted"), 3)["place_backward"];
  const auto chains = locate_sources({fd.get()}, std::span(&place, 1));
  REQUIRE(chains.ok());
  CHECK(written((*chains)[0]) == std::vector<std::string>{"behind :0"});
}

TEST_CASE("A compressed section that claims an impossible size is ignored", "[source_locator]") {
  const std::string path = victim("compressed");
  const auto places = places_of(path);
  std::string bytes = bytes_of(path);
  const std::uint64_t size = GENERATE(std::uint64_t{0xFFFFFFFF}, std::uint64_t{1} << 62, std::uint64_t{600} << 20);
  const std::size_t header = section_offset(path, ".debug_info");
  // Elf64_Chdr: u32 type, u32, u64 size.
  std::memcpy(bytes.data() + header + 8, &size, sizeof(size));
  const Fd fd = file_with(bytes);
  std::vector<std::uint64_t> offsets;
  for (const auto& [name, offset] : places) offsets.push_back(offset);
  const auto chains = locate_sources({fd.get()}, offsets);
  REQUIRE(chains.ok());
  CHECK(*chains == std::vector<SourceChain>(offsets.size()));
}

TEST_CASE("A file that ends anywhere gives chains or an error", "[source_locator]") {
  const std::string path = victim("clang_dwarf5");
  const auto places = places_of(path);
  const std::string bytes = bytes_of(path);
  std::vector<std::uint64_t> offsets;
  for (const auto& [name, offset] : places) offsets.push_back(offset);
  for (std::size_t size = 0; size < bytes.size(); size += 101) {
    const Fd fd = file_with(bytes.substr(0, size));
    const auto chains = locate_sources({fd.get()}, offsets);
    if (chains.ok() ? chains->size() != offsets.size() : chains.error().message().empty()) FAIL("at " << size);
  }
}

TEST_CASE("A file that is no ELF is an error that says so", "[source_locator]") {
  const Fd fd = open_file("/proc/self/comm");
  const std::uint64_t offset = 1;
  const auto chains = locate_sources({fd.get()}, std::span(&offset, 1));
  REQUIRE_FALSE(chains.ok());
  CHECK_FALSE(chains.error().message().empty());
}

}  // namespace
}  // namespace flamed::symbolizer
