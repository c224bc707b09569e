// SPDX-License-Identifier: Apache-2.0
//
// Where in a function the samples are, by source line. Pure; any thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "api/render/source_excerpt.h"
#include "store/query/function_places.h"

namespace flamed::api {

/// The facts of an answer, function (null: it is in no stack), self, total, and lines: [{module, file, line, self,
/// total}], where file and line are null if they are not known. The sums of `self` are the function's. If `excerpts` is
/// not null, also texts: [{module, file, reason, newer, lines: [{line, text}]}].
std::string render_source_json(const store::FunctionPlaces& places, double frequency_hz,
                               const std::vector<SourceExcerpt>* excerpts = nullptr);

/// "self self% total file:line  text", a line each, and then why texts are missing.
std::string render_source_text(const store::FunctionPlaces& places, std::span<const SourceExcerpt> excerpts = {});

}  // namespace flamed::api
