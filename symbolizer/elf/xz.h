// SPDX-License-Identifier: Apache-2.0
//
// unpack_xz: what an .xz stream holds, within bounds on memory that its writer can't move. Pure; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace flamed::symbolizer {

/// At most `limit_bytes` come out; more is an error. A few bytes of input may ask for a dictionary of gigabytes: the
/// decoder itself gets no more than that of "xz -9" needs (65 MiB).
Result<std::string> unpack_xz(std::string_view packed, std::size_t limit_bytes);

}  // namespace flamed::symbolizer
