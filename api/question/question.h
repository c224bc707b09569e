// SPDX-License-Identifier: Apache-2.0
//
// What a query's parameters mean to the store. Pure; any thread.
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

/// When a request came and when it is answered: they differ where it waited for samples to come.
struct Moments {
  WallTime asked;
  WallTime now;
};

/// A question that waits for `seconds` from its arrival on: it names no time. Empty for one that asks of the past.
std::optional<std::int64_t> wait_ns(const Parameters& parameters);

/// The window as the query gives it, or what is wrong with it. Who gives no start asks for what there is of the usual
/// one: of a daemon that has only just started, not for the time before.
std::variant<store::WallWindow, Problem> window_of(const Parameters& parameters, const Moments& moments,
                                                   const store::Snapshot& snapshot);

/// The window to compare `window` with.
std::variant<store::WallWindow, Problem> base_window_of(const Parameters& parameters, const Moments& moments,
                                                        const store::WallWindow& window);

/// offset_from and offset_to, or those of the side to compare with ("base_"): empty where whole seconds are asked for.
std::variant<std::optional<store::SecondPart>, Problem> part_of(const Parameters& parameters,
                                                                const std::string& prefix = "");

store::Selection selection_of(const Parameters& parameters, const store::WallWindow& window);
/// That of the parameters which begin with "base_"; where none is given, the same as the other side's.
store::Selection base_selection_of(const Parameters& parameters, const store::WallWindow& window);

/// The names of the parameters by which the query selects, those of base_selection_of() with the prefix "base_".
std::vector<std::string> selecting_parameters(const Parameters& parameters, const std::string& prefix = "");

/// Nodes of an answer that does not say otherwise: more than anybody looks at, and 20 MB of JSON.
inline constexpr std::size_t kDefaultMaxNodes = 200'000;

/// `max_nodes` is what the query says, 0 where it says nothing.
store::ProfileOptions options_of(const Parameters& parameters);

}  // namespace flamed::api
