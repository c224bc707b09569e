// SPDX-License-Identifier: Apache-2.0
#include "api/render/column_writer.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include "api/text/utf8.h"

namespace flamed::api {
namespace {

static_assert(std::endian::native == std::endian::little, "columns are written as they lie in memory");

constexpr std::string_view kMagic = "FLAMEDC1";
constexpr std::size_t kAlignment = 8;

std::size_t padding(std::size_t size) { return (kAlignment - size % kAlignment) % kAlignment; }

void append_u32(std::string& out, std::size_t value) {
  const auto number = static_cast<std::uint32_t>(value);
  out.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

}  // namespace

void ColumnWriter::refer(std::string_view name, std::string_view type, std::size_t count) {
  data_.append(padding(data_.size()), '\0');
  json_.key(name).begin_object();
  json_.key("type").string(type);
  json_.key("at").number(std::uint64_t{data_.size()});
  json_.key("count").number(std::uint64_t{count});
  json_.end_object();
}

template <typename Number>
void ColumnWriter::append(std::string_view name, std::string_view type, std::span<const std::uint64_t> values) {
  refer(name, type, values.size());
  std::size_t at = data_.size();
  data_.resize(at + values.size() * sizeof(Number));
  for (const std::uint64_t value : values) {
    const auto number = static_cast<Number>(value);
    std::memcpy(&data_[at], &number, sizeof(number));
    at += sizeof(number);
  }
}

void ColumnWriter::numbers(std::string_view name, std::span<const std::uint64_t> values) {
  if (form_ == ColumnForm::kJson) {
    json_.key(name).begin_array();
    for (const std::uint64_t value : values) json_.number(value);
    json_.end_array();
    return;
  }
  std::uint64_t largest = 0;
  for (const std::uint64_t value : values) largest = std::max(largest, value);
  if (largest <= std::numeric_limits<std::uint8_t>::max()) return append<std::uint8_t>(name, "u8", values);
  if (largest <= std::numeric_limits<std::uint16_t>::max()) return append<std::uint16_t>(name, "u16", values);
  if (largest <= std::numeric_limits<std::uint32_t>::max()) return append<std::uint32_t>(name, "u32", values);
  // Exact up to 2^53, as in JSON that is read into doubles.
  append<double>(name, "f64", values);
}

void ColumnWriter::reals(std::string_view name, std::span<const double> values) {
  if (form_ == ColumnForm::kJson) {
    json_.key(name).begin_array();
    for (const double value : values) json_.number(value);
    json_.end_array();
    return;
  }
  refer(name, "f64", values.size());
  data_.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

void ColumnWriter::texts(std::string_view name, std::span<const std::string_view> values) {
  if (form_ == ColumnForm::kJson) {
    json_.key(name).begin_array();
    for (const std::string_view value : values) json_.string(value);
    json_.end_array();
    return;
  }
  std::string all;
  numbers_.clear();
  for (const std::string_view value : values) {
    if (is_utf8(value)) {
      all += value;
    } else {
      all += repair_utf8(value);
    }
    numbers_.push_back(all.size());
  }
  json_.key(name).begin_object();
  numbers("ends", numbers_);
  refer("text", "u8", all.size());
  data_ += all;
  json_.end_object();
}

std::string ColumnWriter::finish() {
  if (form_ == ColumnForm::kJson) {
    head_ += '\n';
    return std::move(head_);
  }
  head_ += '\n';
  head_.append(padding(head_.size()), ' ');
  constexpr std::size_t kMost = std::numeric_limits<std::uint32_t>::max();
  if (head_.size() > kMost || data_.size() > kMost) throw std::length_error("columns of more than 4 GiB");
  std::string out;
  out.reserve(kMagic.size() + 8 + head_.size() + data_.size());
  out += kMagic;
  append_u32(out, head_.size());
  append_u32(out, data_.size());
  out += head_;
  out += data_;
  return out;
}

}  // namespace flamed::api
