// SPDX-License-Identifier: Apache-2.0
//
// CpuGovernor: keeps flamed's cost within a budget. It gets the CPU time used every few seconds, and decides on the
// sampling frequency and on whether background work may go on. It has no clock and makes no system calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "base/clock.h"

namespace flamed::daemon {

/// CPU time that flamed has used since its start, in nanoseconds.
struct CostReading {
  MonotonicTime now;
  std::int64_t program_ns = 0;     ///< in the kernel program
  std::int64_t daemon_ns = 0;      ///< by the daemon itself, without the following
  std::int64_t skipping_ns = 0;    ///< skipping the kernel's records of processes that cause too many
  std::int64_t names_ns = 0;       ///< for names that samples wait for, of managed runtimes, with the ELF worker's part
  std::int64_t background_ns = 0;  ///< for unwind tables and names of files to be closed, likewise
  std::int64_t answers_ns = 0;     ///< for requests: the API's threads, and the ELF worker's part
  std::size_t cpus = 1;            ///< online
};

/// Shares of the machine's CPU time: 0.01 is a hundredth of all online CPUs together.
struct CostShares {
  double program = 0;
  double daemon = 0;
  double names = 0;
  double unpaid_names = 0;  ///< of these: for which nothing was saved
  double skipping = 0;
  double background = 0;
  double answers = 0;

  /// The share of sampling, which depends on the frequency.
  [[nodiscard]] double sampling() const { return program + daemon; }
  /// What the frequency is lowered for.
  [[nodiscard]] double judged() const { return sampling() + unpaid_names; }
  [[nodiscard]] double all() const { return program + daemon + names + skipping + background + answers; }
};

/// The order of steps: background work gets the part of the budget that sampling leaves, at least a tenth of it, and
/// the unused part of the last minute. When sampling alone takes more than nine tenths, the frequency is halved until
/// it fits: so a sample of the lower frequency stands for exactly 2, 4 or 8 of the full one, and 49.5 Hz is as unlikely
/// as 99 Hz to be in step with periodic work. It is doubled again one step at a time, if the cost is expected to fit:
/// the kernel program's doubles with the frequency, but most of the daemon's is for processes that begin and end. Where
/// that was wrong, all of it has to fit twice. Names that samples wait for come in bursts, when a program begins, and
/// are paid like background work, though they don't wait. Once nothing has been left to pay them for some seconds
/// they count as sampling. The cost of answers is measured and shown, but it is up to the clients: no step reduces it,
/// nor the cost of skipping.
class CpuGovernor {
 public:
  /// Sampling is judged over this time: it takes too much if it does on average and in most of the readings.
  static constexpr std::int64_t kWindowNs = 5 * kNsPerSecond;
  static constexpr std::size_t kMostReadings = 3;
  /// The higher frequency must have fitted for this long before it is used. Doubled whenever a raise had to be undone.
  static constexpr std::int64_t kFirstHoldNs = 30 * kNsPerSecond;
  static constexpr std::int64_t kLongestHoldNs = 16 * kNsPerMinute;
  /// After the first reading nothing is judged or charged for so long: flamed takes in the programs that run, and
  /// builds their tables at once.
  static constexpr std::int64_t kBeginningNs = 30 * kNsPerSecond;
  static constexpr std::int64_t kSavedNs = 60 * kNsPerSecond;     ///< of the budget, for background work
  static constexpr std::int64_t kMostDebtNs = 10 * kNsPerMinute;  ///< likewise
  static constexpr double kLowestHz = 10;
  static constexpr double kSamplingPart = 0.9;  ///< of the budget
  static constexpr double kRaiseBelow = 0.9;    ///< of kSamplingPart
  /// The daemon's cost at twice the frequency, as a multiple. Beside a build, two runs each, its threads took 0.08 and
  /// 0.09 % of the CPU time at 25 Hz, 0.08 and 0.12 % at 49, 0.06 and 0.11 % at 99.
  static constexpr double kDaemonGrowth = 1.25;
  /// After a raise that was taken back: of kSamplingPart, for twice the whole cost.
  static constexpr double kRaiseAgainBelow = 0.7;

  /// `budget` is a share of the machine's CPU time; empty: no budget.
  CpuGovernor(unsigned frequency_hz, std::optional<double> budget);

  /// Takes effect at the next reading. A change ends the beginning.
  void set_budget(std::optional<double> budget);

  /// Readings are up to five seconds apart, one second if the budget is exceeded, and up to 15 on an idle machine.
  void look(const CostReading& reading);

  /// Did sampling take too much at the last reading, and is there a step left? One such reading causes no step, but the
  /// next reading should come soon.
  [[nodiscard]] bool is_exceeded() const {
    return budget_ && step_ < steps_ && !readings_.empty() && !is_beginning_ &&
           judged(readings_.back()) > *budget_ * kSamplingPart;
  }
  [[nodiscard]] std::optional<double> budget() const { return budget_; }
  /// The number of full periods between two samples: a power of two.
  [[nodiscard]] unsigned stretch() const { return 1U << step_; }
  [[nodiscard]] double frequency_hz() const { return full_frequency_hz_ / stretch(); }
  [[nodiscard]] double full_frequency_hz() const { return full_frequency_hz_; }
  /// May another piece of background work begin?
  [[nodiscard]] bool background_may_go_on() const { return !budget_ || !last_ || saved_ns_ > 0; }
  /// Has background work waited lately? From when its part was used up until half of what can be saved is available
  /// again.
  [[nodiscard]] bool is_background_slowed() const { return budget_ && is_background_slowed_; }
  /// Over the last kWindowNs.
  [[nodiscard]] CostShares shares() const { return mean_of(kWindowNs, readings_.size()); }
  [[nodiscard]] std::uint64_t lowered() const { return lowered_; }  ///< times
  [[nodiscard]] std::uint64_t raised() const { return raised_; }    ///< likewise

 private:
  struct Interval {
    std::int64_t ns = 0;
    CostShares shares;
  };

  /// Of one reading. A child of the worker tells its time when it ends, so names count by their mean.
  [[nodiscard]] double judged(const Interval& interval) const {
    return interval.shares.sampling() + mean_of(kWindowNs, since_step_).unpaid_names;
  }
  /// Do names count as sampling? Otherwise they are paid from what is saved.
  [[nodiscard]] bool are_names_judged() const { return is_background_slowed_ && slowed_ns_ >= kWindowNs; }
  void save(const CostReading& before, const CostReading& now);
  void judge();
  [[nodiscard]] bool may_raise(double limit) const;
  [[nodiscard]] bool is_too_much(double limit) const;
  void lower(double limit);
  [[nodiscard]] CostShares mean_of(std::int64_t ns, std::size_t most_intervals) const;

  const double full_frequency_hz_;
  const unsigned steps_;  ///< as many as keep the frequency at kLowestHz or above
  std::optional<double> budget_;
  unsigned step_ = 0;
  std::optional<MonotonicTime> began_;  ///< the first reading
  bool is_beginning_ = true;
  std::optional<CostReading> last_;
  std::deque<Interval> readings_;  ///< newest last, of kFirstHoldNs
  std::size_t since_step_ = 0;     ///< the number of readings_ at the frequency in force
  std::int64_t held_ns_ = 0;       ///< how long it has been in force
  std::int64_t hold_ns_ = kFirstHoldNs;
  bool was_raised_ = false;  ///< by the last step
  double saved_ns_ = 0;      ///< CPU time that background work may take now; below 0 it waits
  bool is_background_slowed_ = false;
  std::int64_t slowed_ns_ = 0;  ///< for how long
  std::uint64_t lowered_ = 0;
  std::uint64_t raised_ = 0;
};

}  // namespace flamed::daemon
