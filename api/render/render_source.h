// SPDX-License-Identifier: Apache-2.0
//
// Where in a function the samples are, by source line. Pure; any thread.
#pragma once

#include <string>

#include "store/query/function_places.h"

namespace flamed::api {

/// The facts of an answer, function (null: it is in no stack), self, total, and lines: [{module, file, line, self,
/// total}], where file and line are null if they are not known. The sums of `self` are the function's.
std::string render_source_json(const store::FunctionPlaces& places, double frequency_hz);

/// "self self% total file:line", a line each.
std::string render_source_text(const store::FunctionPlaces& places);

}  // namespace flamed::api
