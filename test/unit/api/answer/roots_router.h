// SPDX-License-Identifier: Apache-2.0
//
// A Router whose requests come from root over a Unix socket, for tests that are not about access.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "api/access/access.h"
#include "api/answer/routes.h"

namespace flamed::api {

class RootsRouter {
 public:
  RootsRouter(Sources& sources, std::function<std::int64_t(WallTime)> local_offset_s)
      : router_(sources, access_, std::move(local_offset_s)) {}

  Response handle(Request request) { return router_.handle(by_root(std::move(request))); }
  std::optional<std::int64_t> wait_ns(Request request) {
    request = by_root(std::move(request));
    return Router::wait_ns(request, router_.plan(request));
  }
  std::optional<SharedAnswers::Question> shareable(Request request) {
    request = by_root(std::move(request));
    return Router::shareable(request, router_.plan(request));
  }
  [[nodiscard]] std::uint64_t answered() const { return router_.answered(); }

 private:
  static Request by_root(Request request) {
    request.peer = {Peer::Transport::kUnix, 0};
    return request;
  }

  const Access access_{{}, [](uid_t) { return false; }};
  Router router_;
};

}  // namespace flamed::api
