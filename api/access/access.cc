// SPDX-License-Identifier: Apache-2.0
#include "api/access/access.h"

#include <string>
#include <utility>

namespace flamed::api {
namespace {

/// A navigation by a person: a link in a chat program, or on another page. Allowed only for the page itself: it
/// requests its data itself, and the linking page gets nothing, not even a handle of the window
/// (Cross-Origin-Opener-Policy).
bool is_opened_page(const Request& request, bool is_page) {
  return is_page && request.sec_fetch_mode == "navigate" && request.sec_fetch_dest == "document";
}

}  // namespace

std::variant<Viewer, Problem> Access::judge(const Request& request, bool is_page) const {
  auto judged = judge_token(request);
  if (auto* problem = std::get_if<Problem>(&judged)) return std::move(*problem);
  const auto& bearer = std::get<std::optional<Viewer>>(judged);
  if (request.peer.transport == Peer::Transport::kRemote && !bearer) return token_needed();
  if (const auto problem = check_origin(request, is_page, bearer.has_value())) return *problem;
  return bearer ? *bearer : viewer_of(request.peer.uid);
}

std::variant<std::optional<Viewer>, Problem> Access::judge_token(const Request& request) const {
  const auto token = tokens_ != nullptr ? bearer_token(request.authorization) : std::nullopt;
  if (!token) return std::optional<Viewer>();
  const std::optional<std::string> name = tokens_->user_of(*token);
  if (!name) return token_refused();
  if (name->empty()) return std::optional(Viewer{Viewer::Sees::kEverything, store::kNoUser, true});
  const std::optional<uid_t> user = find_user_(*name);
  if (!user) return token_without_user(*name);
  Viewer viewer = viewer_of(user);
  viewer.has_token = true;
  return std::optional(viewer);
}

std::optional<Problem> Access::check_origin(const Request& request, bool is_page, bool has_token) const {
  // No page can make a browser send a token that it does not know. So with a token any host name is allowed.
  const bool is_unix = request.peer.transport == Peer::Transport::kUnix;
  const bool is_ours = is_unix ? is_unix_host(request.host) : names_.has(request.host);
  if (!is_ours && !has_token) return foreign_host(request.host, is_unix ? "localhost" : names_.list());
  if (!request.origin.empty() && request.origin != "http://" + request.host) return foreign_origin(request.origin);
  const bool is_own =
      request.sec_fetch_site.empty() || request.sec_fetch_site == "none" || request.sec_fetch_site == "same-origin";
  if (!is_own && !is_opened_page(request, is_page)) return foreign_origin(request.sec_fetch_site);
  return std::nullopt;
}

Viewer Access::viewer_of(std::optional<uid_t> user) const {
  if (!user || *user == store::kNoUser) return {};
  if (owner_) return {*user == 0 || user == owner_ ? Viewer::Sees::kEverything : Viewer::Sees::kNothing, *user};
  if (*user == 0 || is_member_(*user)) return {Viewer::Sees::kEverything, *user};
  return {Viewer::Sees::kOwn, *user};
}

std::optional<Problem> check_viewer(const Viewer& viewer) {
  if (viewer.sees != Viewer::Sees::kNothing) return std::nullopt;
  return viewer.uid == store::kNoUser ? unknown_user() : not_the_owner();
}

}  // namespace flamed::api
