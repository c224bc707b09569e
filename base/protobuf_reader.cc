// SPDX-License-Identifier: Apache-2.0
#include "base/protobuf_reader.h"

#include <array>
#include <cstddef>
#include <utility>

namespace flamed {
namespace {

constexpr std::uint64_t kLargestNumber = (1U << 29U) - 1;
constexpr std::size_t kMostVarintBytes = 10;
/// As deep as the readers of protocol buffers themselves go.
constexpr std::size_t kDeepestGroup = 100;

}  // namespace

Result<std::optional<ProtobufField>> ProtobufReader::next() {
  std::array<std::uint32_t, kDeepestGroup> groups{};  // that are open
  std::size_t depth = 0;
  while (true) {
    Result<std::optional<ProtobufField>> field = read_one();
    if (!field.ok()) return field;
    if (!field.value().has_value()) {
      if (depth != 0) return Error("it ends within a group");
      return field;
    }
    const ProtobufField& read = **field;
    if (read.type == WireType::kBeginGroup) {
      if (depth == groups.size()) return Error("its groups are nested too deep");
      groups[depth++] = read.number;
    } else if (read.type == WireType::kEndGroup) {
      if (depth == 0 || groups[--depth] != read.number) return Error("a group ends that did not begin");
    } else if (depth == 0) {
      return field;
    }
  }
}

Result<std::optional<ProtobufField>> ProtobufReader::read_one() {
  if (rest_.empty()) return std::optional<ProtobufField>();
  const std::optional<std::uint64_t> tag = varint();
  if (!tag) return Error("it ends within the number of a field");
  const std::uint64_t number = *tag >> 3U;
  if (number == 0 || number > kLargestNumber) return Error("the number of a field is out of range");
  ProtobufField field{static_cast<std::uint32_t>(number), static_cast<WireType>(*tag & 7U)};
  std::optional<std::uint64_t> value = 0;
  switch (field.type) {
    case WireType::kVarint:
    case WireType::kBytes:
      value = varint();
      break;
    case WireType::kFixed64:
      value = fixed(sizeof(std::uint64_t));
      break;
    case WireType::kFixed32:
      value = fixed(sizeof(std::uint32_t));
      break;
    case WireType::kBeginGroup:
    case WireType::kEndGroup:
      break;
    default:
      return Error("field " + std::to_string(number) + " has a wire type that does not exist");
  }
  if (!value) return Error("it ends within field " + std::to_string(number));
  if (field.type == WireType::kBytes) {
    if (*value > rest_.size()) return Error("field " + std::to_string(number) + " is longer than the message");
    field.bytes = rest_.substr(0, static_cast<std::size_t>(*value));
    rest_.remove_prefix(field.bytes.size());
  } else {
    field.value = *value;
  }
  return std::optional(field);
}

std::optional<std::uint64_t> ProtobufReader::varint() {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < kMostVarintBytes && i < rest_.size(); ++i) {
    const auto byte = static_cast<unsigned char>(rest_[i]);
    value |= std::uint64_t{byte & 0x7FU} << (7 * i);
    if ((byte & 0x80U) != 0) continue;
    rest_.remove_prefix(i + 1);
    return value;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> ProtobufReader::fixed(std::size_t bytes) {
  if (rest_.size() < bytes) return std::nullopt;
  std::uint64_t value = 0;
  for (std::size_t i = bytes; i-- > 0;) value = value << 8U | static_cast<unsigned char>(rest_[i]);
  rest_.remove_prefix(bytes);
  return value;
}

}  // namespace flamed
