// SPDX-License-Identifier: Apache-2.0
//
// The files of the page inside the binary. web/embed.py writes the table at build time. Any thread.
#pragma once

#include <span>
#include <string_view>

namespace flamed::api {

struct Asset {
  std::string_view path;  ///< "/" for the page itself
  std::string_view content_type;
  std::span<const unsigned char> gzip;
  std::span<const unsigned char> brotli;  ///< empty where the build has no Brotli
  bool is_hashed;                         ///< its path carries a hash of its content: it never changes
};

std::span<const Asset> assets();

}  // namespace flamed::api
