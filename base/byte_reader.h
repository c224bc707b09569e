// SPDX-License-Identifier: Apache-2.0
//
// ByteReader: reads numbers and strings of ELF and DWARF from untrusted bytes, never past their end.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace flamed {

static_assert(std::endian::native == std::endian::little, "the files and this host are little-endian");

/// A read past the end returns 0 and makes ok() false forever: check once, after the last read.
class ByteReader {
 public:
  ByteReader() = default;
  explicit ByteReader(std::span<const std::byte> bytes, std::size_t position = 0)
      : begin_(reinterpret_cast<const std::uint8_t*>(bytes.data())), at_(begin_), end_(begin_ + bytes.size()) {
    seek(position);
  }

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }
  [[nodiscard]] std::size_t position() const { return static_cast<std::size_t>(at_ - begin_); }
  [[nodiscard]] const std::byte* at() const { return reinterpret_cast<const std::byte*>(at_); }

  void seek(std::size_t position) {
    if (position > static_cast<std::size_t>(end_ - begin_))
      fail();
    else
      at_ = begin_ + position;
  }
  void skip(std::uint64_t count) {
    if (count > left())
      fail();
    else
      at_ += count;
  }

  [[nodiscard]] std::uint8_t u8() { return fixed<std::uint8_t>(); }
  [[nodiscard]] std::uint16_t u16() { return fixed<std::uint16_t>(); }
  [[nodiscard]] std::uint32_t u32() { return fixed<std::uint32_t>(); }
  [[nodiscard]] std::uint64_t u64() { return fixed<std::uint64_t>(); }

  /// A number of 1, 2, 3, 4 or 8 bytes.
  [[nodiscard]] std::uint64_t number(std::size_t bytes) {
    switch (bytes) {
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
        return fail();
    }
  }

  /// LEB128 (DWARF 5 section 7.6). Fails on numbers that need more than 64 bits and on encodings longer than 10 bytes.
  [[nodiscard]] std::uint64_t uleb() {
    if (at_ != end_ && *at_ < 0x80) return *at_++;  // nearly all of them
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      const std::uint8_t byte = u8();
      if (!ok_) return 0;
      const std::uint64_t bits = byte & 0x7f;
      if (shift == 63 && bits > 1) break;
      value |= bits << shift;
      if ((byte & 0x80) == 0) return value;
    }
    return fail();
  }
  [[nodiscard]] std::int64_t sleb() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      const std::uint8_t byte = u8();
      if (!ok_) return 0;
      const std::uint64_t bits = byte & 0x7f;
      if (shift == 63 && bits != 0 && bits != 0x7f) break;
      value |= bits << shift;
      if ((byte & 0x80) == 0) {
        if ((byte & 0x40) != 0 && shift < 57) value |= ~std::uint64_t{0} << (shift + 7);
        return static_cast<std::int64_t>(value);
      }
    }
    return static_cast<std::int64_t>(fail());
  }
  void skip_leb() {
    while (at_ != end_) {
      if (*at_++ < 0x80) return;
    }
    fail();
  }

  /// Up to the next NUL, which is skipped.
  [[nodiscard]] std::string_view text() {
    const auto* start = reinterpret_cast<const char*>(at_);
    const void* end = left() == 0 ? nullptr : std::memchr(start, 0, left());
    if (end == nullptr) {
      fail();
      return {};
    }
    const auto length = static_cast<std::size_t>(static_cast<const char*>(end) - start);
    at_ += length + 1;
    return {start, length};
  }

  /// The next `count` bytes.
  [[nodiscard]] std::span<const std::byte> take(std::uint64_t count) {
    const std::byte* const start = at();
    skip(count);
    return ok_ ? std::span(start, static_cast<std::size_t>(count)) : std::span<const std::byte>();
  }

 private:
  template <typename T>
  T fixed() {
    if (left() < sizeof(T)) return static_cast<T>(fail());
    T value;
    std::memcpy(&value, at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

  std::uint64_t fail() {
    ok_ = false;
    at_ = end_;
    return 0;
  }

  const std::uint8_t* begin_ = nullptr;
  const std::uint8_t* at_ = nullptr;
  const std::uint8_t* end_ = nullptr;
  bool ok_ = true;
};

}  // namespace flamed
