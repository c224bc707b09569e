// SPDX-License-Identifier: Apache-2.0
//
// The records of .eh_frame (LSB Core, "Exception Frames") and .debug_frame (DWARF 5 section 6.4.1): CIEs, the common
// part of a group of functions, and FDEs, one for each function. Pure: bytes in, values out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "unwinder/cfa_program.h"
#include "unwinder/encoded_pointer.h"

namespace flamed::unwinder {

/// One section's bytes, which must outlive everything read from them.
struct FrameSection {
  enum class Format : std::uint8_t { kEhFrame, kDebugFrame };
  Format format = Format::kEhFrame;
  std::span<const std::byte> bytes;
  std::uint64_t address = 0;  ///< virtual address of the first byte
  /// The bases of DW_EH_PE_textrel and DW_EH_PE_datarel pointers, if known; x86-64 and arm64 use neither, and records
  /// that do are counted as Skipped::kBadFde.
  std::optional<std::uint64_t> text_address;
  std::optional<std::uint64_t> data_address;
  /// The section's size isn't known (found through PT_GNU_EH_FRAME), so a terminator ends it. If the size is known,
  /// terminators are skipped: linkers copy one from crtend.o, at any place.
  bool ends_at_terminator = false;
};

struct Cie {
  bool valid = false;
  bool signal_frame = false;
  bool has_augmentation_data = false;
  CfaContext context;
  FrameState initial;
};

struct Fde {
  std::uint64_t begin = 0;  ///< virtual address
  std::uint64_t size = 0;
  std::uint32_t cie = 0;  ///< FrameRecords::cie()
  std::span<const std::byte> instructions;
};

/// Iterates over one section's records.
class FrameRecords {
 public:
  enum class Next : std::uint8_t {
    kFde,
    kBadFde,    ///< a function's record that can't be read; continue with the next one
    kBadCie,    ///< a function whose CIE can't be read
    kFinished,  ///< the section's end
    kDamaged,   ///< an impossible length: later records can't be found
  };

  /// Linkers merge CIEs to a few; .debug_frame has one for each source file. Beyond these limits an FDE counts as
  /// kBadCie: otherwise a file could make a large CIE be read for each small FDE, or use memory for each.
  static constexpr std::size_t kMaxCies = 262'144;
  static constexpr std::size_t kMaxCieBytes = 4096;

  FrameRecords(const FrameSection& section, Architecture architecture);

  /// Fills `fde` at kFde.
  Next next(Fde& fde);

  [[nodiscard]] const Cie& cie(std::uint32_t index) const { return cies_[index]; }

 private:
  /// A record's content, its reference to its CIE, and the width of its numbers.
  struct Record {
    std::uint64_t offset = 0;
    bool is_64bit = false;
    bool is_cie = false;
    std::uint64_t cie_offset = 0;
    ByteReader body;
  };
  enum class Header : std::uint8_t { kRecord, kTerminator, kEnd, kDamaged, kTooShort };

  Header read_header(std::uint64_t offset, Record& record, std::uint64_t& next_offset) const;
  std::uint32_t cie_at(std::uint64_t offset);
  [[nodiscard]] Cie parse_cie(std::uint64_t offset) const;
  [[nodiscard]] bool parse_augmentation(ByteReader& body, std::span<const std::byte> letters, Cie& cie) const;
  bool parse_fde(Record& record, Fde& fde) const;

  FrameSection section_;
  Architecture architecture_;
  std::uint64_t at_ = 0;
  std::vector<Cie> cies_;  ///< the first one replaces all unreadable ones
  std::unordered_map<std::uint64_t, std::uint32_t> cie_by_offset_;
  std::uint64_t last_cie_offset_ = ~std::uint64_t{0};
  std::uint32_t last_cie_ = 0;
};

}  // namespace flamed::unwinder
