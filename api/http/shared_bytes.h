// SPDX-License-Identifier: Apache-2.0
//
// SharedBytes: an answer as it is sent. Copies share the bytes, which never change, for clients that share an answer.
// Any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace flamed::api {

class SharedBytes {
 public:
  SharedBytes() = default;
  SharedBytes(std::string bytes)  // NOLINT(google-explicit-constructor)
      : bytes_(std::make_shared<const std::string>(std::move(bytes))) {}
  SharedBytes(std::shared_ptr<const std::string> bytes)
      : bytes_(std::move(bytes)) {}                                  // NOLINT(google-explicit-constructor)
  SharedBytes(const char* text) : SharedBytes(std::string(text)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] std::string_view view() const { return bytes_ == nullptr ? std::string_view() : *bytes_; }
  [[nodiscard]] std::size_t size() const { return view().size(); }

 private:
  std::shared_ptr<const std::string> bytes_;
};

}  // namespace flamed::api
