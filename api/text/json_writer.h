// SPDX-License-Identifier: Apache-2.0
//
// JsonWriter: appends JSON to a string. A profile has up to hundreds of thousands of nodes, nested as deep as stacks: a
// document tree would take many times the memory of the text, and a recursive writer would overflow the thread's stack.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace flamed::api {

/// Appends `text` as a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD.
void append_json_string(std::string& out, std::string_view text);

/// One thread; `out` must outlive it. The caller must follow JSON's grammar: begin/end in pairs, a key before each
/// value of an object.
class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) : out_(out) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);

  JsonWriter& string(std::string_view text);
  JsonWriter& number(std::uint64_t value);
  JsonWriter& number(std::int64_t value);
  JsonWriter& number(double value);  ///< null if it is not finite
  JsonWriter& boolean(bool value);
  JsonWriter& null();
  /// RFC 3339, as a string.
  JsonWriter& time(WallTime moment);
  /// Text that is JSON already: a value, or members of an object.
  JsonWriter& raw(std::string_view json);

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void separate();

  std::string& out_;
  bool comma_due_ = false;
};

}  // namespace flamed::api
