// SPDX-License-Identifier: Apache-2.0
//
// What flamed-push tells the daemon: the body of POST /push. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "push/pusher.h"

namespace flamed::push {

struct ReceiverFigures {
  std::string_view name;
  std::vector<Figures> figures;
};

std::string report(std::int64_t interval_ms, std::int64_t cpu_ns, std::span<const ReceiverFigures> receivers);

}  // namespace flamed::push
