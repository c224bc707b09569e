// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/reader/elf_unwind_source.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/handle.h"
#include "test/catch.h"
#include "test/unit/unwinder/load_rows.h"

namespace flamed::unwinder {
namespace {

using symbolizer::ElfUnwindSource;
using symbolizer::read_elf_unwind_source;
using Format = ElfUnwindSource::Section::Format;

/// A file's bytes, to be damaged.
class Image {
 public:
  explicit Image(const char* path) {
    Result<std::string> bytes = read_file(path, std::size_t{64} << 20);
    REQUIRE(bytes.ok());
    bytes_ = std::move(bytes).value();
  }

  [[nodiscard]] std::span<const std::byte> span() const { return std::as_bytes(std::span(bytes_)); }
  [[nodiscard]] std::span<const std::byte> first(std::size_t size) const { return span().first(size); }
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }

  [[nodiscard]] Elf64_Ehdr header() const { return get<Elf64_Ehdr>(0); }
  void set(const Elf64_Ehdr& header) { put(0, header); }

  /// Lets `change` change the header of the section `name`.
  template <typename Change>
  void change_section(std::string_view name, Change change) {
    const Elf64_Ehdr ehdr = header();
    const auto names = get<Elf64_Shdr>(ehdr.e_shoff + std::size_t{ehdr.e_shstrndx} * sizeof(Elf64_Shdr));
    for (std::size_t i = 0; i < ehdr.e_shnum; ++i) {
      const std::size_t at = ehdr.e_shoff + i * sizeof(Elf64_Shdr);
      auto shdr = get<Elf64_Shdr>(at);
      if (bytes_.c_str() + names.sh_offset + shdr.sh_name != name) continue;
      change(shdr);
      put(at, shdr);
      return;
    }
    FAIL("no section " << name);
  }

  /// Lets `change` change all program headers of `type`.
  template <typename Change>
  void change_segments(std::uint32_t type, Change change) {
    const Elf64_Ehdr ehdr = header();
    for (std::size_t i = 0; i < ehdr.e_phnum; ++i) {
      const std::size_t at = ehdr.e_phoff + i * sizeof(Elf64_Phdr);
      auto phdr = get<Elf64_Phdr>(at);
      if (phdr.p_type != type) continue;
      change(phdr);
      put(at, phdr);
    }
  }

  template <typename T>
  [[nodiscard]] T get(std::size_t at) const {
    T value;
    REQUIRE(at + sizeof(T) <= bytes_.size());
    std::memcpy(&value, bytes_.data() + at, sizeof(T));
    return value;
  }
  template <typename T>
  void put(std::size_t at, const T& value) {
    REQUIRE(at + sizeof(T) <= bytes_.size());
    std::memcpy(bytes_.data() + at, &value, sizeof(T));
  }

 private:
  std::string bytes_;
};

ElfUnwindSource read(std::span<const std::byte> image) {
  Result<ElfUnwindSource> source = read_elf_unwind_source(image);
  if (!source) FAIL(source.error().message());
  return std::move(source).value();
}

ElfUnwindSource read(const char* path) {
  const Fd fd(::open(path, O_RDONLY | O_CLOEXEC));
  REQUIRE(fd);
  Result<ElfUnwindSource> source = read_elf_unwind_source(fd.get());
  if (!source) FAIL(source.error().message());
  return std::move(source).value();
}

UnwindRows rows_by_address(const ElfUnwindSource& source) {
  Result<UnwindRows> rows = rows_of(source);
  REQUIRE(rows.ok());
  return std::move(rows).value();
}

std::string error(const Image& image) {
  const Result<ElfUnwindSource> source = read_elf_unwind_source(image.span());
  REQUIRE_FALSE(source.ok());
  return source.error().message();
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST_CASE("A program's .eh_frame, executable segments and PLT are found") {
  const ElfUnwindSource source = read(VICTIM_EH_FRAME);
  REQUIRE(source.sections.size() == 1);
  CHECK(source.sections[0].format() == Format::kEhFrame);
  CHECK_FALSE(source.sections[0].ends_at_terminator());
  REQUIRE_FALSE(source.code.empty());
  REQUIRE_FALSE(source.plt.empty());
  CHECK(source.plt[0].is_lazy);
  CHECK(source.plt[0].address >= source.code[0].address);
  CHECK(source.plt[0].address + source.plt[0].size <= source.code[0].address + source.code[0].size);
  CHECK(architecture_of(source).has_value());
}

TEST_CASE("Stubs of arm64, which nothing describes, leave the stack and lr as they are") {
  Image image(VICTIM_EH_FRAME);
  Elf64_Ehdr header = image.header();
  header.e_machine = EM_AARCH64;
  image.set(header);
  const ElfUnwindSource source = read(image.span());
  REQUIRE_FALSE(source.plt.empty());
  REQUIRE(source.ruled_code.size() == source.plt.size());
  // The first one of .plt pushes lr.
  CHECK(source.ruled_code[0].range.address == source.plt[0].address + 32);
  CHECK(source.ruled_code[0].range.size == source.plt[0].size - 32);
  CHECK(source.ruled_code[0].rule.cfa == CfaKind::kSpOffset);
  CHECK(source.ruled_code[0].rule.cfa_offset == 0);
  CHECK(source.ruled_code[0].rule.ra == RaKind::kInLr);
  CHECK(read(VICTIM_EH_FRAME).ruled_code.empty() == (source.machine != read(VICTIM_EH_FRAME).machine));
}

TEST_CASE("A file and its image in memory read the same") {
  const ElfUnwindSource from_file = read(VICTIM_EH_FRAME);
  const ElfUnwindSource from_memory = read(Image(VICTIM_EH_FRAME).span());
  REQUIRE(from_memory.sections.size() == 1);
  const auto file_bytes = from_file.sections[0].bytes();
  const auto memory_bytes = from_memory.sections[0].bytes();
  CHECK(std::equal(file_bytes.begin(), file_bytes.end(), memory_bytes.begin(), memory_bytes.end()));
  CHECK(from_file.sections[0].address() == from_memory.sections[0].address());
}

TEST_CASE("Without section headers .eh_frame is found through PT_GNU_EH_FRAME and gives the same rows") {
  Image image(VICTIM_EH_FRAME);
  ElfUnwindSource with_headers = read(image.span());
  with_headers.ruled_code.clear();  // arm64's stubs, which are found by section headers
  const UnwindRows with = rows_by_address(with_headers);
  Elf64_Ehdr header = image.header();
  header.e_shoff = 0;
  header.e_shnum = header.e_shstrndx = 0;
  image.set(header);
  const ElfUnwindSource source = read(image.span());
  REQUIRE(source.sections.size() == 1);
  CHECK(source.sections[0].ends_at_terminator());
  const UnwindRows without = rows_by_address(source);
  CHECK(without.stats.functions == with.stats.functions);
  CHECK_FALSE(without.stats.cut_short);
  REQUIRE(without.rows.size() == with.rows.size());
  for (std::size_t i = 0; i < with.rows.size(); ++i) {
    CHECK(without.rows[i].offset == with.rows[i].offset);
    CHECK(without.rules[without.rows[i].rule.value] == with.rules[with.rows[i].rule.value]);
  }
}

TEST_CASE("A program with .debug_frame only has rows for its own functions, plain or compressed in either way") {
  const char* path = GENERATE(VICTIM_DEBUG_FRAME, VICTIM_DEBUG_FRAME_COMPRESSED, VICTIM_DEBUG_FRAME_GNU_COMPRESSED);
  const ElfUnwindSource source = read(path);
  REQUIRE_FALSE(source.sections.empty());
  CHECK(source.sections.back().format() == Format::kDebugFrame);

  // The startup files' .eh_frame is there as well, but not for the program's functions.
  ElfUnwindSource only_eh_frame = read(path);
  std::erase_if(only_eh_frame.sections, [](const auto& section) { return section.format() == Format::kDebugFrame; });
  const UnwindRows without = rows_by_address(only_eh_frame);
  const UnwindRows with = rows_by_address(source);
  CHECK(with.stats.functions >= without.stats.functions + 8);
  CHECK_FALSE(with.stats.cut_short);
  for (std::size_t i = 0; i < kSkippedKinds; ++i) CHECK(with.stats.skipped[i] == without.stats.skipped[i]);
}

TEST_CASE("A separate debug file, without .eh_frame, has no unwind information and is no error") {
  Image image(VICTIM_EH_FRAME);
  image.change_section(".eh_frame", [](Elf64_Shdr& shdr) { shdr.sh_type = SHT_NOBITS; });
  CHECK(read(image.span()).sections.empty());
}

TEST_CASE("Other machines and 32-bit code are distinguished") {
  Image image(VICTIM_EH_FRAME);
  Elf64_Ehdr header = image.header();
  header.e_machine = EM_AARCH64;
  image.set(header);
  CHECK(read(image.span()).machine == ElfUnwindSource::Machine::kArm64);
  header.e_machine = EM_RISCV;
  image.set(header);
  CHECK(read(image.span()).machine == ElfUnwindSource::Machine::kOther);
}

TEST_CASE("Sizes beyond the file are errors that name the section") {
  const auto huge = GENERATE(std::uint64_t{1} << 40, ~std::uint64_t{0} - 16, std::uint64_t{64} << 20);
  Image image(VICTIM_EH_FRAME);
  image.change_section(".eh_frame", [&](Elf64_Shdr& shdr) { shdr.sh_size = huge; });
  const std::string message = error(image);
  CHECK(contains(message, ".eh_frame"));
  CHECK(contains(message, "truncated"));
}

TEST_CASE("A compressed section that claims more than the limit is refused before memory is spent") {
  Image image(VICTIM_DEBUG_FRAME_COMPRESSED);
  std::size_t at = 0;
  image.change_section(".debug_frame", [&](Elf64_Shdr& shdr) { at = shdr.sh_offset; });
  auto header = image.get<Elf64_Chdr>(at);
  header.ch_size = std::uint64_t{1} << 40;
  image.put(at, header);
  const std::string message = error(image);
  CHECK(contains(message, ".debug_frame"));
  CHECK(contains(message, "limit"));
}

TEST_CASE("A compressed section whose stream is damaged is an error") {
  Image image(VICTIM_DEBUG_FRAME_COMPRESSED);
  std::size_t at = 0;
  image.change_section(".debug_frame", [&](Elf64_Shdr& shdr) { at = shdr.sh_offset; });
  image.put(at + sizeof(Elf64_Chdr), ~std::uint64_t{0});
  CHECK(contains(error(image), "cannot decompress it"));
}

TEST_CASE("Overlapping executable segments and pointers to nowhere are damage") {
  Image overlapping(VICTIM_EH_FRAME);
  overlapping.change_segments(PT_LOAD, [](Elf64_Phdr& phdr) {
    phdr.p_flags |= PF_X;
    phdr.p_vaddr = 0x1000;
  });
  CHECK(contains(error(overlapping), "overlap"));

  Image nowhere(VICTIM_EH_FRAME);
  Elf64_Ehdr header = nowhere.header();
  header.e_shoff = 0;
  header.e_shnum = header.e_shstrndx = 0;
  nowhere.set(header);
  nowhere.change_segments(PT_GNU_EH_FRAME, [](Elf64_Phdr& phdr) { phdr.p_vaddr = 0x7000'0000'0000; });
  CHECK(contains(error(nowhere), "PT_GNU_EH_FRAME"));
}

TEST_CASE("A file truncated anywhere is an error or has less, and is never read past its end") {
  const Image image(VICTIM_EH_FRAME);
  for (std::size_t size = 0; size < image.size(); size += 61) {
    // A copy of its own, so that a sanitizer catches reads past its end.
    const std::vector<std::byte> cut(image.first(size).begin(), image.first(size).end());
    const Result<ElfUnwindSource> source = read_elf_unwind_source(cut);
    if (size < sizeof(Elf64_Ehdr)) CHECK_FALSE(source.ok());
    if (!source) CHECK_FALSE(source.error().message().empty());
  }
}

TEST_CASE("A file that is not ELF, or not regular, is refused") {
  const std::string text = "#!/bin/sh\n";
  CHECK_FALSE(read_elf_unwind_source(std::as_bytes(std::span(text))).ok());
  const Fd device(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  CHECK_FALSE(read_elf_unwind_source(device.get()).ok());
  CHECK_FALSE(read_elf_unwind_source(-1).ok());
}

}  // namespace
}  // namespace flamed::unwinder
