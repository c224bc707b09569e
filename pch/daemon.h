// SPDX-License-Identifier: Apache-2.0
//
// Headers that most of the daemon's sources include, see pch/standard.h.
#include <spdlog/spdlog.h>

#include "pch/standard.h"
