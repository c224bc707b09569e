// SPDX-License-Identifier: Apache-2.0
//
// Access: decides whether a request is answered at all, and for which viewer. ViewerSources decides what that viewer
// may see. docs/security.md has the rules and their reasons.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <variant>

#include "api/access/host_names.h"
#include "api/access/token_file.h"
#include "api/http/exchange.h"
#include "api/http/problem.h"
#include "api/http/viewer.h"

namespace flamed::api {

/// Any thread.
class Access {
 public:
  /// `is_member`: is the user in the group that sees everything? Without `tokens` other hosts get no answers.
  Access(HostNames names, std::function<bool(uid_t)> is_member, std::unique_ptr<TokenFile> tokens = nullptr)
      : names_(std::move(names)), is_member_(std::move(is_member)), tokens_(std::move(tokens)) {}

  /// `is_page`: the request is for an HTML document: "/", "/help".
  [[nodiscard]] std::variant<Viewer, Problem> judge(const Request& request, bool is_page) const;

 private:
  /// Empty: no page of another site sent the request.
  [[nodiscard]] std::optional<Problem> check_origin(const Request& request, bool is_page, bool has_token) const;
  [[nodiscard]] Viewer viewer_of(const Peer& peer) const;

  const HostNames names_;
  const std::function<bool(uid_t)> is_member_;
  const std::unique_ptr<TokenFile> tokens_;
};

/// If the viewer may see no data at all: why, and what to do. Otherwise empty.
std::optional<Problem> check_viewer(const Viewer& viewer);

}  // namespace flamed::api
