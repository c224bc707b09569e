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
    const auto [entry, is_new] = indices_.try_emplace(text, strings_.size());
    if (is_new) strings_.push_back(text);
    return entry->second;
  }
  [[nodiscard]] const std::vector<std::string_view>& strings() const { return strings_; }

 private:
  std::vector<std::string_view> strings_;
  std::unordered_map<std::string_view, std::uint64_t> indices_;
};

void append_numbers(JsonWriter& json, std::string_view name, const std::vector<std::uint64_t>& numbers) {
  append_column(json, name, numbers, [](std::uint64_t number) { return number; });
}

}  // namespace

void append_frame_columns(JsonWriter& json, std::span<const store::NamedFrame> frames) {
  StringTable strings;
  StringTable kinds;
  std::vector<std::uint64_t> names;
  std::vector<std::uint64_t> modules;
  std::vector<std::uint64_t> frame_kinds;
  std::string details;
  JsonWriter detail(details);
  detail.begin_object();
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const store::NamedFrame& frame = frames[i];
    names.push_back(strings.index_of(frame.name));
    modules.push_back(strings.index_of(frame.module));
    frame_kinds.push_back(kinds.index_of(name_of(frame.kind)));
    if (frame.reason.empty() && frame.build_id.empty() && frame.file.empty() && frame.line == 0 && !frame.inlined) {
      continue;
    }
    detail.key(std::to_string(i)).begin_object();
    if (!frame.reason.empty()) detail.key("reason").number(strings.index_of(frame.reason));
    if (!frame.build_id.empty()) detail.key("build_id").number(strings.index_of(frame.build_id));
    if (!frame.file.empty()) detail.key("file").number(strings.index_of(frame.file));
    if (frame.line != 0) detail.key("line").number(std::uint64_t{frame.line});
    if (frame.inlined) detail.key("inlined").boolean(true);
    detail.end_object();
  }
  detail.end_object();

  const auto append_strings = [&](std::string_view name, const StringTable& table) {
    json.key(name).begin_array();
    for (const std::string_view text : table.strings()) json.string(text);
    json.end_array();
  };
  append_strings("strings", strings);
  append_strings("kinds", kinds);
  json.key("frames").begin_object();
  append_numbers(json, "name", names);
  append_numbers(json, "module", modules);
  append_numbers(json, "kind", frame_kinds);
  json.key("details").raw(details);
  json.end_object();
}

}  // namespace flamed::api
