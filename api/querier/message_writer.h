// SPDX-License-Identifier: Apache-2.0
//
// ProtobufMessage and JsonMessage: a message's fields, written in either encoding by the same calls. Fields with the
// default value are left out, as proto3 does. One thread; `out` must outlive them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/text/json_writer.h"
#include "base/protobuf_writer.h"

namespace flamed::api {

struct FieldName {
  std::uint32_t number;
  std::string_view name;  ///< in JSON
};

class ProtobufMessage {
 public:
  explicit ProtobufMessage(std::string& out) : out_(out) {}

  void text(FieldName field, std::string_view value) {
    if (!value.empty()) out_.bytes(field.number, value);
  }
  void texts(FieldName field, const std::vector<std::string>& values) {
    for (const std::string& value : values) out_.bytes(field.number, value);
  }
  void number(FieldName field, std::int64_t value) { out_.number(field.number, static_cast<std::uint64_t>(value)); }
  void numbers(FieldName field, const std::vector<std::int64_t>& values) {
    if (values.empty()) return;
    std::string packed;
    ProtobufWriter list(packed);
    for (const std::int64_t value : values) list.varint(static_cast<std::uint64_t>(value));
    out_.bytes(field.number, packed);
  }
  void real(FieldName field, double value) { out_.real(field.number, value); }
  void flag(FieldName field, bool value) { out_.number(field.number, value ? 1 : 0); }
  /// write(ProtobufMessage&)
  template <typename F>
  void message(FieldName field, F&& write) {
    std::string encoded;
    ProtobufMessage message(encoded);
    write(message);
    out_.bytes(field.number, encoded);
  }
  /// write(ProtobufMessage&, value) for each value
  template <typename Values, typename F>
  void messages(FieldName field, const Values& values, F&& write) {
    for (const auto& value : values) {
      message(field, [&](ProtobufMessage& message) { write(message, value); });
    }
  }

 private:
  ProtobufWriter out_;
};

/// Its caller writes the braces.
class JsonMessage {
 public:
  explicit JsonMessage(JsonWriter& out) : out_(out) {}

  void text(FieldName field, std::string_view value) {
    if (!value.empty()) out_.key(field.name).string(value);
  }
  void texts(FieldName field, const std::vector<std::string>& values) {
    list(field, values, [&](const std::string& value) { out_.string(value); });
  }
  /// As a text: JavaScript's numbers have 53 bits.
  void number(FieldName field, std::int64_t value) {
    if (value != 0) out_.key(field.name).string(std::to_string(value));
  }
  void numbers(FieldName field, const std::vector<std::int64_t>& values) {
    list(field, values, [&](std::int64_t value) { out_.string(std::to_string(value)); });
  }
  void real(FieldName field, double value) {
    if (value != 0) out_.key(field.name).number(value);
  }
  void flag(FieldName field, bool value) {
    if (value) out_.key(field.name).boolean(value);
  }
  /// write(JsonMessage&)
  template <typename F>
  void message(FieldName field, F&& write) {
    out_.key(field.name).begin_object();
    write(*this);
    out_.end_object();
  }
  /// write(JsonMessage&, value) for each value
  template <typename Values, typename F>
  void messages(FieldName field, const Values& values, F&& write) {
    list(field, values, [&](const auto& value) {
      out_.begin_object();
      write(*this, value);
      out_.end_object();
    });
  }

 private:
  template <typename Values, typename F>
  void list(FieldName field, const Values& values, F&& append) {
    if (values.empty()) return;
    out_.key(field.name).begin_array();
    for (const auto& value : values) append(value);
    out_.end_array();
  }

  JsonWriter& out_;
};

}  // namespace flamed::api
