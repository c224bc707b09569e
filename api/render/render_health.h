// SPDX-License-Identifier: Apache-2.0
//
// The health of the daemon's components, as JSON. Pure; any thread.
#pragma once

#include <optional>
#include <string>

#include "api/sources.h"

namespace flamed::api {

/// {"status": "ok" or "failing", "file": {name, host, window}, "oldest", "oldest_ms", "components": [{name, ok,
/// detail}], "measures": ["cpu", ...]}; "file" only if there is one, "oldest" only if it is known.
std::string render_health(const Health& health, const std::optional<HistoryFile>& file = std::nullopt);
/// {"status": "ready" or "not ready", "components": [...]}
std::string render_readiness(const Health& health);

}  // namespace flamed::api
