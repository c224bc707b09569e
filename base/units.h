// SPDX-License-Identifier: Apache-2.0
//
// Quantities as people write them: "24h", "256MiB".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace flamed {

/// A number and s, m, h or d; several may follow each other ("1h30m"). In nanoseconds.
Result<std::int64_t> parse_duration_ns(std::string_view text);

/// A number and nothing (bytes), or K, M, G with or without "iB": powers of 1024.
Result<std::uint64_t> parse_size_bytes(std::string_view text);

/// The shortest form that the parsers above read back as the same value.
std::string format_duration(std::int64_t ns);
std::string format_size(std::uint64_t bytes);

}  // namespace flamed
