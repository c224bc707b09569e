// SPDX-License-Identifier: Apache-2.0
#include "archive/codec/stretch.h"

#include <cstdlib>
#include <optional>

namespace flamed::archive {
namespace {

/// A minute may begin a bit before its time, since clocks drift; its middle does not.
std::int64_t number_of(const Minute& minute) {
  const std::int64_t middle = minute.wall_start().ns + (minute.end.ns - minute.start.ns) / 2;
  return middle / kStretchNs - (middle % kStretchNs < 0 ? 1 : 0);
}

}  // namespace

bool goes_on(const Minute& stretch, const Minute& next) {
  return next.sequence == stretch.sequence + 1 && next.period_ns == stretch.period_ns &&
         number_of(next) == number_of(stretch) && std::abs(next.wall_start().ns - stretch.wall_end().ns) < kNsPerSecond;
}

void extend(Minute& stretch, const Minute& next) {
  stretch.end.ns = next.wall_end().ns - stretch.wall_offset_ns;
  stretch.sequence = next.sequence;
  stretch.cpus = next.cpus;
  const bool is_accounted = stretch.cpu_ns_accounted && next.cpu_ns_accounted;
  stretch.cpu_ns_accounted =
      is_accounted ? std::optional(*stretch.cpu_ns_accounted + *next.cpu_ns_accounted) : std::nullopt;
  stretch.quality += next.quality;
}

}  // namespace flamed::archive
