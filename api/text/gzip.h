// SPDX-License-Identifier: Apache-2.0
//
// gzip for answers. Pure; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace flamed::api {

/// Does the value of an Accept-Encoding header allow this coding, "gzip" or "br" (RFC 9110, 12.5.3)?
bool accepts_coding(std::string_view accept_encoding, std::string_view coding);
bool accepts_gzip(std::string_view accept_encoding);

Result<std::string> gzip(std::string_view text);

/// For trusted data (flamed's own files): no limit on the result.
Result<std::string> gunzip(std::span<const unsigned char> compressed);

}  // namespace flamed::api
