// SPDX-License-Identifier: Apache-2.0
//
// The terminal: draws looks, and takes keys as top(1) and less(1) do. One thread, the main one.
#pragma once

#include "base/result.h"
#include "top/client.h"
#include "top/view.h"

namespace flamed::top {

/// Shows looks, one each `delay_s` while they are live, until the user ends it. Fails if the terminal can't be used.
Status show(const Client& client, Question question, double delay_s);

}  // namespace flamed::top
