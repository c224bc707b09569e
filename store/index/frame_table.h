// SPDX-License-Identifier: Apache-2.0
//
// FrameTable: the distinct frames of one answer: functions of a FunctionTable, and frames of the answer's own, such as
// its root. A local of one query; must not outlive the FunctionTable, which must not grow meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "store/index/function_table.h"
#include "store/model/frame_list.h"
#include "store/model/profile.h"

namespace flamed::store {

class FrameTable {
 public:
  explicit FrameTable(FunctionTable& functions) : functions_(functions), number_of_(functions.counters()) {}
  ~FrameTable();
  FrameTable(const FrameTable&) = delete;
  FrameTable& operator=(const FrameTable&) = delete;

  /// The expected number of functions.
  void reserve(std::size_t functions) { frames_.reserve(frames_.size() + functions); }
  /// The frame of a function that existed before this table.
  std::uint32_t of(std::uint32_t function) {
    std::uint32_t& number = number_of_[function];
    if (number == 0) {
      frames_.push_back({function, 0, 0, 0, {}});
      number = static_cast<std::uint32_t>(frames_.size());
    }
    return number - 1;
  }
  /// Records that the answer has a variant of a function: values that differ between variants are left out of the
  /// function.
  void see(std::uint32_t variant);
  /// A frame of the answer itself, unchanged.
  std::uint32_t intern(const NamedFrame& frame);

  [[nodiscard]] const NamedFrame& operator[](std::uint32_t frame) const {
    const Frame& known = frames_[frame];
    return known.is_own() ? own_[known.variant] : functions_[known.function];
  }
  /// Without what `lines` and `annotate` appended to the name.
  [[nodiscard]] std::string_view bare_name(std::uint32_t frame) const {
    const Frame& known = frames_[frame];
    return known.is_own() ? std::string_view(own_[known.variant].name) : functions_.bare_name(known.function);
  }
  [[nodiscard]] std::size_t size() const { return frames_.size(); }
  /// The `used` frames, sorted by name, then by the other distinguishing values.
  [[nodiscard]] std::vector<std::uint32_t> in_order(const std::vector<bool>& used) const;
  /// Moves these frames out, with their owners.
  [[nodiscard]] FrameList list(std::span<const std::uint32_t> frames) &&;

 private:
  static constexpr std::uint32_t kNone = 0xffffffffU;

  struct Frame {
    std::uint32_t function = kNone;  ///< kNone: a frame of the answer itself
    std::uint32_t variant = 0;       ///< 1 + the first that was seen, 0: none; for a frame of the answer: index into
                                     ///< own_
    std::uint32_t file = 0;          ///< number of its file, or of the first variant's that has one
    std::uint32_t file_of = 0;       ///< variant
    FunctionTable::Differences differences;

    [[nodiscard]] bool is_own() const { return function == kNone; }
  };

  FunctionTable& functions_;
  std::vector<std::uint32_t>& number_of_;  ///< by function: 1 + index into frames_; 0: none
  std::vector<Frame> frames_;
  std::deque<NamedFrame> own_;
  Budget unlimited_{static_cast<std::size_t>(-1) / 2};
  IdIndex own_ids_{unlimited_};  ///< indices into frames_
};

}  // namespace flamed::store
