// SPDX-License-Identifier: Apache-2.0
//
// SharedValue: an immutable reference-counted value, or none. One pointer large, half of a shared_ptr: for numerous
// records. Holders on different threads need no lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace flamed::store {

template <typename T>
class SharedValue {
 public:
  SharedValue() = default;
  SharedValue(std::nullptr_t) {}  // NOLINT(google-explicit-constructor): as a pointer
  explicit SharedValue(T value) : held_(new Held{std::move(value)}) {}
  SharedValue(const SharedValue& other) : held_(other.held_) {
    if (held_ != nullptr) held_->holders.fetch_add(1, std::memory_order_relaxed);
  }
  SharedValue(SharedValue&& other) noexcept : held_(std::exchange(other.held_, nullptr)) {}
  SharedValue& operator=(SharedValue other) noexcept {
    std::swap(held_, other.held_);
    return *this;
  }
  ~SharedValue() {
    // Other holders' accesses happen before the deletion.
    if (held_ != nullptr && held_->holders.fetch_sub(1, std::memory_order_acq_rel) == 1) delete held_;
  }

  const T& operator*() const { return held_->value; }
  const T* operator->() const { return &held_->value; }
  [[nodiscard]] const T* get() const { return held_ != nullptr ? &held_->value : nullptr; }
  explicit operator bool() const { return held_ != nullptr; }
  friend bool operator==(const SharedValue& value, std::nullptr_t) { return value.held_ == nullptr; }

  /// There is no other holder, and a new one could only come from a copy of this object.
  [[nodiscard]] bool is_only_holder() const {
    return held_ != nullptr && held_->holders.load(std::memory_order_acquire) == 1;
  }

  /// In addition to the value itself.
  static constexpr std::size_t kOverheadBytes = sizeof(std::atomic<std::uint32_t>) + 4;

 private:
  struct Held {
    T value;
    std::atomic<std::uint32_t> holders{1};
  };
  Held* held_ = nullptr;
};

}  // namespace flamed::store
