// SPDX-License-Identifier: Apache-2.0
//
// RequestReader: takes a client's bytes piece by piece, and says when a request is complete or why it is refused. Pure;
// one thread at a time.
//
// A body is read only where the BodyLimit allows one, and only by its Content-Length. Others are announced and not
// read.
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

/// The size of the largest body that a request with this method and target may have; 0: none.
using BodyLimit = std::size_t (*)(std::string_view method, std::string_view target);
inline std::size_t no_body(std::string_view /*method*/, std::string_view /*target*/) { return 0; }

enum class HeadState : std::uint8_t {
  kIncomplete,       ///< within the limits so far; read on
  kComplete,         ///< head() is a request line and headers, body() the body that may follow them
  kUriTooLong,       ///< 414: the request line alone is over the limit
  kHeadersTooLarge,  ///< 431
  kLengthRequired,   ///< 411: a request that needs a body does not say how long it is
  kBodyTooLarge,     ///< 413: the body is over its limit
  kMalformed,        ///< 400: fault() says why
};

class RequestReader {
 public:
  explicit RequestReader(BodyLimit body_limit = no_body) : body_limit_(body_limit) {}

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
  /// When complete: empty unless the BodyLimit allows a body.
  [[nodiscard]] std::string_view body() const;
  /// The size that an allowed body has or will have, from the end of the head on; before that 0.
  [[nodiscard]] std::size_t body_bytes() const { return in_body_ ? body_bytes_ : 0; }
  /// The complete head's headers announce a body, which is not allowed and not read.
  [[nodiscard]] bool has_body() const { return most_body_bytes_ == 0 && (is_chunked_ || has_length_); }

  /// Drops the complete request and reads the bytes after it.
  HeadState next();

 private:
  void scan();
  void end_line();
  void take_header(std::string_view line);
  void take_length(std::string_view value);
  void end_head();
  void refuse(std::string_view fault);

  BodyLimit body_limit_;
  std::string buffer_;
  std::size_t scanned_ = 0;  ///< bytes before this have been read
  std::size_t begin_ = 0;    ///< of the head: after line breaks that come first
  std::size_t line_ = 0;     ///< of the line that is being read
  HeadState state_ = HeadState::kIncomplete;
  bool in_headers_ = false;
  bool needs_host_ = false;  ///< HTTP/1.1
  bool has_host_ = false;
  bool in_body_ = false;
  bool is_chunked_ = false;          ///< Transfer-Encoding, whatever it says
  bool has_length_ = false;          ///< Content-Length; where no body is allowed, one that is not "0"
  std::size_t most_body_bytes_ = 0;  ///< what the BodyLimit allows
  std::size_t body_bytes_ = 0;
  std::string_view fault_;
};

}  // namespace flamed::api
