// SPDX-License-Identifier: Apache-2.0
//
// QueryBudget: the limits of one query, so that none uses a thread or memory for long. A local of one request, used on
// one thread; must not outlive its clock. Once exhausted, it stays so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <stop_token>

#include "base/clock.h"
#include "base/result.h"

namespace flamed::store {

struct QueryLimits {
  /// Visited pairs of thread and stack in the minutes' histograms, and single samples.
  std::uint64_t visits = std::numeric_limits<std::uint64_t>::max();
  /// Nodes, stacks, samples, or cells of the answer, about 32 bytes each.
  std::uint64_t nodes = 4U << 20;
  std::optional<MonotonicTime> deadline{};
};

class QueryBudget {
 public:
  /// The largest answer, without a time limit.
  QueryBudget() = default;
  /// `clock` may be null if there is no deadline.
  QueryBudget(const QueryLimits& limits, const Clock* clock, std::stop_token cancelled = {});

  /// Whether the query may visit `count` more. Reads the clock now and then.
  [[nodiscard]] bool visit(std::uint64_t count = 1) {
    visited_ += count;
    return visited_ < check_at_ || check();
  }
  /// Whether the answer may grow by `count` more.
  [[nodiscard]] bool grow(std::uint64_t count = 1) {
    grown_ += count;
    return grown_ <= limits_.nodes || exhaust(Exhausted::kNodes);
  }
  /// Reads the clock at once: for before and after long steps.
  [[nodiscard]] bool check();

  [[nodiscard]] bool exhausted() const { return exhausted_ != Exhausted::kNot; }
  /// Why the query ended early and what to narrow, for a person. Its code(): E2BIG: visits or nodes ran out; ETIMEDOUT:
  /// the deadline passed; ECANCELED: no client waits for the answer any more. Only if exhausted().
  [[nodiscard]] Error error() const;

  [[nodiscard]] const QueryLimits& limits() const { return limits_; }
  [[nodiscard]] std::uint64_t visited() const { return visited_; }
  [[nodiscard]] std::uint64_t grown() const { return grown_; }

 private:
  enum class Exhausted : std::uint8_t { kNot, kVisits, kNodes, kDeadline, kCancelled };
  static constexpr std::uint64_t kVisitsPerCheck = 1U << 16;

  bool exhaust(Exhausted what);

  QueryLimits limits_;
  const Clock* clock_ = nullptr;
  std::stop_token cancelled_;
  std::uint64_t visited_ = 0;
  std::uint64_t check_at_ = kVisitsPerCheck;
  std::uint64_t grown_ = 0;
  Exhausted exhausted_ = Exhausted::kNot;
};

}  // namespace flamed::store
