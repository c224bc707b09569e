// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

namespace flamed::test {

/// How far chance alone may take a count from `trials` × `probability`, what is expected of that many trials of which
/// each counts with that probability: three standard deviations, sqrt(trials × probability × (1 - probability)) each.
/// One run in 370 goes beyond.
inline double binomial_tolerance(double trials, double probability) {
  return 3 * std::sqrt(trials * probability * (1 - probability));
}

}  // namespace flamed::test
