// SPDX-License-Identifier: Apache-2.0
//
// Budget: counts the bytes of the store's parts and says whether there is room for more. A part asks before it grows;
// bytes that it must have (a slot's header) it takes without asking, so the limit of the whole is a little below the
// configured one. Writer only. A part's budget must not outlive the whole's.
#pragma once

#include <cstddef>

namespace flamed::store {

class Budget {
 public:
  explicit Budget(std::size_t limit_bytes, Budget* whole = nullptr) : limit_bytes_(limit_bytes), whole_(whole) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  [[nodiscard]] bool has_room(std::size_t bytes) const {
    return used_bytes_ + bytes + held_back_ <= limit_bytes_ && (whole_ == nullptr || whole_->has_room(bytes));
  }
  void take(std::size_t bytes) {
    used_bytes_ += bytes;
    if (whole_ != nullptr) whole_->take(bytes);
  }
  void give_back(std::size_t bytes) {
    used_bytes_ -= bytes;
    if (whole_ != nullptr) whole_->give_back(bytes);
  }
  /// Reserves so many bytes, until the next call.
  void hold_back(std::size_t bytes) { held_back_ = bytes; }
  [[nodiscard]] bool holds_back() const { return held_back_ != 0 || (whole_ != nullptr && whole_->holds_back()); }
  [[nodiscard]] std::size_t used_bytes() const { return used_bytes_; }
  [[nodiscard]] std::size_t limit_bytes() const { return limit_bytes_; }

 private:
  std::size_t limit_bytes_;
  std::size_t used_bytes_ = 0;
  std::size_t held_back_ = 0;
  Budget* whole_;
};

}  // namespace flamed::store
