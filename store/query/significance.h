// SPDX-License-Identifier: Apache-2.0
//
// Whether two counts differ by more than chance. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace flamed::store {

/// How many standard deviations of chance a change from `before` of `before_all` samples to `after` of `after_all` is
/// worth; positive when the share has grown. Two binomial counts: the signed root of the likelihood ratio statistic
/// (G test of a 2×2 table), with half a sample of continuity correction. Unlike the textbook z it also holds for counts
/// of a few and for windows of very unequal length.
double z_of_shares(std::uint64_t before, std::uint64_t before_all, std::uint64_t after, std::uint64_t after_all);

/// The same without the correction, for many samples: of no change its mean square is 1, where z_of_shares() errs on
/// the safe side.
double plain_z_of_shares(std::uint64_t before, std::uint64_t before_all, std::uint64_t after, std::uint64_t after_all);

/// The same as z_of_shares() for two Poisson counts that came about in `before_time` and `after_time`, in any unit.
double z_of_rates(std::uint64_t before, double before_time, std::uint64_t after, double after_time);

/// How large |z| must be for chance to exceed it in one of `comparisons` with the probability `p` (Bonferroni).
double least_significant_z(double p, std::size_t comparisons);

/// How much more the z of unchanged things vary than chance alone would have it, as real loads' do, since samples of
/// one burst come together: the median of z² over that of a normal distribution ("genomic control", Devlin & Roeder
/// 1999). At least 1; 1 when there are fewer than 20. It is cut at 4: when nearly everything has changed, that is no
/// noise.
double overdispersion(std::vector<double> z);

}  // namespace flamed::store
