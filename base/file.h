// SPDX-License-Identifier: Apache-2.0
//
// Whole-file reads with a limit.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace flamed {

/// Reads at most `limit_bytes` of `path`. A larger file is an error with code EFBIG. Works for /proc files, whose size
/// is not known beforehand.
Result<std::string> read_file(const std::string& path, std::size_t limit_bytes);

/// The same from an open descriptor, from its current position.
Result<std::string> read_fd(int fd, std::size_t limit_bytes);

/// The result of one read() of `path` into `buffer`: the whole file for files of /proc that the kernel writes at once,
/// such as /proc/PID/stat. Saves a system call and a copy compared with read_file(). Empty on failure.
std::string_view read_once(const std::string& path, std::span<char> buffer);

}  // namespace flamed
