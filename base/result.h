// SPDX-License-Identifier: Apache-2.0
//
// Result<T>: a value, or an Error that a person can read.
//
// Errors inside flamed travel as values and gain context on the way up:
//
//   Result<Fd> fd = open_event(cpu);
//   if (!fd) return std::move(fd).error().with_context("cannot start sampler");
//
// reads, at the top, "cannot start sampler: perf_event_open on CPU 3: Permission denied".
// Exceptions of libraries are caught where the library is called and become a Result there.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace flamed {

/// Why something failed. `message()` is one line for a person: what failed, on what, why, what to do. `code()` is the
/// errno, or 0 if there is none.
class [[nodiscard]] Error {
 public:
  explicit Error(std::string message, int code = 0) : message_(std::move(message)), code_(code) {}

  /// "<what>: <strerror(code)>". Takes errno by default, so call it before anything that may change errno.
  static Error from_errno(std::string_view what, int code = errno);

  /// The same error with "<what>: " before its message.
  [[nodiscard]] Error with_context(std::string_view what) &&;

  /// The same error with another code.
  [[nodiscard]] Error with_code(int code) && { return Error(std::move(message_), code); }

  [[nodiscard]] const std::string& message() const { return message_; }
  [[nodiscard]] int code() const { return code_; }

 private:
  std::string message_;
  int code_;
};

/// Either a T or an Error. Reading the one that is not there is a broken invariant and aborts.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  [[nodiscard]] T& value() & { return *checked(); }
  [[nodiscard]] const T& value() const& { return *const_cast<Result*>(this)->checked(); }
  [[nodiscard]] T&& value() && { return std::move(*checked()); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return checked(); }
  const T* operator->() const { return const_cast<Result*>(this)->checked(); }

  [[nodiscard]] const Error& error() const& {
    if (ok()) std::abort();
    return *std::get_if<1>(&state_);
  }
  [[nodiscard]] Error error() && {
    if (ok()) std::abort();
    return std::move(*std::get_if<1>(&state_));
  }

 private:
  T* checked() {
    if (!ok()) std::abort();
    return std::get_if<0>(&state_);
  }

  std::variant<T, Error> state_;
};

/// A Result without a value.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const { return error_.index() == 0; }
  explicit operator bool() const { return ok(); }
  [[nodiscard]] const Error& error() const& {
    if (ok()) std::abort();
    return *std::get_if<1>(&error_);
  }
  [[nodiscard]] Error error() && {
    if (ok()) std::abort();
    return std::move(*std::get_if<1>(&error_));
  }

 private:
  std::variant<std::monostate, Error> error_;
};

using Status = Result<void>;

}  // namespace flamed
