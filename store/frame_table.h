// SPDX-License-Identifier: Apache-2.0
//
// FrameTable: the distinct frames of one answer. A local of one query.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/budget.h"
#include "store/id_index.h"
#include "store/profile.h"
#include "store/profile_options.h"

namespace flamed::store {

class FrameTable {
 public:
  /// `lines`, `full_names`, `annotate` and `inlines` of the options decide how code is shown.
  explicit FrameTable(const ProfileOptions& options);
  FrameTable(const FrameTable&) = delete;
  FrameTable& operator=(const FrameTable&) = delete;

  /// As it is.
  std::uint32_t intern(const NamedFrame& frame) { return intern_as(frame, frame.name, frame.name.size()); }
  /// Appends the frames that a chain is shown as, outermost first. A chain that is null or empty is shown as unknown.
  void append_chain(const std::shared_ptr<const InlineChain>& chain, std::vector<std::uint32_t>& frames);

  [[nodiscard]] const NamedFrame& operator[](std::uint32_t frame) const { return frames_[frame].frame; }
  /// Without what `lines` and `annotate` appended to the name.
  [[nodiscard]] std::string_view bare_name(std::uint32_t frame) const {
    return std::string_view(frames_[frame].frame.name).substr(0, frames_[frame].bare_size);
  }
  [[nodiscard]] std::size_t size() const { return frames_.size(); }
  /// Moves the frame out: for whoever is done with the table.
  [[nodiscard]] NamedFrame take(std::uint32_t frame) { return std::move(frames_[frame].frame); }

 private:
  /// Frames are one when these are equal, whatever else is known of them. File and line are empty without `lines`.
  struct Key {
    std::string_view name, module, reason, file;
    std::uint32_t line = 0;
    FrameKind kind = FrameKind::kUnknown;
    bool inlined = false;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Entry {
    NamedFrame frame;
    std::size_t bare_size = 0;
    std::uint64_t hash = 0;
  };

  [[nodiscard]] static std::uint64_t hash_of(const Key& key);
  [[nodiscard]] Key key_of(const NamedFrame& frame, std::string_view name) const;
  std::uint32_t intern_code(const NamedFrame& frame);
  std::uint32_t intern_as(const NamedFrame& frame, std::string_view name, std::size_t bare_size);

  const bool lines_;
  const bool full_names_;
  const bool annotate_;
  const bool inlines_;
  std::deque<Entry> frames_;
  Budget unlimited_{static_cast<std::size_t>(-1) / 2};
  IdIndex ids_{unlimited_};
};

}  // namespace flamed::store
