// SPDX-License-Identifier: Apache-2.0
//
// Viewer: the user that a request is answered for. A plain value; any thread.
#pragma once

#include <sys/types.h>

#include <compare>
#include <cstdint>

#include "store/model/process_info.h"

namespace flamed::api {

struct Viewer {
  enum class Sees : std::uint8_t {
    kNothing,     ///< only what is open to everybody on the host: see RouteSpec::is_open
    kOwn,         ///< the processes of `uid`
    kEverything,  ///< root, members of the group, and clients with a token
  };
  Sees sees = Sees::kNothing;
  uid_t uid = store::kNoUser;  ///< always with kOwn
  bool has_token = false;      ///< a token says who it is, and not the kernel

  friend auto operator<=>(const Viewer&, const Viewer&) = default;
};

}  // namespace flamed::api
