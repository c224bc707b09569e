// SPDX-License-Identifier: Apache-2.0
//
// ProtobufReader: the fields of one message in the wire format of protocol buffers
// (https://protobuf.dev/programming-guides/encoding/), one after the other. Bytes of a stranger: every length is
// checked, nothing is copied, and nothing is nested, since messages within are bytes until somebody reads them. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"

namespace flamed {

enum class WireType : std::uint8_t {
  kVarint = 0,
  kFixed64 = 1,
  kBytes = 2,
  kBeginGroup = 3,
  kEndGroup = 4,
  kFixed32 = 5
};

struct ProtobufField {
  std::uint32_t number = 0;  ///< from 1 on
  WireType type = WireType::kVarint;
  std::uint64_t value = 0;   ///< of the three types of numbers
  std::string_view bytes{};  ///< of kBytes: a string, bytes, a message or a packed list
};

/// One thread; the message must outlive it.
class ProtobufReader {
 public:
  explicit ProtobufReader(std::string_view message) : rest_(message) {}

  /// Empty at the end of the message. Groups, which no schema has had since proto3, are skipped.
  Result<std::optional<ProtobufField>> next();

 private:
  Result<std::optional<ProtobufField>> read_one();
  std::optional<std::uint64_t> varint();
  std::optional<std::uint64_t> fixed(std::size_t bytes);

  std::string_view rest_;
};

}  // namespace flamed
