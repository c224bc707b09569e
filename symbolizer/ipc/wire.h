// SPDX-License-Identifier: Apache-2.0
//
// WireWriter and WireReader: values as bytes between the daemon and its helpers. Both ends are the same program on the
// same machine, so numbers have their native layout.
//
// The writer does not copy large arrays, but refers to them for sendmsg(). The reader does not trust its bytes: it
// checks each count against the remaining size, and allocates memory only for bytes that have arrived.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.h"

namespace flamed::symbolizer {

class WireWriter {
 public:
  template <typename T>
  void number(T value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    append(&value, sizeof(value));
  }
  void text(std::string_view text) {
    number(std::uint64_t{text.size()});
    block(text.data(), text.size());
  }
  /// `values` must outlive pieces().
  template <typename T>
  void array(std::span<const T> values) {
    static_assert(std::is_trivially_copyable_v<T>);
    number(std::uint64_t{values.size()});
    block(values.data(), values.size_bytes());
  }

  /// Appends a copy of all of `other`.
  void copy(const WireWriter& other);

  [[nodiscard]] std::size_t size() const { return size_; }
  /// All bytes in order. Valid until the writer changes.
  [[nodiscard]] std::vector<std::span<const std::byte>> pieces() const;
  [[nodiscard]] std::vector<std::byte> bytes() const;

 private:
  /// From this size on a copy costs more than another piece.
  static constexpr std::size_t kLargeBytes = 4096;

  struct Piece {
    const std::byte* outside;  ///< null: the next `size` bytes of copied_
    std::size_t size;
  };

  void block(const void* data, std::size_t bytes);
  void append(const void* data, std::size_t bytes);

  std::vector<std::byte> copied_;
  std::vector<Piece> pieces_;
  std::size_t size_ = 0;
};

/// A source of bytes.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Fills `to`, or says why it can't.
  virtual Status read(std::span<std::byte> to) = 0;
};

class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::span<const std::byte> bytes) : left_(bytes) {}
  Status read(std::span<std::byte> to) override;

 private:
  std::span<const std::byte> left_;
};

/// After an error every function returns false, and the reader can't be used any more.
class WireReader {
 public:
  /// Reads `size` bytes of `source`.
  WireReader(ByteSource& source, std::uint64_t size) : source_(source), left_(size) {}

  template <typename T>
  [[nodiscard]] bool number(T& value) {
    static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
    return take(&value, sizeof(value));
  }
  /// Any other byte than 0 and 1 is an error.
  [[nodiscard]] bool flag(bool& value);
  [[nodiscard]] bool text(std::string& text, std::size_t max_bytes);
  template <typename T>
  [[nodiscard]] bool array(std::vector<T>& values, std::size_t max_count) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::uint64_t count = 0;
    if (!number(count)) return false;
    if (count > max_count || count > left_ / sizeof(T)) return damaged("a count is too large");
    return fill(values, static_cast<std::size_t>(count));
  }

  /// Records what is wrong with a value; returns false.
  [[nodiscard]] bool damaged(const char* what);
  [[nodiscard]] std::uint64_t left() const { return left_; }
  /// There was no error and nothing is left.
  [[nodiscard]] bool finished();

  /// The source's error.
  [[nodiscard]] const std::optional<Error>& source_error() const { return source_error_; }
  /// Null if nothing is wrong with the bytes themselves.
  [[nodiscard]] const char* damage() const { return damage_; }

 private:
  static constexpr std::size_t kStepBytes = std::size_t{1} << 20;

  [[nodiscard]] bool take(void* to, std::size_t bytes);
  /// Reserves memory at once, which costs nothing until it is touched, and touches it as bytes arrive.
  template <typename Container>
  [[nodiscard]] bool fill(Container& to, std::size_t count) {
    constexpr std::size_t kItem = sizeof(typename Container::value_type);
    to.clear();
    to.reserve(count);
    while (to.size() < count) {
      const std::size_t from = to.size();
      const std::size_t items = std::min(count - from, kStepBytes / kItem);
      to.resize(from + items);
      if (!take(to.data() + from, items * kItem)) return false;
    }
    return true;
  }

  ByteSource& source_;
  std::uint64_t left_;
  std::optional<Error> source_error_;
  const char* damage_ = nullptr;
};

}  // namespace flamed::symbolizer
