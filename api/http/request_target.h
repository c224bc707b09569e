// SPDX-License-Identifier: Apache-2.0
//
// RequestTarget: the path and query of a request line, decoded. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace flamed::api {

/// One `name=value` of a query, decoded, in the order of the query. Duplicates are kept: the caller decides whether to
/// refuse them.
struct QueryItem {
  std::string name;
  std::string value;
};

struct RequestTarget {
  std::string path;
  std::vector<QueryItem> query;
};

/// Parses "/path?name=value&..." (RFC 3986; `+` in the query is a space, as browsers' forms write it). An item without
/// `=` has an empty value, empty items are skipped, a fragment is cut off. Fails on a `%` without two hex digits, and
/// on a target that does not begin with `/`.
Result<RequestTarget> parse_request_target(std::string_view target);

}  // namespace flamed::api
