// SPDX-License-Identifier: Apache-2.0
//
// A profile as a table of functions. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "store/model/profile.h"

namespace flamed::api {

inline constexpr std::size_t kDefaultTopRows = 1000;

/// A function, summed over the tree. A stack counts once for its total, even if the function is in it several times.
struct TopFunction {
  std::uint32_t frame = 0;  ///< index into Profile::frames
  std::uint64_t self_samples = 0;
  std::uint64_t total_samples = 0;
};

/// Largest self first, then largest total, then by name. Without nodes that are not code, except markers.
std::vector<TopFunction> top_functions(const store::Profile& profile);

/// The facts of an answer, functions_found, and functions: [{name, kind, module..., self, total, self_percent,
/// total_percent}], the first `rows` of them.
std::string render_top_json(const store::Profile& profile, double frequency_hz, std::size_t rows);

/// "self self% total total% function (module)", a line each. Above are a line about all samples, a line for each
/// warning, and the names of the columns.
std::string render_top_text(const store::Profile& profile, std::size_t rows);

}  // namespace flamed::api
