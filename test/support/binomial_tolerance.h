// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

namespace flamed::test {

/// How far a count of `trials` events with `probability` each may be from its expected value, `trials` × `probability`,
/// by chance alone: three standard deviations of sqrt(trials × probability × (1 - probability)). One run in 370 exceeds
/// it.
inline double binomial_tolerance(double trials, double probability) {
  return 3 * std::sqrt(trials * probability * (1 - probability));
}

}  // namespace flamed::test
