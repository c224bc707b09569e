// SPDX-License-Identifier: Apache-2.0
#include "api/frame_columns.h"

#include <string>
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

/// A member of "frames" with one number of each frame; left out where it would be `nothing` throughout.
template <typename Value>
void append_where_known(JsonWriter& json, std::string_view name, const store::FrameList& frames, std::uint64_t nothing,
                        Value&& value) {
  std::vector<std::uint64_t> column;
  column.reserve(frames.size());
  bool is_known = false;
  for (const store::NamedFrame& frame : frames) {
    column.push_back(value(frame));
    is_known = is_known || column.back() != nothing;
  }
  if (is_known) append_column(json, name, column, [](std::uint64_t number) { return number; });
}

}  // namespace

void append_frame_columns(JsonWriter& json, const store::FrameList& frames) {
  // The texts stand before the columns that point to them, but are found on the way through these.
  std::string columns;
  JsonWriter column(columns);
  StringTable strings;
  StringTable kinds;
  const std::uint64_t none = strings.index_of("");
  const auto text = [&strings](std::string store::NamedFrame::*member) {
    return [&strings, member](const store::NamedFrame& frame) { return strings.index_of(frame.*member); };
  };
  append_column(column, "name", frames, text(&store::NamedFrame::name));
  append_column(column, "module", frames, text(&store::NamedFrame::module));
  append_column(column, "kind", frames, [&](const auto& frame) { return kinds.index_of(name_of(frame.kind)); });
  append_where_known(column, "full_name", frames, none, text(&store::NamedFrame::full_name));
  append_where_known(column, "reason", frames, none, text(&store::NamedFrame::reason));
  append_where_known(column, "build_id", frames, none, text(&store::NamedFrame::build_id));
  append_where_known(column, "file", frames, none, text(&store::NamedFrame::file));
  append_where_known(column, "line", frames, 0, [](const auto& frame) { return std::uint64_t{frame.line}; });
  append_where_known(column, "inlined", frames, 0,
                     [](const auto& frame) { return std::uint64_t{frame.inlined ? 1U : 0U}; });

  const auto append_strings = [&](std::string_view name, const StringTable& table) {
    json.key(name).begin_array();
    for (const std::string_view entry : table.strings()) json.string(entry);
    json.end_array();
  };
  append_strings("strings", strings);
  append_strings("kinds", kinds);
  json.key("frames").begin_object();
  json.raw(columns);
  json.end_object();
}

}  // namespace flamed::api
