// SPDX-License-Identifier: Apache-2.0
//
// A tree as columns of numbers with a table of its names: the nested form in a fifth of the bytes. Pure; any thread.
#pragma once

#include <string>

#include "api/render/column_writer.h"
#include "store/model/profile.h"

namespace flamed::api {

/// The facts of an answer, and "columns": {"strings": [...], "kinds": [...], "frames": {"name": [...], "module": [...],
/// "kind": [...], "details": {...}}, "nodes": {"frame": [...], "depth": [...], "self": [...]}}. docs/api.md shows how
/// to read it, in both forms.
std::string render_columns(const store::Profile& profile, double frequency_hz, ColumnForm form);

}  // namespace flamed::api
