// SPDX-License-Identifier: Apache-2.0
//
// Writes .eh_frame and .debug_frame records byte by byte, for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

namespace flamed::unwinder {

class Bytes {
 public:
  Bytes() = default;
  Bytes(std::initializer_list<unsigned> values) {
    for (const unsigned value : values) u8(value);
  }

  Bytes& u8(unsigned value) {
    bytes_.push_back(static_cast<std::byte>(value));
    return *this;
  }
  Bytes& u16(std::uint16_t value) { return raw(&value, sizeof(value)); }
  Bytes& u32(std::uint32_t value) { return raw(&value, sizeof(value)); }
  Bytes& u64(std::uint64_t value) { return raw(&value, sizeof(value)); }
  Bytes& uleb(std::uint64_t value) {
    do {
      const auto low = static_cast<unsigned>(value & 0x7f);
      value >>= 7;
      u8(low | (value != 0 ? 0x80 : 0));
    } while (value != 0);
    return *this;
  }
  Bytes& sleb(std::int64_t value) {
    for (;;) {
      const auto low = static_cast<unsigned>(value & 0x7f);
      value >>= 7;
      const bool last = (value == 0 && (low & 0x40) == 0) || (value == -1 && (low & 0x40) != 0);
      u8(low | (last ? 0 : 0x80));
      if (last) return *this;
    }
  }
  Bytes& text(std::string_view text) {
    raw(text.data(), text.size());
    return u8(0);
  }
  Bytes& append(const Bytes& other) {
    bytes_.insert(bytes_.end(), other.bytes_.begin(), other.bytes_.end());
    return *this;
  }

  [[nodiscard]] std::size_t size() const { return bytes_.size(); }
  [[nodiscard]] std::span<const std::byte> span() const { return bytes_; }
  operator std::span<const std::byte>() const { return bytes_; }  // NOLINT(google-explicit-constructor)

 private:
  Bytes& raw(const void* from, std::size_t size) {
    const auto* bytes = static_cast<const std::byte*>(from);
    bytes_.insert(bytes_.end(), bytes, bytes + size);
    return *this;
  }
  std::vector<std::byte> bytes_;
};

/// As compilers write it for x86-64: the CFA is rsp + 8, the return address is just below it.
inline Bytes x86_64_start() { return Bytes{0x0c, 7, 8, 0x90, 1}; }

/// An .eh_frame at kAddress, for functions at any place.
class EhFrame {
 public:
  static constexpr std::uint64_t kAddress = 0x50'0000;

  /// A CIE with augmentation "zR" and addresses in `encoding`. Returns its offset.
  std::size_t cie(const Bytes& instructions, unsigned encoding = 0x1b) {
    return cie_with("zR", Bytes{encoding}, instructions);
  }
  std::size_t cie_with(std::string_view augmentation, const Bytes& augmentation_data, const Bytes& instructions,
                       unsigned version = 1, unsigned ra_register = 16) {
    Bytes body;
    body.u32(0).u8(version).text(augmentation).uleb(1).sleb(-8).u8(ra_register);
    if (!augmentation.empty() && augmentation[0] == 'z') body.uleb(augmentation_data.size());
    body.append(augmentation_data).append(instructions);
    return record(body);
  }

  /// An FDE of `cie`, with pc-relative 4-byte addresses.
  std::size_t fde(std::size_t cie, std::uint64_t begin, std::uint32_t size, const Bytes& instructions) {
    const std::size_t at = bytes_.size();
    Bytes body;
    body.u32(static_cast<std::uint32_t>(at + 4 - cie));
    body.u32(static_cast<std::uint32_t>(begin - (kAddress + at + 8)));
    body.u32(size).uleb(0).append(instructions);
    return record(body);
  }

  /// Any record: its length, then `body`.
  std::size_t record(const Bytes& body) {
    const std::size_t at = bytes_.size();
    bytes_.u32(static_cast<std::uint32_t>(body.size())).append(body);
    return at;
  }

  [[nodiscard]] std::size_t size() const { return bytes_.size(); }
  [[nodiscard]] Bytes& bytes() { return bytes_; }

 private:
  Bytes bytes_;
};

}  // namespace flamed::unwinder
