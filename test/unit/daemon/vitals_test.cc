// SPDX-License-Identifier: Apache-2.0
#include "daemon/vitals.h"

#include <string>

#include "test/catch.h"

namespace flamed::daemon {
namespace {

/// A machine with two CPUs. The test sets second by second what flamed sees.
class Machine {
 public:
  explicit Machine(double frequency_hz = 99)
      : signs_{MonotonicTime{1000 * kNsPerSecond}, MonotonicTime{1000 * kNsPerSecond}, 0, 5 * kNsPerSecond,
               frequency_hz},
        vitals(signs_) {}

  struct Second {
    double busy = 2;  ///< CPUs
    bool sampling = true;
    bool draining = true;
  };
  void run(int seconds, const Second& second) {
    for (int i = 0; i < seconds; ++i) {
      signs_.now.ns += kNsPerSecond;
      signs_.busy_ns = static_cast<std::int64_t>(static_cast<std::uint64_t>(*signs_.busy_ns) +
                                                 static_cast<std::uint64_t>(second.busy * kNsPerSecond));
      samples_ += second.sampling ? second.busy * signs_.frequency_hz : 0;
      signs_.taken = static_cast<std::uint64_t>(samples_);
      if (second.draining) signs_.last_drain = signs_.now;
      vitals.tick(signs_);
    }
  }
  void jump_busy_to(std::int64_t busy_ns) {
    signs_.busy_ns = busy_ns;
    signs_.taken += 1;
    vitals.tick(signs_);
  }

 private:
  VitalSigns signs_;

 public:
  Vitals vitals;

 private:
  double samples_ = 0;
};

constexpr Machine::Second kBusy{2, true, true};
constexpr Machine::Second kStalled{2, false, true};
constexpr Machine::Second kIdle{0.001, false, true};
constexpr Machine::Second kHanging{2, true, false};

TEST_CASE("flamed is healthy from the start, before the first drain") {
  const Machine machine;
  CHECK(machine.vitals.well());
  CHECK_FALSE(machine.vitals.verdict().has_drained);
}

TEST_CASE("the machine's CPU time is read only while no samples come, and a stall is still found") {
  VitalSigns signs{MonotonicTime{kNsPerSecond}, MonotonicTime{kNsPerSecond}, 100, std::nullopt, 99};
  Vitals vitals(signs);
  const auto pass = [&](std::uint64_t samples) {
    signs.now.ns += 2 * kNsPerSecond;
    signs.last_drain = signs.now;
    signs.taken += samples;
    signs.busy_ns.reset();
    if (vitals.wants_busy(signs.taken)) signs.busy_ns = signs.now.ns;
    CHECK(signs.busy_ns.has_value() == (samples == 0));
    vitals.tick(signs);
  };
  for (int i = 0; i < 10; ++i) pass(198);
  for (int i = 0; i < 7; ++i) pass(0);
  CHECK_FALSE(vitals.verdict().sampling);
  pass(1);
  CHECK(vitals.verdict().sampling);
}

TEST_CASE("flamed is healthy while it takes samples") {
  Machine machine;
  machine.run(100, kBusy);
  CHECK(machine.vitals.well());
  CHECK(machine.vitals.verdict().has_drained);
  CHECK(machine.vitals.verdict().problem.empty());
}

TEST_CASE("ten busy seconds without a sample are a stall, and the problem says so") {
  Machine machine;
  machine.run(5, kBusy);
  machine.run(9, kStalled);
  CHECK(machine.vitals.well());
  machine.run(1, kStalled);
  CHECK_FALSE(machine.vitals.well());
  const Vitals::Verdict verdict = machine.vitals.verdict();
  CHECK_FALSE(verdict.sampling);
  CHECK(verdict.reader_alive);
  CHECK(verdict.problem ==
        "sampling has stalled: no sample in 10 s although the machine used 20 s of CPU time; restart flamed and look "
        "for kernel messages about perf or BPF");
}

TEST_CASE("a sampler that never took a sample is stalled as well") {
  Machine machine;
  machine.run(10, kStalled);
  CHECK_FALSE(machine.vitals.well());
}

TEST_CASE("an idle machine has nothing to sample and is never a stall") {
  Machine machine;
  machine.run(10'000, kIdle);
  CHECK(machine.vitals.well());
}

TEST_CASE("idle hours do not hide a later stall") {
  Machine machine;
  machine.run(10'000, kIdle);
  machine.run(20, kStalled);
  CHECK_FALSE(machine.vitals.well());
}

TEST_CASE("a stall is over with the first sample, and not before") {
  Machine machine;
  machine.run(30, kStalled);
  machine.run(100, kIdle);
  CHECK_FALSE(machine.vitals.well());
  machine.run(1, kBusy);
  CHECK(machine.vitals.well());
  CHECK(machine.vitals.verdict().problem.empty());
}

TEST_CASE("at a low frequency a stall is found later") {
  Machine machine(1);
  machine.run(10, {2, false, true});
  CHECK(machine.vitals.well());
  machine.run(90, {2, false, true});
  CHECK_FALSE(machine.vitals.well());
}

TEST_CASE("a reader without a drain for ten seconds hangs, whatever is sampled") {
  Machine machine;
  machine.run(5, kBusy);
  machine.run(9, kHanging);
  CHECK(machine.vitals.well());
  machine.run(1, kHanging);
  CHECK_FALSE(machine.vitals.well());
  CHECK_FALSE(machine.vitals.verdict().reader_alive);
  CHECK(machine.vitals.verdict().sampling);
  CHECK(machine.vitals.verdict().problem.find("has not drained the kernel's buffers for 10 s") != std::string::npos);
  machine.run(1, kBusy);
  CHECK(machine.vitals.well());
}

TEST_CASE("CPU time that wraps round is not counted as work") {
  Machine machine;
  machine.jump_busy_to(INT64_MAX - 10);
  machine.run(100, {0.001, false, true});
  CHECK(machine.vitals.well());
  machine.run(20, kStalled);
  CHECK_FALSE(machine.vitals.well());
}

}  // namespace
}  // namespace flamed::daemon
