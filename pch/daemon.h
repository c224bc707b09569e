// SPDX-License-Identifier: Apache-2.0
//
// What most of the daemon's sources include, see pch/standard.h.
#include <spdlog/spdlog.h>

#include "pch/standard.h"
