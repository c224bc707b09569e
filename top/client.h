// SPDX-License-Identifier: Apache-2.0
//
// Client: asks flamed, one connection for each request, over TCP or a Unix socket. One thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace flamed::top {

struct Answer {
  int status = 0;
  std::string body;
};

/// The answer in the bytes that came until the connection was closed.
Result<Answer> parse_answer(std::string_view bytes);

class Client {
 public:
  /// `address`: HOST:PORT, [V6]:PORT or unix:/PATH.
  explicit Client(std::string address) : address_(std::move(address)) {}

  /// `target`: path and query. Fails if flamed can't be reached, or does not answer within half a minute.
  [[nodiscard]] Result<Answer> get(std::string_view target) const;
  [[nodiscard]] const std::string& address() const { return address_; }

 private:
  std::string address_;
};

/// The service's socket if there is one, else the port on loopback on which flamed listens unless it is configured.
std::string usual_address();

}  // namespace flamed::top
