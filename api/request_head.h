// SPDX-License-Identifier: Apache-2.0
//
// The limits on what a client may send before it gets an answer. Pure; any thread.
//
// The HTTP library of Debian 12 reads lines without a bound and reports an oversized header like a garbled one, so the
// head of a request is measured here before the library sees it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace flamed::api {

inline constexpr std::size_t kMaxRequestLineBytes = 8192;  ///< with its CR LF
inline constexpr std::size_t kMaxHeaderBytes = 8192;       ///< all header lines with their CR LFs

enum class HeadState : unsigned char {
  kIncomplete,       ///< within the limits so far; read on
  kComplete,         ///< the bytes [begin, end) are a request line and headers
  kUriTooLong,       ///< 414
  kHeadersTooLarge,  ///< 431
  kMalformed,        ///< 400: a NUL, or a line that does not end in CR LF
};

struct RequestHead {
  HeadState state = HeadState::kIncomplete;
  std::size_t begin = 0;  ///< after line breaks that come first
  std::size_t end = 0;    ///< after the empty line; only when complete
  bool has_body = false;  ///< the headers announce one
};

/// Looks at what has been received so far. Up to two line breaks before the request line are skipped (RFC 9112, 2.2).
RequestHead scan_request_head(std::string_view received);

/// A complete head with only the headers that flamed reads. The others are not the library's to interpret: it matches
/// Range with a recursive regular expression, and answers Expect by itself.
std::string keep_known_headers(std::string_view head);

}  // namespace flamed::api
