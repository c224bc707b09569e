// SPDX-License-Identifier: Apache-2.0
//
// ColumnWriter: writes an answer whose long parts are columns of numbers, either all as JSON, or as JSON followed by
// the columns in binary. A reader of the binary form neither parses nor copies a million nodes. Pure; one thread.
//
// The binary form, all numbers little-endian:
//
//   0     8 bytes   "FLAMEDC1"
//   8     u32       H, length of the head: JSON in UTF-8, filled up with blanks to a multiple of 8
//   12 u32 D, length of the data; the answer ends after it
//   16 H bytes the head: the JSON form, with the place of each column instead of its values:
//                   {"type": "u16", "at": 64, "count": 3}
//
//   16+H  D bytes   the data: a column begins at its `at`, a multiple of 8
//
// Types are u8, u16, u32 (the narrowest that holds all of a column), and f64. Texts are {"ends": column, "text":
// column}: `text` has all of them in UTF-8, one after the other, as a column of u8, and `ends` the end of each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/text/json_writer.h"

namespace flamed::api {

enum class ColumnForm : std::uint8_t { kJson, kBinary };

inline constexpr std::string_view kBinaryColumnsType = "application/x-flamed-columns";

class ColumnWriter {
 public:
  explicit ColumnWriter(ColumnForm form) : form_(form), json_(head_) {}
  ColumnWriter(const ColumnWriter&) = delete;
  ColumnWriter& operator=(const ColumnWriter&) = delete;

  /// The JSON around the columns; the columns are members of its objects.
  JsonWriter& json() { return json_; }

  /// One number of each of `rows`.
  template <typename Rows, typename Value>
  void column(std::string_view name, const Rows& rows, Value&& value) {
    numbers_.clear();
    numbers_.reserve(rows.size());
    for (const auto& row : rows) numbers_.push_back(static_cast<std::uint64_t>(value(row)));
    numbers(name, numbers_);
  }
  void numbers(std::string_view name, std::span<const std::uint64_t> values);
  void reals(std::string_view name, std::span<const double> values);
  void texts(std::string_view name, std::span<const std::string_view> values);

  /// Returns the answer; call it once, after the JSON is complete. Throws std::length_error beyond 4 GiB, the limit of
  /// the binary form; the limits of a query are far below.
  std::string finish();

 private:
  /// Begins a column in the data, and names it in the head.
  void refer(std::string_view name, std::string_view type, std::size_t count);
  template <typename Number>
  void append(std::string_view name, std::string_view type, std::span<const std::uint64_t> values);

  const ColumnForm form_;
  std::string head_;
  std::string data_;
  JsonWriter json_;
  std::vector<std::uint64_t> numbers_;  ///< of the current column; reused for the next one
};

}  // namespace flamed::api
