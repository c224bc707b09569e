// SPDX-License-Identifier: Apache-2.0
//
// unpack_xz: unpacks an .xz stream with bounded memory. Pure; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace flamed::symbolizer {

/// An output of more than `limit_bytes` is an error. A few bytes of input may require a dictionary of gigabytes: the
/// decoder gets at most the memory for "xz -9" (65 MiB).
Result<std::string> unpack_xz(std::string_view packed, std::size_t limit_bytes);

}  // namespace flamed::symbolizer
