// SPDX-License-Identifier: Apache-2.0
//
// Access: decides whether a request is answered at all, and for which viewer. ViewerSources decides what that viewer
// may see. docs/security.md has the rules and their reasons.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "api/access/group_members.h"
#include "api/access/host_names.h"
#include "api/access/token_file.h"
#include "api/http/exchange.h"
#include "api/http/problem.h"
#include "api/http/viewer.h"

namespace flamed::api {

/// Any thread.
class Access {
 public:
  /// By a user's name; empty: there is no such user.
  using FindUser = std::function<std::optional<uid_t>(const std::string&)>;

  /// `is_member`: is the user in the group that sees everything? Without `tokens` other hosts get no answers.
  Access(HostNames names, std::function<bool(uid_t)> is_member, std::unique_ptr<TokenFile> tokens = nullptr,
         FindUser find_user = find_user_of_host)
      : names_(std::move(names)),
        is_member_(std::move(is_member)),
        tokens_(std::move(tokens)),
        find_user_(std::move(find_user)) {}
  /// Of data that belong to one user: he and root see everything, others nothing, and there are no groups or tokens.
  Access(HostNames names, uid_t owner) : names_(std::move(names)), owner_(owner) {}

  /// `is_page`: the request is for an HTML document: "/", "/help".
  [[nodiscard]] std::variant<Viewer, Problem> judge(const Request& request, bool is_page) const;

 private:
  /// Empty: no page of another site sent the request.
  [[nodiscard]] std::optional<Problem> check_origin(const Request& request, bool is_page, bool has_token) const;
  /// The viewer to whom the request's token belongs; none: it has no token.
  [[nodiscard]] std::variant<std::optional<Viewer>, Problem> judge_token(const Request& request) const;
  [[nodiscard]] Viewer viewer_of(std::optional<uid_t> user) const;

  const HostNames names_;
  const std::function<bool(uid_t)> is_member_;
  const std::unique_ptr<TokenFile> tokens_;
  const FindUser find_user_;
  const std::optional<uid_t> owner_{};
};

/// If the viewer may see no data at all: why, and what to do. Otherwise empty.
std::optional<Problem> check_viewer(const Viewer& viewer);

}  // namespace flamed::api
