// SPDX-License-Identifier: Apache-2.0
#include "store/query/significance.h"

#include <algorithm>
#include <cmath>

namespace flamed::store {
namespace {

constexpr std::size_t kFewestForDispersion = 20;
constexpr double kMostDispersion = 4;
constexpr double kHalfASample = 0.5;
constexpr double kMedianOfSquaredNormal = 0.4549364;  // of the chi-squared distribution with one degree of freedom

/// observed × ln(observed / expected), 0 for nothing.
double term(double observed, double expected) { return observed > 0 ? observed * std::log(observed / expected) : 0; }

/// Moves an observation by `correction` towards the expected value, not past it.
double corrected(double observed, double expected, double correction) {
  return observed > expected ? std::max(observed - correction, expected) : std::min(observed + correction, expected);
}

double signed_root(std::uint64_t before, std::uint64_t before_all, std::uint64_t after, std::uint64_t after_all,
                   double correction) {
  const std::uint64_t both = before + after;
  if (before_all == 0 || after_all == 0 || both == 0 || both == before_all + after_all) return 0;
  const auto n1 = static_cast<double>(before_all);
  const auto n2 = static_cast<double>(after_all);
  const double share = static_cast<double>(both) / (n1 + n2);
  const double x1 = corrected(static_cast<double>(before), n1 * share, correction);
  const double x2 = static_cast<double>(both) - x1;
  const double g =
      term(x1, n1 * share) + term(n1 - x1, n1 * (1 - share)) + term(x2, n2 * share) + term(n2 - x2, n2 * (1 - share));
  const double z = std::sqrt(2 * std::max(g, 0.0));
  return x2 > n2 * share ? z : -z;
}

}  // namespace

double z_of_shares(std::uint64_t before, std::uint64_t before_all, std::uint64_t after, std::uint64_t after_all) {
  return signed_root(before, before_all, after, after_all, kHalfASample);
}

double plain_z_of_shares(std::uint64_t before, std::uint64_t before_all, std::uint64_t after, std::uint64_t after_all) {
  return signed_root(before, before_all, after, after_all, 0);
}

double z_of_rates(std::uint64_t before, double before_time, std::uint64_t after, double after_time) {
  const auto both = static_cast<double>(before + after);
  if (before_time <= 0 || after_time <= 0 || both <= 0) return 0;
  const double expected1 = both * before_time / (before_time + after_time);
  const double expected2 = both - expected1;
  const double x1 = corrected(static_cast<double>(before), expected1, kHalfASample);
  const double x2 = both - x1;
  const double z = std::sqrt(2 * std::max(term(x1, expected1) + term(x2, expected2), 0.0));
  return x2 > expected2 ? z : -z;
}

double least_significant_z(double p, std::size_t comparisons) {
  const double each = p / static_cast<double>(std::max<std::size_t>(comparisons, 1));
  double low = 0;
  double high = 40;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (std::erfc(middle / std::sqrt(2.0)) > each ? low : high) = middle;
  }
  return high;
}

double overdispersion(std::vector<double> z) {
  if (z.size() < kFewestForDispersion) return 1;
  for (double& value : z) value *= value;
  const auto middle = z.begin() + static_cast<std::ptrdiff_t>(z.size() / 2);
  std::nth_element(z.begin(), middle, z.end());
  return std::clamp(*middle / kMedianOfSquaredNormal, 1.0, kMostDispersion);
}

}  // namespace flamed::store
