// SPDX-License-Identifier: Apache-2.0
//
// What answers about one function begin with. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "api/text/json_writer.h"
#include "store/query/function_places.h"

namespace flamed::api {

/// The members function (of a frame that was found first: name, kind, module...; null: it is in no stack), self, total.
void append_function(JsonWriter& json, const store::FunctionPlaces& places);

/// The first lines of a table for reading: the samples, warnings, the function and its counts.
std::string function_head(const store::FunctionPlaces& places);

/// The columns of a row's own samples, with their share of the function's; blank if there are none.
std::string own_columns(std::uint64_t self, const store::FunctionPlaces& places);

}  // namespace flamed::api
