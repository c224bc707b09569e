// SPDX-License-Identifier: Apache-2.0
//
// One request over HTTP or HTTPS with libcurl, within limits: redirects are not followed, an answer has at most
// kMostAnswerBytes, and all of it, from the connection to the last byte, takes at most kLongestExchange, however slowly
// the other side sends. Any thread; each request has a connection of its own.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "push/config.h"
#include "push/verdict.h"

namespace flamed::push {

inline constexpr std::size_t kMostAnswerBytes = std::size_t{4} << 20;
inline constexpr std::chrono::seconds kLongestExchange{30};

using Headers = std::vector<std::pair<std::string, std::string>>;

/// POSTs `body` to the receiver, whose secrets are read. Whatever goes wrong is Answer::fault.
Answer post(const Receiver& receiver, const Headers& headers, const std::string& body);

/// An answer of the daemon.
struct LocalAnswer {
  int status = 0;         ///< 0: none
  std::string window{};   ///< the header Flamed-Window
  std::string quality{};  ///< Flamed-Quality
  std::string body{};
  std::string fault{};
};
/// `body`: of a POST; null: GET.
LocalAnswer ask_daemon(const std::string& socket, const std::string& target, const std::string* body);

}  // namespace flamed::push
