// SPDX-License-Identifier: Apache-2.0
#include "api/text/json_writer.h"

#include <array>
#include <charconv>
#include <cmath>

#include "api/text/time_expression.h"
#include "api/text/utf8.h"

namespace flamed::api {
namespace {

template <typename Number>
void append_number(std::string& out, Number value) {
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{}) out.append(text.data(), end);
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out += '"';
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text.front());
    std::size_t taken = 1;
    if (first == '"' || first == '\\') {
      out += '\\';
      out += text.front();
    } else if (first == '\n') {
      out += "\\n";
    } else if (first < 0x20 || first == 0x7F) {
      out += "\\u00";
      out += kHex[first >> 4];
      out += kHex[first & 0xF];
    } else if (first < 0x80) {
      out += text.front();
    } else if (taken = utf8_character_length(text); taken != 0) {
      out += text.substr(0, taken);
    } else {
      out += kReplacementCharacter;
      taken = 1;
    }
    text.remove_prefix(taken);
  }
  out += '"';
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  append_json_string(out_, name);
  out_ += ':';
  comma_due_ = false;
  return *this;
}

JsonWriter& JsonWriter::string(std::string_view text) {
  separate();
  append_json_string(out_, text);
  return *this;
}

JsonWriter& JsonWriter::number(std::uint64_t value) {
  separate();
  append_number(out_, value);
  return *this;
}

JsonWriter& JsonWriter::number(std::int64_t value) {
  separate();
  append_number(out_, value);
  return *this;
}

JsonWriter& JsonWriter::number(double value) {
  if (!std::isfinite(value)) return null();
  separate();
  append_number(out_, value);
  return *this;
}

JsonWriter& JsonWriter::boolean(bool value) { return raw(value ? "true" : "false"); }

JsonWriter& JsonWriter::null() { return raw("null"); }

JsonWriter& JsonWriter::time(WallTime moment) { return string(format_time(moment)); }

JsonWriter& JsonWriter::raw(std::string_view json) {
  separate();
  out_ += json;
  return *this;
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  out_ += bracket;
  comma_due_ = false;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  out_ += bracket;
  comma_due_ = true;
  return *this;
}

void JsonWriter::separate() {
  if (comma_due_) out_ += ',';
  comma_due_ = true;
}

}  // namespace flamed::api
