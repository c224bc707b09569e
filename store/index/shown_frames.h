// SPDX-License-Identifier: Apache-2.0
//
// ShownFrames: the names of the call-tree's frames, by frame number. A name is kept as long as the FrameNamer says that
// it has not changed. One thread at a time; must not outlive its FunctionTable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "store/index/function_table.h"
#include "store/model/profile.h"
#include "store/ring/call_tree.h"

namespace flamed::store {

class ShownFrames {
 public:
  /// Without `interpreter`, frames of interpreters have no functions.
  ShownFrames(FunctionTable& functions, bool interpreter) : functions_(functions), interpreter_(interpreter) {}

  /// The modules of all named frames, each once.
  [[nodiscard]] std::span<const ModuleId> modules() const { return modules_; }
  [[nodiscard]] bool is_known(std::uint32_t id) const { return id < at_.size() && at_[id] != 0; }
  void forget(std::uint32_t id) {
    at_[id] = 0;
    changeable_.erase(id);
  }
  /// Names those of `ids` that have no name yet, whose names may have changed, or that were named in another edition.
  /// True if the functions of a known one have changed.
  bool name(std::span<const std::uint32_t> ids, const CallTree::Frames::View& frames, FrameNamer& namer,
            std::uint64_t edition);
  /// Variants of the FunctionTable, outermost first; none for a frame that was not named.
  [[nodiscard]] std::span<const std::uint32_t> chain(std::uint32_t id) const {
    if (!is_known(id)) return {};
    const Place& place = places_[at_[id] - 1];
    return std::span(variants_).subspan(place.begin, place.size);
  }
  [[nodiscard]] std::size_t bytes() const {
    return at_.capacity() * sizeof(std::uint32_t) + places_.capacity() * sizeof(Place) +
           variants_.capacity() * sizeof(std::uint32_t) + changeable_.size() * kChangeableBytes;
  }

 private:
  static constexpr std::size_t kChangeableBytes = 56;  ///< a node of changeable_ and its bucket

  struct Place {
    std::uint32_t begin = 0;  ///< into variants_
    std::uint32_t size = 0;
    std::uint32_t edition = 0;  ///< number of the edition, see number_of()
    bool may_change = false;    ///< it is among changeable_
  };

  /// Numbers editions in the order in which they appear.
  std::uint32_t number_of(std::uint64_t edition);
  [[nodiscard]] bool shows_same(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b) const;

  FunctionTable& functions_;
  const bool interpreter_;
  std::vector<std::uint32_t> at_;  ///< by FrameId: 1 + index into places_; 0: not known
  std::vector<Place> places_;
  std::vector<std::uint32_t> variants_;  ///< chain after chain
  /// By FrameId: the names that may change, to recognise an unchanged chain by its pointer.
  std::unordered_map<std::uint32_t, std::shared_ptr<const InlineChain>> changeable_;
  std::uint64_t edition_ = 0;   ///< the last one
  std::uint32_t editions_ = 0;  ///< number of editions so far
  std::vector<ModuleId> modules_;
  std::unordered_set<ModuleId> known_modules_;
};

}  // namespace flamed::store
