// SPDX-License-Identifier: Apache-2.0
#include "api/frame_columns.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <unordered_map>

namespace flamed::api {
namespace {

/// Each text gets a number when it is first met.
class StringTable {
 public:
  std::uint64_t index_of(std::string_view text) {
    // What stands beside each other is often the same: the functions of one module.
    if (!strings_.empty() && text == strings_[last_]) return last_;
    const auto [entry, is_new] = indices_.try_emplace(text, strings_.size());
    if (is_new) strings_.push_back(text);
    return last_ = entry->second;
  }
  [[nodiscard]] const std::vector<std::string_view>& strings() const { return strings_; }

 private:
  std::vector<std::string_view> strings_;
  std::uint64_t last_ = 0;  ///< what was asked for last
  std::unordered_map<std::string_view, std::uint64_t> indices_;
};

using Column = std::vector<std::uint64_t>;

template <typename Value>
Column column_of(const store::FrameList& frames, Value&& value) {
  Column column;
  column.reserve(frames.size());
  for (const store::NamedFrame& frame : frames) column.push_back(value(frame));
  return column;
}

}  // namespace

void append_frame_columns(ColumnWriter& out, const store::FrameList& frames) {
  // The texts stand before the columns that point to them, but are found on the way through these.
  StringTable strings;
  StringTable kinds;
  const std::uint64_t none = strings.index_of("");
  const auto texts = [&](std::string store::NamedFrame::*member) {
    return column_of(frames, [&](const store::NamedFrame& frame) { return strings.index_of(frame.*member); });
  };
  const Column name = texts(&store::NamedFrame::name);
  const Column module = texts(&store::NamedFrame::module);
  const Column kind = column_of(frames, [&](const auto& frame) { return kinds.index_of(name_of(frame.kind)); });
  struct Known {
    std::string_view name;
    Column column;
    std::uint64_t nothing;
  };
  const std::array<Known, 6> known{{
      {"full_name", texts(&store::NamedFrame::full_name), none},
      {"reason", texts(&store::NamedFrame::reason), none},
      {"build_id", texts(&store::NamedFrame::build_id), none},
      {"file", texts(&store::NamedFrame::file), none},
      {"line", column_of(frames, [](const auto& frame) { return std::uint64_t{frame.line}; }), 0},
      {"inlined", column_of(frames, [](const auto& frame) { return std::uint64_t{frame.inlined ? 1U : 0U}; }), 0},
  }};

  out.texts("strings", strings.strings());
  out.json().key("kinds").begin_array();
  for (const std::string_view entry : kinds.strings()) out.json().string(entry);
  out.json().end_array();
  out.json().key("frames").begin_object();
  out.numbers("name", name);
  out.numbers("module", module);
  out.numbers("kind", kind);
  for (const Known& each : known) {
    const bool is_known =
        std::any_of(each.column.begin(), each.column.end(), [&](std::uint64_t value) { return value != each.nothing; });
    if (is_known) out.numbers(each.name, each.column);
  }
  out.json().end_object();
}

}  // namespace flamed::api
