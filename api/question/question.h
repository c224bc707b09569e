// SPDX-License-Identifier: Apache-2.0
//
// Translates a query's parameters for the store. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/http/problem.h"
#include "api/question/parameters.h"
#include "store/model/profile_options.h"
#include "store/model/selection.h"
#include "store/ring/snapshot.h"

namespace flamed::api {

/// When a request arrived and when it is answered: they differ if it waited for samples.
struct Moments {
  WallTime asked;
  WallTime now;
};

/// How long a query with `seconds` and no other time waits from its arrival on. Empty for a query about the past.
std::optional<std::int64_t> wait_ns(const Parameters& parameters);

/// The query's window.
struct AskedWindow {
  store::WallWindow window;
  bool has_default_start = false;
};
/// Or the problem with it.
std::variant<AskedWindow, Problem> asked_window_of(const Parameters& parameters, const Moments& moments);
/// The default start is cut to the start of the snapshot's samples, so that a new daemon does not warn about the time
/// before.
store::WallWindow cut_window(const AskedWindow& asked, const store::Snapshot& snapshot);

/// The window to compare `window` with.
std::variant<store::WallWindow, Problem> base_window_of(const Parameters& parameters, const Moments& moments,
                                                        const store::WallWindow& window);

/// offset_from and offset_to, or those of the side to compare with ("base_"): empty for whole seconds.
std::variant<std::optional<store::SecondPart>, Problem> part_of(const Parameters& parameters,
                                                                const std::string& prefix = "");

store::Selection selection_of(const Parameters& parameters, const store::WallWindow& window);
/// The selection of /off_cpu, whose window is the measurement's.
store::Selection off_cpu_selection_of(const Parameters& parameters, const store::WallWindow& window);
/// The selection by the parameters that begin with "base_"; if none is given, the other side's.
store::Selection base_selection_of(const Parameters& parameters, const store::WallWindow& window);

/// The snapshot of the measure that the query asks for.
store::Snapshot measured_snapshot(const Parameters& parameters, const store::Snapshot& snapshot);

/// The names of the selecting parameters in the query; with the prefix "base_", those of base_selection_of().
std::vector<std::string> selecting_parameters(const Parameters& parameters, const std::string& prefix = "");

/// By the name of a choice of the parameter `group`.
store::Group group_of(std::string_view name);

/// The default number of nodes: more than anybody looks at, and 20 MB of JSON.
inline constexpr std::size_t kDefaultMaxNodes = 200'000;

/// `max_nodes` is the query's, or 0 if it has none.
store::ProfileOptions options_of(const Parameters& parameters);

}  // namespace flamed::api
