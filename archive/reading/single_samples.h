// SPDX-License-Identifier: Apache-2.0
//
// Single samples of a minute on disk. Any thread, as its reader.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "archive/codec/minute.h"
#include "archive/codec/samples.h"
#include "archive/files/period_reader.h"

namespace flamed::archive {

/// `row`: of the minute. Empty: there are none, or they can't be read; what the minute counts is known all the same.
[[nodiscard]] std::optional<std::vector<Sample>> read_samples(PeriodReader& reader, std::int64_t row,
                                                              const Minute& minute);

}  // namespace flamed::archive
