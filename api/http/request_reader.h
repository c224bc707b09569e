// SPDX-License-Identifier: Apache-2.0
//
// RequestReader: takes a client's bytes piece by piece, and says when the head of a request is complete or why it is
// refused. Pure; one thread at a time.
//
// It refuses requests that proxies would read differently (RFC 9112, 11.2). It reads each byte once, however the bytes
// are split.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace flamed::api {

inline constexpr std::size_t kMaxHeadBytes = 8192;  ///< request line and headers, with all line ends

enum class HeadState : std::uint8_t {
  kIncomplete,       ///< within the limits so far; read on
  kComplete,         ///< head() is a request line and headers
  kUriTooLong,       ///< 414: the request line alone is over the limit
  kHeadersTooLarge,  ///< 431
  kMalformed,        ///< 400: fault() says why
};

class RequestReader {
 public:
  /// Adds received bytes. Once the state is not kIncomplete, they are only kept: a client may send the next request
  /// early.
  HeadState append(std::string_view bytes);

  [[nodiscard]] HeadState state() const { return state_; }
  /// When malformed: a phrase, such as "a line that does not end in CR LF".
  [[nodiscard]] std::string_view fault() const { return fault_; }
  /// Nothing of a request has been received yet.
  [[nodiscard]] bool empty() const { return buffer_.empty(); }

  /// Request line and headers up to and including the empty line when complete; otherwise the part received so far.
  [[nodiscard]] std::string_view head() const;
  /// The complete head's headers announce a body.
  [[nodiscard]] bool has_body() const { return has_body_; }

  /// Drops the complete head and reads the bytes after it.
  HeadState next();

 private:
  void scan();
  void end_line();
  void take_header(std::string_view line);
  void refuse(std::string_view fault);

  std::string buffer_;
  std::size_t scanned_ = 0;  ///< bytes before this have been read
  std::size_t begin_ = 0;    ///< of the head: after line breaks that come first
  std::size_t line_ = 0;     ///< of the line that is being read
  HeadState state_ = HeadState::kIncomplete;
  bool in_headers_ = false;
  bool needs_host_ = false;  ///< HTTP/1.1
  bool has_host_ = false;
  bool has_body_ = false;
  std::string_view fault_;
};

}  // namespace flamed::api
