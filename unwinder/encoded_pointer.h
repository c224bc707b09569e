// SPDX-License-Identifier: Apache-2.0
//
// Encoded pointers of .eh_frame: a format (size and sign) and a base (LSB Core, "DWARF Exception Header Encoding").
#pragma once

#include <cstdint>
#include <optional>

#include "base/byte_reader.h"

namespace flamed::unwinder {

inline constexpr std::uint8_t kEncodingAbsolute = 0x00;
inline constexpr std::uint8_t kEncodingOmit = 0xff;
inline constexpr std::uint8_t kEncodingFormatMask = 0x0f;
inline constexpr std::uint8_t kEncodingBaseMask = 0x70;
inline constexpr std::uint8_t kEncodingIndirect = 0x80;
inline constexpr std::uint8_t kEncodingPcRelative = 0x10;
inline constexpr std::uint8_t kEncodingTextRelative = 0x20;
inline constexpr std::uint8_t kEncodingDataRelative = 0x30;
inline constexpr std::uint8_t kEncodingAligned = 0x50;

/// The bases of pointers.
struct PointerBases {
  const std::byte* section = nullptr;  ///< the section's first byte in memory ...
  std::uint64_t address = 0;           ///< ... and its virtual address
  std::optional<std::uint64_t> text;   ///< base of DW_EH_PE_textrel pointers
  std::optional<std::uint64_t> data;   ///< likewise DW_EH_PE_datarel
  std::uint8_t address_size = 8;
};

/// The number without its base; empty for unknown formats.
inline std::optional<std::uint64_t> read_encoded_number(ByteReader& reader, std::uint8_t encoding,
                                                        std::uint8_t address_size) {
  switch (encoding & kEncodingFormatMask) {
    case 0x00:
      return address_size == 4 ? reader.u32() : reader.u64();
    case 0x01:
      return reader.uleb();
    case 0x02:
      return reader.u16();
    case 0x03:
      return reader.u32();
    case 0x04:
    case 0x0c:
      return reader.u64();
    case 0x08:
      return address_size == 4 ? static_cast<std::uint64_t>(static_cast<std::int32_t>(reader.u32())) : reader.u64();
    case 0x09:
      return static_cast<std::uint64_t>(reader.sleb());
    case 0x0a:
      return static_cast<std::uint64_t>(static_cast<std::int16_t>(reader.u16()));
    case 0x0b:
      return static_cast<std::uint64_t>(static_cast<std::int32_t>(reader.u32()));
    default:
      return std::nullopt;
  }
}

/// The address; empty for unknown encodings, for function-relative ones (not defined for the fields that are read
/// here), for unknown bases, and for indirect ones, which would need the running process's memory.
inline std::optional<std::uint64_t> read_encoded_pointer(ByteReader& reader, std::uint8_t encoding,
                                                         const PointerBases& bases) {
  if ((encoding & kEncodingIndirect) != 0) return std::nullopt;
  const std::uint64_t own_address = bases.address + static_cast<std::uint64_t>(reader.at() - bases.section);
  std::uint64_t base = 0;
  switch (encoding & kEncodingBaseMask) {
    case kEncodingAbsolute:
      break;
    case kEncodingPcRelative:
      base = own_address;
      break;
    case kEncodingTextRelative:
      if (!bases.text) return std::nullopt;
      base = *bases.text;
      break;
    case kEncodingDataRelative:
      if (!bases.data) return std::nullopt;
      base = *bases.data;
      break;
    case kEncodingAligned:
      // A plain address, at the next multiple of the address size.
      if ((encoding & kEncodingFormatMask) != 0) return std::nullopt;
      reader.skip((bases.address_size - own_address % bases.address_size) % bases.address_size);
      break;
    default:
      return std::nullopt;
  }
  const std::optional<std::uint64_t> number = read_encoded_number(reader, encoding, bases.address_size);
  if (!number) return std::nullopt;
  const std::uint64_t address = base + *number;
  return bases.address_size == 4 ? address & 0xffff'ffff : address;
}

}  // namespace flamed::unwinder
