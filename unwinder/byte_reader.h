// SPDX-License-Identifier: Apache-2.0
//
// ByteReader: reads numbers out of bytes that nobody vouches for, never past their end.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace flamed::unwinder {

static_assert(std::endian::native == std::endian::little, "the files and this host are little-endian");

/// A read that would leave the bytes gives 0 and sets failed(), for good: check once, after the last read.
class ByteReader {
 public:
  ByteReader() = default;
  explicit ByteReader(std::span<const std::byte> bytes)
      : at_(reinterpret_cast<const std::uint8_t*>(bytes.data())), end_(at_ + bytes.size()) {}

  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }
  [[nodiscard]] const std::byte* position() const { return reinterpret_cast<const std::byte*>(at_); }

  [[nodiscard]] std::uint8_t u8() { return number<std::uint8_t>(); }
  [[nodiscard]] std::uint16_t u16() { return number<std::uint16_t>(); }
  [[nodiscard]] std::uint32_t u32() { return number<std::uint32_t>(); }
  [[nodiscard]] std::uint64_t u64() { return number<std::uint64_t>(); }

  /// LEB128 (DWARF 5 section 7.6). Fails on numbers that need more than 64 bits and on encodings longer than 10 bytes.
  [[nodiscard]] std::uint64_t uleb() {
    if (at_ != end_ && *at_ < 0x80) return *at_++;  // nearly all of them
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      const std::uint8_t byte = u8();
      if (failed_) return 0;
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
      if (failed_) return 0;
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

  void skip(std::uint64_t bytes) { static_cast<void>(take(bytes)); }
  /// The next `bytes` bytes.
  [[nodiscard]] std::span<const std::byte> take(std::uint64_t bytes) {
    if (bytes > left()) {
      fail();
      return {};
    }
    const std::span<const std::byte> taken(position(), static_cast<std::size_t>(bytes));
    at_ += bytes;
    return taken;
  }

 private:
  template <typename Number>
  Number number() {
    if (left() < sizeof(Number)) return static_cast<Number>(fail());
    Number value;
    std::memcpy(&value, at_, sizeof(Number));
    at_ += sizeof(Number);
    return value;
  }

  std::uint64_t fail() {
    failed_ = true;
    at_ = end_;
    return 0;
  }

  const std::uint8_t* at_ = nullptr;
  const std::uint8_t* end_ = nullptr;
  bool failed_ = false;
};

}  // namespace flamed::unwinder
