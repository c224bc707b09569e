// SPDX-License-Identifier: Apache-2.0
//
// ProtobufWriter: appends the wire format of protocol buffers (https://protobuf.dev/programming-guides/encoding/) to a
// string: the wire types that the schemas of pprof, Pyroscope, OpenTelemetry and the CRI need.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace flamed {

/// One thread; `out` must outlive it.
class ProtobufWriter {
 public:
  explicit ProtobufWriter(std::string& out) : out_(out) {}

  /// Leaves out fields whose value is 0, as proto3 does: readers take a missing one for 0.
  ProtobufWriter& number(std::uint32_t field, std::uint64_t value) {
    if (value == 0) return *this;
    varint(std::uint64_t{field} << 3U);
    varint(value);
    return *this;
  }
  /// Left out likewise.
  ProtobufWriter& real(std::uint32_t field, double value) {
    if (value == 0) return *this;
    return fixed64(field, std::bit_cast<std::uint64_t>(value));
  }
  ProtobufWriter& fixed64(std::uint32_t field, std::uint64_t value) {
    varint((std::uint64_t{field} << 3U) | 1U);
    for (std::size_t i = 0; i < sizeof value; ++i, value >>= 8U) out_ += static_cast<char>(value & 0xFFU);
    return *this;
  }
  /// A string, bytes, a message or a packed list.
  ProtobufWriter& bytes(std::uint32_t field, std::string_view value) {
    varint((std::uint64_t{field} << 3U) | 2U);
    varint(value.size());
    out_ += value;
    return *this;
  }
  /// An element of a packed list, without a tag.
  ProtobufWriter& varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7U) out_ += static_cast<char>((value & 0x7FU) | 0x80U);
    out_ += static_cast<char>(value);
    return *this;
  }

 private:
  std::string& out_;
};

}  // namespace flamed
