// SPDX-License-Identifier: Apache-2.0
#include "api/render/frame_columns.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/keyed_hash.h"

namespace flamed::api {
namespace {

/// Numbers texts in the order of their first use.
class StringTable {
 public:
  std::uint64_t index_of(std::string_view text) {
    // Consecutive texts are often the same: functions of one module.
    if (!strings_.empty() && text == strings_[last_]) return last_;
    const auto [entry, is_new] = indices_.try_emplace(text, strings_.size());
    if (is_new) strings_.push_back(text);
    return last_ = entry->second;
  }
  [[nodiscard]] const std::vector<std::string_view>& strings() const { return strings_; }

 private:
  std::vector<std::string_view> strings_;
  std::uint64_t last_ = 0;  ///< of the last look-up
  std::unordered_map<std::string_view, std::uint64_t, KeyedTextHash> indices_;
};

/// The distance, in frames, of prefetching.
constexpr std::size_t kAhead = 8;

using Column = std::vector<std::uint64_t>;

constexpr std::array kTexts{&store::NamedFrame::name,   &store::NamedFrame::module,   &store::NamedFrame::full_name,
                            &store::NamedFrame::reason, &store::NamedFrame::build_id, &store::NamedFrame::file};
using Texts = std::array<std::string_view, kTexts.size()>;

}  // namespace

void append_frame_columns(ColumnWriter& out, const store::FrameList& frames) {
  // The texts are written before the columns that refer to them, but are collected from these. Frames are scattered in
  // memory: each is read once.
  StringTable strings;
  StringTable kinds;
  const std::uint64_t none = strings.index_of("");
  std::vector<Texts> texts(frames.size());
  Column kind(frames.size());
  Column line(frames.size());
  Column inlined(frames.size());
  for (std::size_t i = 0; i < frames.size(); ++i) {
    frames.prefetch(i + kAhead);
    const store::NamedFrame& frame = frames[i];
    for (std::size_t text = 0; text < kTexts.size(); ++text) texts[i][text] = frame.*kTexts[text];
    kind[i] = kinds.index_of(name_of(frame.kind));
    line[i] = frame.line;
    inlined[i] = frame.inlined ? 1 : 0;
  }
  std::array<Column, kTexts.size()> columns;
  for (std::size_t text = 0; text < kTexts.size(); ++text) {
    columns[text].reserve(frames.size());
    for (const Texts& of : texts) columns[text].push_back(strings.index_of(of[text]));
  }
  const auto& [name, module, full_name, reason, build_id, file] = columns;
  struct Known {
    std::string_view name;
    const Column& column;
    std::uint64_t nothing;
  };
  const std::array<Known, 6> known{{
      {"full_name", full_name, none},
      {"reason", reason, none},
      {"build_id", build_id, none},
      {"file", file, none},
      {"line", line, 0},
      {"inlined", inlined, 0},
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
