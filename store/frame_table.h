// SPDX-License-Identifier: Apache-2.0
//
// FrameTable: the distinct frames of one answer: functions of a FunctionTable, and frames of the answer's own, such as
// its root. A local of one query; must not outlive the FunctionTable, to which nothing may be added meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "store/frame_list.h"
#include "store/function_table.h"
#include "store/profile.h"

namespace flamed::store {

class FrameTable {
 public:
  explicit FrameTable(FunctionTable& functions) : functions_(functions), seen_(functions.size()) {}
  FrameTable(const FrameTable&) = delete;
  FrameTable& operator=(const FrameTable&) = delete;

  /// Notes that the answer has a variant of a function: what differs between two does not hold for the function.
  void see(std::uint32_t variant);
  /// A frame of the answer's own, as it is.
  std::uint32_t intern(const NamedFrame& frame);

  /// Functions have the numbers that the FunctionTable gave them.
  [[nodiscard]] const NamedFrame& operator[](std::uint32_t frame) const {
    return frame < seen_.size() ? functions_[frame] : own_[frame - seen_.size()];
  }
  /// Without what `lines` and `annotate` appended to the name.
  [[nodiscard]] std::string_view bare_name(std::uint32_t frame) const {
    return frame < seen_.size() ? functions_.bare_name(frame) : std::string_view((*this)[frame].name);
  }
  [[nodiscard]] std::size_t size() const { return seen_.size() + own_.size(); }
  /// The frames for which `used` holds, by name, then by what else is told apart.
  [[nodiscard]] std::vector<std::uint32_t> in_order(const std::vector<bool>& used) const;
  /// For whoever is done with the table: these of its frames, with what owns them.
  [[nodiscard]] FrameList list(std::span<const std::uint32_t> frames) &&;

 private:
  /// What the answer has of a function.
  struct Seen {
    std::uint32_t variant = 0;  ///< 1 + the first that was seen; 0: none was
    std::uint32_t file = 0;     ///< number of its file, or of the first that has one
    std::uint32_t file_of = 0;  ///< variant
    FunctionTable::Differences differences;
  };

  FunctionTable& functions_;
  std::vector<Seen> seen_;  ///< by function
  std::deque<NamedFrame> own_;
  Budget unlimited_{static_cast<std::size_t>(-1) / 2};
  IdIndex own_ids_{unlimited_};
};

}  // namespace flamed::store
