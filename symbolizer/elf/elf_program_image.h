// SPDX-License-Identifier: Apache-2.0
//
// ElfProgramImage: an ELF file as runtimes::ProgramImage: its exported symbols, and its bytes with the addresses that
// the dynamic linker will write. Lives on one thread. The ElfSections must outlive it.
#pragma once

#include <gelf.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtimes/program_image.h"
#include "symbolizer/elf/elf_sections.h"

namespace flamed::symbolizer {

class ElfProgramImage final : public runtimes::ProgramImage {
 public:
  explicit ElfProgramImage(ElfSections& file) : file_(file) {}

  [[nodiscard]] bool is_x86_64() const override;
  std::optional<Symbol> symbol(std::string_view name) override;
  bool read(std::uint64_t address, std::span<std::byte> to) override;
  bool is_block_number(std::uint64_t address) override;
  bool needs(std::string_view library) override;

 private:
  /// A word of 8 bytes that the dynamic linker writes.
  struct Written {
    std::uint64_t address = 0;
    std::uint64_t value = 0;
    bool is_block_number = false;
  };

  struct Table {
    ::Elf_Data* data = nullptr;  ///< null: there is none
    ElfStrings strings{};
    std::size_t entries = 0;
  };
  Table table_of(GElf_Word type);
  const Table& symbols();
  const std::vector<Written>& written();
  void add_written(const GElf_Rela& rela);
  [[nodiscard]] bool read_file(std::uint64_t address, std::span<std::byte> to) const;

  ElfSections& file_;
  std::optional<Table> symbols_;
  std::optional<std::vector<Written>> written_;  ///< ascending by address
};

}  // namespace flamed::symbolizer
