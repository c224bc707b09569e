// SPDX-License-Identifier: Apache-2.0
//
// gzip, for answers and requests. Pure; any thread.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace flamed::api {

/// Does the value of an Accept-Encoding header allow this coding, "gzip" or "br" (RFC 9110, 12.5.3)?
bool accepts_coding(std::string_view accept_encoding, std::string_view coding);
bool accepts_gzip(std::string_view accept_encoding);

Result<std::string> gzip(std::string_view text);

/// Fails, also, if the result would have more than `most_bytes`, and then took not much more memory. Without a limit
/// only for trusted data (flamed's own files).
Result<std::string> gunzip(std::span<const unsigned char> compressed,
                           std::size_t most_bytes = std::numeric_limits<std::size_t>::max());

}  // namespace flamed::api
