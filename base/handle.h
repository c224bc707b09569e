// SPDX-License-Identifier: Apache-2.0
//
// Handle<T, kDestroy, kNone>: sole owner of a resource of a C interface.
#pragma once

#include <unistd.h>

#include <utility>

namespace flamed {

/// Owns one `T` and gives it to `kDestroy` exactly once. `kNone` is the value that owns nothing.
template <typename T, auto kDestroy, T kNone = T{}>
class Handle {
 public:
  Handle() = default;
  explicit Handle(T raw) : raw_(raw) {}
  Handle(Handle&& other) noexcept : raw_(std::exchange(other.raw_, kNone)) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) reset(std::exchange(other.raw_, kNone));
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { reset(); }

  [[nodiscard]] T get() const { return raw_; }
  explicit operator bool() const { return raw_ != kNone; }

  /// Gives up ownership without destroying.
  [[nodiscard]] T release() { return std::exchange(raw_, kNone); }

  void reset(T raw = kNone) {
    T old = std::exchange(raw_, raw);
    if (old != kNone) static_cast<void>(kDestroy(old));
  }

 private:
  T raw_ = kNone;
};

/// An open file descriptor.
using Fd = Handle<int, ::close, -1>;

}  // namespace flamed
