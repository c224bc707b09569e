// SPDX-License-Identifier: Apache-2.0
//
// From stacks and times of the exact mode of waiting to answers.
#include "daemon/flow/off_cpu_intake.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "store/model/wait_reason.h"
#include "store/query/query.h"
#include "test/catch.h"
#include "test/support/manual_clock.h"

namespace flamed::daemon {
namespace {

constexpr ProcessId kProcess{100, 7};
constexpr std::uint32_t kOwner = 1000;
constexpr ModuleId kModule = kFirstFreeModule;

/// Names frames by their offset.
class Namer final : public store::FrameNamer {
 public:
  std::vector<std::shared_ptr<const store::InlineChain>> name(std::span<const Frame> frames) override {
    std::vector<std::shared_ptr<const store::InlineChain>> chains;
    for (const Frame& frame : frames) {
      const auto reason = store::wait_reason_in(frame);
      const auto waker = store::waker_in(frame);
      const std::string text = reason  ? std::string(name_of(*reason))
                               : waker ? "waker " + std::to_string(*waker)
                                       : "f" + std::to_string(frame.offset);
      chains.push_back(
          std::make_shared<store::InlineChain>(store::InlineChain{{text, "program", store::FrameKind::kNative, ""}}));
    }
    return chains;
  }
};

struct Fixture {
  void add(std::int32_t tid, std::uint64_t number, std::uint64_t function, store::WaitReason reason) {
    const std::vector<Frame> frames{{kModule, function}, store::wait_frame(reason)};
    store::StackSample sample;
    sample.time = clock.monotonic();
    sample.process = kProcess;
    sample.tid = tid;
    sample.comm = "worker";
    sample.frames = frames;
    sample.owner = kOwner;
    intake.add(sample, number);
  }
  store::Snapshot snapshot(std::vector<OffCpuTime> times) {
    outcome.times = std::move(times);
    store::ProcessInfo info;
    info.id = kProcess;
    info.comm = "program";
    info.uid = kOwner;
    return store::measured(intake.take_snapshot(outcome, {&info, 1}, clock, wakers), store::Measure::kWait, false);
  }
  /// Milliseconds in stacks with this frame.
  double ms(const store::Snapshot& snapshot, const std::string& frame) {
    store::Selection selection;
    selection.window = {{outcome.began.ns + clock.wall_offset_ns()}, {outcome.ended.ns + clock.wall_offset_ns()}};
    const store::Profile profile = store::build_profile(snapshot, selection, namer);
    double sum = 0;
    for (const store::ProfileNode& node : profile.nodes) {
      if (&node != &profile.nodes.front() && profile.frames[node.frame].name == frame)
        sum += static_cast<double>(profile.cpu_ns(node.total_samples)) / kNsPerMs;
    }
    return sum;
  }

  std::vector<std::string> wakers;
  ManualClock clock{{3600 * kNsPerSecond}, {1'769'868'330 * kNsPerSecond}};
  Namer namer;
  OffCpuIntake intake{[](std::uint64_t address) {
    return address < 10    ? "bpf_trace_run4"
           : address < 20  ? "__schedule"
           : address == 30 ? "asm_sysvec_apic_timer_interrupt"
                           : std::string("do_wait");
  }};
  OffCpuCapture::Outcome outcome{{kProcess.pid}, {3590 * kNsPerSecond}, {3600 * kNsPerSecond}, {}, {}};
};

TEST_CASE("a stack has its time by reason, and its time in run queues beside it") {
  Fixture fixture;
  fixture.add(101, 1, 5, store::WaitReason::kLock);
  fixture.add(101, 2, 6, store::WaitReason::kSleep);
  const store::Snapshot snapshot =
      fixture.snapshot({{101, 100, 1, 300 * kNsPerMs, 20 * kNsPerMs}, {101, 100, 2, 700 * kNsPerMs, 0}});
  CHECK(fixture.ms(snapshot, "lock") == Approx(300));
  CHECK(fixture.ms(snapshot, "sleep") == Approx(700));
  CHECK(fixture.ms(snapshot, "run_queue") == Approx(20));
  CHECK(fixture.ms(snapshot, "f5") == Approx(320));
  CHECK(fixture.ms(snapshot, "f6") == Approx(700));
}

TEST_CASE("a time without a stack is told all the same") {
  Fixture fixture;
  const store::Snapshot snapshot = fixture.snapshot({{101, 100, 0, 300 * kNsPerMs, 20 * kNsPerMs}});
  CHECK(fixture.ms(snapshot, "other") == Approx(300));
  CHECK(fixture.ms(snapshot, "run_queue") == Approx(20));
}

TEST_CASE("a stack that is known better later replaces the one before, and all are forgotten with the answer") {
  Fixture fixture;
  fixture.add(101, 1, 5, store::WaitReason::kLock);
  fixture.add(101, 1, 6, store::WaitReason::kLock);
  const std::vector<OffCpuTime> times{{101, 100, 1, 300 * kNsPerMs, 0}};
  const store::Snapshot snapshot = fixture.snapshot(times);
  CHECK(fixture.ms(snapshot, "f5") == 0);
  CHECK(fixture.ms(snapshot, "f6") == Approx(300));
  CHECK(fixture.ms(fixture.snapshot(times), "f6") == 0);
  fixture.add(101, 1, 6, store::WaitReason::kLock);
  fixture.intake.clear();
  CHECK(fixture.ms(fixture.snapshot(times), "f6") == 0);
}

TEST_CASE("who ended a wait stands in front of its reason, another user's thread without its name") {
  Fixture fixture;
  for (std::uint64_t number = 1; number <= 5; ++number) fixture.add(101, number, 5, store::WaitReason::kPipe);
  fixture.outcome.waker_stacks = {{5, 40}, {40, 30, 50}};
  fixture.outcome.wakers = {{{101, 1}, {200, 200, kOwner, "writer", 0}},
                            {{101, 2}, {201, 201, 4711, "secret", 0}},
                            {{101, 3}, {200, 200, kOwner, "writer", 1}},
                            {{101, 4}, {0, 0, 0, "swapper/0", 0}}};
  const std::vector<OffCpuTime> times{{101, 100, 1, 100 * kNsPerMs, 10 * kNsPerMs},
                                      {101, 100, 2, 200 * kNsPerMs, 0},
                                      {101, 100, 3, 300 * kNsPerMs, 0},
                                      {101, 100, 4, 400 * kNsPerMs, 0},
                                      {101, 100, 5, 500 * kNsPerMs, 0}};
  std::vector<std::string> names{"[woken by writer (200)]", "[woken by secret (201)]", "[woken by an interrupt]"};
  SECTION("who sees everything sees all names") {}
  SECTION("others do not") {
    fixture.outcome.only_user = kOwner;
    names[1] = "[woken by another user]";
  }
  const store::Snapshot snapshot = fixture.snapshot(times);
  CHECK(fixture.wakers == names);
  CHECK(fixture.ms(snapshot, "waker 0") == Approx(110));
  CHECK(fixture.ms(snapshot, "waker 1") == Approx(200));
  CHECK(fixture.ms(snapshot, "waker 2") == Approx(700));
  CHECK(fixture.ms(snapshot, "pipe") == Approx(1500));
  CHECK(fixture.ms(snapshot, "run_queue") == Approx(10));
}

TEST_CASE("another user sees nothing of it") {
  Fixture fixture;
  fixture.add(101, 1, 5, store::WaitReason::kLock);
  const store::Snapshot snapshot =
      fixture.snapshot({{101, 100, 1, 300 * kNsPerMs, 0}, {102, 100, 0, 100 * kNsPerMs, 0}});
  CHECK(fixture.ms(store::seen_by(snapshot, kOwner), "lock") == Approx(300));
  CHECK(fixture.ms(store::seen_by(snapshot, kOwner), "other") == Approx(100));
  CHECK(fixture.ms(store::seen_by(snapshot, kOwner + 1), "lock") == 0);
  CHECK(fixture.ms(store::seen_by(snapshot, kOwner + 1), "other") == 0);
}

TEST_CASE("the program that took a stack, and the scheduler, are not in it") {
  Fixture fixture;
  const std::vector<std::uint64_t> kernel{50, 1, 2, 11, 30, 31};
  const auto shown = fixture.intake.without_program(kernel);
  CHECK(std::vector<std::uint64_t>(shown.begin(), shown.end()) == std::vector<std::uint64_t>{30, 31});
  const std::vector<std::uint64_t> visited{30, 31};
  CHECK(fixture.intake.without_program(visited).size() == 2);
}

}  // namespace
}  // namespace flamed::daemon
