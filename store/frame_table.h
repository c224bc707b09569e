// SPDX-License-Identifier: Apache-2.0
//
// FrameTable: the distinct frames of one answer. A frame that is shown as its chain has it is not copied: the table
// shares the chain. A local of one query.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/budget.h"
#include "store/frame_list.h"
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
  std::uint32_t intern(const NamedFrame& frame) { return intern_as(frame, frame.name, frame.name.size(), false); }
  /// Appends the frames that a chain is shown as, outermost first. A chain that is null or empty is shown as unknown.
  /// It must last as long as the table, or keep() take it.
  void append_chain(const InlineChain* chain, std::vector<std::uint32_t>& frames);
  /// Takes care that the chains last as long as the table and what list() gives.
  void keep(std::vector<std::shared_ptr<const InlineChain>> chains) { owned_->chains.push_back(std::move(chains)); }

  [[nodiscard]] const NamedFrame& operator[](std::uint32_t frame) const { return *frames_[frame].frame; }
  /// Without what `lines` and `annotate` appended to the name.
  [[nodiscard]] std::string_view bare_name(std::uint32_t frame) const {
    return std::string_view(frames_[frame].frame->name).substr(0, frames_[frame].bare_size);
  }
  [[nodiscard]] std::size_t size() const { return frames_.size(); }
  /// About as many more will come.
  void reserve(std::size_t frames);
  /// The frames for which `used` holds, by name, then by what else is told apart.
  [[nodiscard]] std::vector<std::uint32_t> in_order(const std::vector<bool>& used) const;
  /// For whoever is done with the table: these of its frames, with what owns them.
  [[nodiscard]] FrameList list(std::span<const std::uint32_t> frames) &&;

 private:
  /// Frames are one when these are equal, whatever else is known of them. File and line are empty without `lines`.
  struct Key {
    std::string_view name, module, reason, file;
    std::uint32_t line = 0;
    FrameKind kind = FrameKind::kUnknown;
    bool inlined = false;
    friend bool operator==(const Key&, const Key&) = default;
  };
  /// The first bytes of a name, such that they compare as names do; shorter names are filled up with zeroes.
  using Beginning = std::array<std::uint64_t, 2>;

  struct Entry {
    const NamedFrame* frame = nullptr;
    NamedFrame* own = nullptr;  ///< the same when it is the table's own, else null
    Beginning beginning{};
    std::size_t bare_size = 0;
  };
  /// What entries point to.
  struct Owned {
    std::deque<NamedFrame> frames;
    std::vector<std::vector<std::shared_ptr<const InlineChain>>> chains;
  };

  [[nodiscard]] static Beginning beginning_of(std::string_view name);
  [[nodiscard]] Key key_of(const NamedFrame& frame, std::string_view name) const;
  std::uint32_t intern_code(const NamedFrame& frame);
  /// `lasts`: the frame outlives the table.
  std::uint32_t intern_as(const NamedFrame& frame, std::string_view name, std::size_t bare_size, bool lasts);
  /// The entry's frame as the table's own, made so if need be.
  NamedFrame& own(Entry& entry);

  const bool lines_;
  const bool full_names_;
  const bool annotate_;
  const bool inlines_;
  std::vector<Entry> frames_;
  std::vector<std::uint64_t> hashes_;  ///< of the same frames, beside each other for who looks for one
  std::shared_ptr<Owned> owned_ = std::make_shared<Owned>();
  Budget unlimited_{static_cast<std::size_t>(-1) / 2};
  IdIndex ids_{unlimited_};
};

}  // namespace flamed::store
