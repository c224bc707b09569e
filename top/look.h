// SPDX-License-Identifier: Apache-2.0
//
// One look: both requests. Waits for their answers.
#pragma once

#include "base/result.h"
#include "top/client.h"
#include "top/view.h"

namespace flamed::top {

/// Fails with what flamed says of a question that it refuses.
Result<View> look(const Client& client, const Question& question);

}  // namespace flamed::top
