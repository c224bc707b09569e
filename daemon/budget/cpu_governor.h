// SPDX-License-Identifier: Apache-2.0
//
// CpuGovernor: keeps what flamed costs within a budget. It is told what was used, every few seconds, and says how
// often samples are to be taken and whether work in the background may go on. Knows no clock and no kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "base/clock.h"

namespace flamed::daemon {

/// CPU time that flamed had used by a moment since it began, in nanoseconds.
struct CostReading {
  MonotonicTime now;
  std::int64_t program_ns = 0;     ///< in the kernel program
  std::int64_t daemon_ns = 0;      ///< by the daemon itself, without what follows
  std::int64_t skipping_ns = 0;    ///< skipping the kernel's records of processes that cause too many
  std::int64_t background_ns = 0;  ///< for unwind tables and names of files to be closed, the ELF worker's part of both
  std::int64_t answers_ns = 0;     ///< because somebody asked: the API's threads, and the ELF worker's part
  std::size_t cpus = 1;            ///< online
};

/// Parts of the machine's CPU time: 0.01 is a hundredth of all online CPUs together.
struct CostShares {
  double program = 0;
  double daemon = 0;
  double skipping = 0;
  double background = 0;
  double answers = 0;

  /// What sampling takes: it changes with the frequency.
  [[nodiscard]] double sampling() const { return program + daemon; }
  [[nodiscard]] double all() const { return program + daemon + skipping + background + answers; }
};

/// The order of steps: work in the background gets what sampling leaves of the budget, at least a tenth of it, and what
/// it was left in the last minute. When sampling alone takes more than nine tenths the frequency is halved, as often as
/// it takes to fit: so a sample of the lower frequency stands for exactly 2, 4 or 8 of the full one, and 49.5 Hz
/// marches in step with as little as 99 Hz does. It is doubled again one step at a time. What answers cost is measured
/// and shown, but it is up to the clients: no step makes it less. Nor does one make skipping less.
class CpuGovernor {
 public:
  /// Sampling is judged over this long: it is too much when it is so on average and in most of the readings.
  static constexpr std::int64_t kWindowNs = 5 * kNsPerSecond;
  static constexpr std::size_t kMostReadings = 3;
  /// Before the frequency is raised: for this long it must have fitted. Doubled whenever a raise had to be taken back.
  static constexpr std::int64_t kFirstHoldNs = 30 * kNsPerSecond;
  static constexpr std::int64_t kLongestHoldNs = 16 * kNsPerMinute;
  /// The tables of what runs when flamed begins are made at once, whatever they cost.
  static constexpr std::int64_t kBeginningNs = 30 * kNsPerSecond;
  static constexpr std::int64_t kSavedNs = 60 * kNsPerSecond;     ///< of the budget, for work in the background
  static constexpr std::int64_t kMostDebtNs = 10 * kNsPerMinute;  ///< likewise
  static constexpr double kLowestHz = 10;
  static constexpr double kSamplingPart = 0.9;                 ///< of the budget
  static constexpr double kLowerTo = 0.85, kRaiseBelow = 0.7;  ///< of kSamplingPart

  /// `budget` is a part of the machine's CPU time; empty: there is none.
  CpuGovernor(unsigned frequency_hz, std::optional<double> budget);

  /// In force from the next reading on.
  void set_budget(std::optional<double> budget);

  /// Readings lie up to five seconds apart, where it is exceeded one, and up to 15 on an idle machine.
  void look(const CostReading& reading);

  /// Did sampling take too much at the last reading, and is there a step left? One reading alone is no reason for it,
  /// but for another reading soon.
  [[nodiscard]] bool is_exceeded() const {
    return budget_ && step_ < steps_ && !readings_.empty() &&
           readings_.back().shares.sampling() > *budget_ * kSamplingPart;
  }
  [[nodiscard]] std::optional<double> budget() const { return budget_; }
  /// How many full periods lie between two samples: a power of two.
  [[nodiscard]] unsigned stretch() const { return 1U << step_; }
  [[nodiscard]] double frequency_hz() const { return full_frequency_hz_ / stretch(); }
  [[nodiscard]] double full_frequency_hz() const { return full_frequency_hz_; }
  /// May another piece of work in the background begin?
  [[nodiscard]] bool background_may_go_on() const { return !budget_ || !last_ || saved_ns_ > 0; }
  /// Has it had to wait lately? From when there was nothing left until half of what can be saved is there again.
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

  void save(const CostReading& before, const CostReading& now);
  void judge();
  [[nodiscard]] bool is_too_much(double limit) const;
  void lower(double limit);
  [[nodiscard]] CostShares mean_of(std::int64_t ns, std::size_t most_intervals) const;

  const double full_frequency_hz_;
  const unsigned steps_;  ///< as many as leave kLowestHz
  std::optional<double> budget_;
  unsigned step_ = 0;
  std::optional<CostReading> first_;
  std::optional<CostReading> last_;
  std::deque<Interval> readings_;  ///< newest last, of kFirstHoldNs
  std::size_t since_step_ = 0;     ///< of readings_: those that the frequency in force has shown
  std::int64_t held_ns_ = 0;       ///< how long it has been in force
  std::int64_t hold_ns_ = kFirstHoldNs;
  bool was_raised_ = false;  ///< by the last step
  double saved_ns_ = 0;      ///< CPU time that work in the background may take now; below 0 it waits
  bool is_background_slowed_ = false;
  std::uint64_t lowered_ = 0;
  std::uint64_t raised_ = 0;
};

}  // namespace flamed::daemon
