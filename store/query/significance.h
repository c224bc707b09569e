// SPDX-License-Identifier: Apache-2.0
//
// Whether two counts differ by more than chance. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace flamed::store {

/// A change from `before` of `before_all` samples to `after` of `after_all`, in standard deviations of chance; positive
/// if the share has grown. Two binomial counts: the signed root of the likelihood ratio statistic (G test of a 2×2
/// table), with half a sample of continuity correction. Unlike the textbook z it is also valid for small counts and for
/// windows of very unequal length.
double z_of_shares(std::uint64_t before, std::uint64_t before_all, std::uint64_t after, std::uint64_t after_all);

/// The same without the correction, for many samples: without a change its mean square is 1, while z_of_shares() is
/// conservative.
double plain_z_of_shares(std::uint64_t before, std::uint64_t before_all, std::uint64_t after, std::uint64_t after_all);

/// The same as z_of_shares() for two Poisson counts in `before_time` and `after_time`, in any unit.
double z_of_rates(std::uint64_t before, double before_time, std::uint64_t after, double after_time);

/// The |z| that chance exceeds in any of `comparisons` with the probability `p` (Bonferroni).
double least_significant_z(double p, std::size_t comparisons);

/// How much more the z of unchanged functions vary than by chance alone. In real loads they do, since the samples of a
/// burst are correlated. The median of z² over that of a normal distribution ("genomic control", Devlin & Roeder 1999).
/// At least 1; 1 if there are fewer than 20. At most 4: if nearly everything has changed, that is not noise.
double overdispersion(std::vector<double> z);

}  // namespace flamed::store
