// SPDX-License-Identifier: Apache-2.0
//
// DwarfCursor: reads the encodings of DWARF from bytes that nobody vouches for. Reading past the end gives zeros and
// makes ok() false for good, so that a loop needs to ask only once an entry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace flamed::symbolizer {

class DwarfCursor {
 public:
  explicit DwarfCursor(std::span<const std::byte> bytes, std::size_t position = 0) : bytes_(bytes) { seek(position); }

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] std::size_t position() const { return position_; }
  [[nodiscard]] std::size_t left() const { return bytes_.size() - position_; }

  void seek(std::size_t position) {
    if (position > bytes_.size()) return fail();
    position_ = position;
  }

  void skip(std::uint64_t count) {
    if (count > left()) return fail();
    position_ += static_cast<std::size_t>(count);
  }

  std::uint8_t u8() { return fixed<std::uint8_t>(); }
  std::uint16_t u16() { return fixed<std::uint16_t>(); }
  std::uint32_t u32() { return fixed<std::uint32_t>(); }
  std::uint64_t u64() { return fixed<std::uint64_t>(); }

  /// A number of 1, 2, 3, 4 or 8 bytes.
  std::uint64_t number(std::size_t count) {
    switch (count) {
      case 1:
        return u8();
      case 2:
        return u16();
      case 3: {
        const std::uint64_t low = u16();
        return low | std::uint64_t{u8()} << 16;
      }
      case 4:
        return u32();
      case 8:
        return u64();
      default:
        fail();
        return 0;
    }
  }

  /// Bits beyond 64 are dropped.
  std::uint64_t uleb() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; position_ < bytes_.size(); shift += 7) {
      const auto byte = std::to_integer<std::uint8_t>(bytes_[position_++]);
      if (shift < 64) value |= std::uint64_t{byte & 0x7FU} << shift;
      if ((byte & 0x80U) == 0) return value;
    }
    fail();
    return 0;
  }

  std::int64_t sleb() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; position_ < bytes_.size();) {
      const auto byte = std::to_integer<std::uint8_t>(bytes_[position_++]);
      if (shift < 64) value |= std::uint64_t{byte & 0x7FU} << shift;
      shift += 7;
      if ((byte & 0x80U) != 0) continue;
      if ((byte & 0x40U) != 0 && shift < 64) value |= ~std::uint64_t{0} << shift;
      return static_cast<std::int64_t>(value);
    }
    fail();
    return 0;
  }

  void skip_leb() {
    while (position_ < bytes_.size()) {
      if ((std::to_integer<std::uint8_t>(bytes_[position_++]) & 0x80U) == 0) return;
    }
    fail();
  }

  /// Up to the next NUL, which is passed over.
  std::string_view text() {
    const auto* start = reinterpret_cast<const char*>(bytes_.data()) + position_;
    const void* end = left() == 0 ? nullptr : std::memchr(start, 0, left());
    if (end == nullptr) {
      fail();
      return {};
    }
    const auto length = static_cast<std::size_t>(static_cast<const char*>(end) - start);
    position_ += length + 1;
    return {start, length};
  }

  std::span<const std::byte> block(std::uint64_t count) {
    const std::size_t start = position_;
    skip(count);
    return ok_ ? bytes_.subspan(start, static_cast<std::size_t>(count)) : std::span<const std::byte>();
  }

 private:
  template <typename T>
  T fixed() {
    T value{};
    if (left() < sizeof(T)) {
      fail();
      return value;
    }
    std::memcpy(&value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }

  void fail() {
    ok_ = false;
    position_ = bytes_.size();
  }

  std::span<const std::byte> bytes_;
  std::size_t position_ = 0;
  bool ok_ = true;
};

}  // namespace flamed::symbolizer
