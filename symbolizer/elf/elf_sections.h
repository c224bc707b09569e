// SPDX-License-Identifier: Apache-2.0
//
// ElfSections: the headers and sections of an open ELF file. Lives on one thread, for one reading; the descriptor or
// the image must outlive it.
//
// Any user can write such a file, so nothing in it is trusted: every size is checked against the file and against a
// fixed limit before memory is allocated. Files are read, never mapped: a file that its owner truncates while it is
// being parsed gives an error, not a SIGBUS.
#pragma once

#include <gelf.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/handle.h"
#include "base/result.h"
#include "symbolizer/elf/elf_input.h"

namespace flamed::symbolizer {

using ElfHandle = Handle<::Elf*, ::elf_end>;

/// A loaded string table: NUL-terminated strings by offset.
class ElfStrings {
 public:
  ElfStrings() = default;
  explicit ElfStrings(std::string_view bytes) : bytes_(bytes) {}
  /// Empty if `offset` is outside or the string is not terminated. Searches no further than the longest name: millions
  /// of symbols may point into one endless string.
  [[nodiscard]] std::string_view at(std::uint64_t offset) const;

 private:
  std::string_view bytes_;
};

class ElfSections {
 public:
  struct Section {
    ::Elf_Scn* scn = nullptr;
    GElf_Shdr header{};
    std::string_view name;
    bool loaded = false;  ///< its bytes have been counted
  };

  /// A file that is not an ELF file of this host's byte order is an error.
  static Result<ElfSections> open(int fd);
  static Result<ElfSections> open(std::span<const std::byte> image);

  /// An error unless this is a program or a shared library.
  [[nodiscard]] Status check_loadable() const;

  [[nodiscard]] const ElfInput& input() const { return input_; }
  [[nodiscard]] ::Elf* elf() const { return elf_.get(); }
  [[nodiscard]] const GElf_Ehdr& header() const { return header_; }
  [[nodiscard]] const std::vector<GElf_Phdr>& segments() const { return segments_; }
  /// Without section 0.
  [[nodiscard]] std::vector<Section>& all() { return sections_; }

  /// By the number that other sections refer to. Null: there is none.
  [[nodiscard]] Section* at(std::size_t index);
  /// The first one of a type, or of a name. Null: there is none.
  [[nodiscard]] Section* of_type(GElf_Word type);
  [[nodiscard]] Section* named(std::string_view name);
  /// The same, and it has bytes in this file.
  [[nodiscard]] Section* with_bytes(std::string_view name);

  /// A section's bytes in libelf's memory, valid as long as this object.
  Result<::Elf_Data*> load(Section& section, std::uint64_t limit_bytes);
  Result<ElfStrings> load_strings(Section& section);
  static std::string_view bytes_of(const ::Elf_Data* data);

  /// GNU build-id in hex; empty when there is none.
  std::string build_id();

 private:
  ElfSections(ElfInput input, std::vector<char> image, ElfHandle elf)
      : input_(input), image_(std::move(image)), elf_(std::move(elf)) {}
  static Result<ElfSections> read(ElfInput input, std::vector<char> image, ElfHandle elf);
  Status read_headers();
  [[nodiscard]] bool in_file(std::uint64_t offset, std::uint64_t bytes) const;

  ElfInput input_;
  std::vector<char> image_;  ///< libelf needs writable memory with malloc's alignment
  ElfHandle elf_;
  GElf_Ehdr header_{};
  std::vector<GElf_Phdr> segments_;
  std::vector<Section> sections_;
  std::uint64_t loaded_bytes_ = 0;
};

/// Bytes in hex, like build-ids.
std::string to_hex(std::string_view bytes);

}  // namespace flamed::symbolizer
