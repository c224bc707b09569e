// SPDX-License-Identifier: Apache-2.0
//
// FrameList: the distinct frames of an answer. Shares them with the cache of names: copying and freeing a hundred
// thousand frames costs more than counting their samples. A value; copies share, too.
#pragma once

#include <cstddef>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "base/named_frame.h"

namespace flamed::store {

class FrameList {
 public:
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = NamedFrame;
    using difference_type = std::ptrdiff_t;
    using pointer = const NamedFrame*;
    using reference = const NamedFrame&;

    Iterator() = default;
    explicit Iterator(const NamedFrame* const* at) : at_(at) {}
    reference operator*() const { return **at_; }
    pointer operator->() const { return *at_; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++at_;
      return before;
    }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const NamedFrame* const* at_ = nullptr;
  };

  FrameList() = default;

  const NamedFrame& operator[](std::size_t frame) const { return *frames_[frame]; }
  [[nodiscard]] const NamedFrame& back() const { return *frames_.back(); }
  /// Prefetches the frame, if there is one.
  void prefetch(std::size_t frame) const {
    if (frame >= frames_.size()) return;
    constexpr std::size_t kLine = 64;
    const char* at = reinterpret_cast<const char*>(frames_[frame]);
    for (std::size_t byte = 0; byte < sizeof(NamedFrame); byte += kLine) __builtin_prefetch(at + byte);
  }
  [[nodiscard]] std::size_t size() const { return frames_.size(); }
  [[nodiscard]] bool empty() const { return frames_.empty(); }
  [[nodiscard]] Iterator begin() const { return Iterator(frames_.data()); }
  [[nodiscard]] Iterator end() const { return Iterator(frames_.data() + frames_.size()); }

  /// Adds a frame that the list owns.
  void push_back(NamedFrame frame) {
    auto own = std::make_shared<const NamedFrame>(std::move(frame));
    frames_.push_back(own.get());
    keepers_.push_back(std::move(own));
  }
  /// Adds a frame of another owner, which must be passed to keep().
  void share(const NamedFrame& frame) { frames_.push_back(&frame); }
  void reserve(std::size_t frames) { frames_.reserve(frames); }
  /// Keeps the owner of shared frames alive as long as the list.
  void keep(std::shared_ptr<const void> owner) { keepers_.push_back(std::move(owner)); }

 private:
  std::vector<const NamedFrame*> frames_;
  std::vector<std::shared_ptr<const void>> keepers_;
};

}  // namespace flamed::store
