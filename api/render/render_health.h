// SPDX-License-Identifier: Apache-2.0
//
// The health of the daemon's components, as JSON. Pure; any thread.
#pragma once

#include <string>

#include "api/sources.h"

namespace flamed::api {

/// {"status": "ok" or "failing", "components": [{name, ok, detail}], "measures": ["cpu", ...]}
std::string render_health(const Health& health);
/// {"status": "ready" or "not ready", "components": [...]}
std::string render_readiness(const Health& health);

}  // namespace flamed::api
