// SPDX-License-Identifier: Apache-2.0
//
// The files of the page, as they are inside the binary. web/embed.py writes the table at build time. Any thread.
#pragma once

#include <span>
#include <string_view>

namespace flamed::api {

struct Asset {
  std::string_view path;  ///< "/" for the page itself; others carry a hash of their content in their name
  std::string_view content_type;
  std::span<const unsigned char> gzip;
};

std::span<const Asset> assets();

}  // namespace flamed::api
