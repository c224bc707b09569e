// SPDX-License-Identifier: Apache-2.0
//
// Shared by the store's tests: a store on a clock that they move, and frames that name themselves.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/identity.h"
#include "store/query/query.h"
#include "store/ring/store.h"
#include "test/support/manual_clock.h"

namespace flamed::store::test {

inline constexpr std::int64_t kPeriodNs = 10 * kNsPerMs;
inline constexpr WallTime kNoon{1'767'268'800 * kNsPerSecond};  // 2026-01-01T12:00:00Z
inline constexpr ProcessId kProcess{100, 5000};

inline Frame code(std::uint64_t offset) { return {ModuleId{16}, offset}; }

/// Names a frame after its offset. Functions are 16 bytes long, so 0x10 and 0x1f are both "f1". In module 17 each
/// function is inlined into "outer".
class TestNamer final : public FrameNamer {
 public:
  std::vector<std::shared_ptr<const InlineChain>> name(std::span<const Frame> frames) override {
    ++calls;
    std::vector<std::shared_ptr<const InlineChain>> chains;
    for (const Frame& frame : frames) {
      asked.push_back(frame);
      InlineChain chain;
      if (frame.module == ModuleId{17}) chain.push_back({"outer", "lib", FrameKind::kNative, ""});
      chain.push_back({"f" + std::to_string(frame.offset / 16), "lib", FrameKind::kNative, ""});
      chains.push_back(std::make_shared<const InlineChain>(std::move(chain)));
    }
    return chains;
  }
  int calls = 0;
  std::vector<Frame> asked;
};

/// A store that begins at noon.
struct TestStore {
  explicit TestStore(Limits limits = {}) : store(limits, clock, kPeriodNs) {}

  void add(std::vector<Frame> frames, ProcessId process = kProcess, std::optional<Truncation> truncation = {}) {
    add_at(clock.monotonic(), std::move(frames), process, truncation);
  }
  void add_at(MonotonicTime time, std::vector<Frame> frames, ProcessId process = kProcess,
              std::optional<Truncation> truncation = {}) {
    store.add({time, process, process.pid, "worker", frames, truncation});
  }
  /// Lets time pass with a drain each second, as in the daemon.
  void pass(std::int64_t seconds) {
    for (; seconds > 0; --seconds) {
      clock.advance_ns(kNsPerSecond);
      store.advance(clock.monotonic());
    }
  }
  /// Long enough for the current minute to be sealed.
  void pass_minutes(std::int64_t minutes) {
    for (; minutes > 0; --minutes) {
      clock.advance_ns(kNsPerMinute);
      store.advance(clock.monotonic());
    }
  }
  [[nodiscard]] WallWindow everything() const { return {{0}, {clock.wall().ns + kNsPerMinute}}; }
  [[nodiscard]] Profile profile(std::optional<ProcessSelector> process = {}) const {
    return profile_of(everything(), process);
  }
  [[nodiscard]] Profile profile_of(WallWindow window, std::optional<ProcessSelector> process = {}) const {
    TestNamer namer;
    Selection selection{window};
    if (process) selection.processes.push_back(*process);
    return build_profile(store.snapshot(), selection, namer);
  }

  ManualClock clock{MonotonicTime{1'000 * kNsPerSecond}, kNoon};
  Store store;
};

/// "a;b;c self" lines of the nodes that have samples of their own, in their order.
inline std::vector<std::string> folded(const Profile& profile) {
  std::vector<std::string> lines;
  for (const ProfileNode& node : profile.nodes) {
    if (node.self_samples == 0) continue;
    std::string line = " " + std::to_string(node.self_samples);
    const ProfileNode* at = &node;
    for (;;) {
      line.insert(0, profile.frames[at->frame].name);
      if (at == &profile.nodes[0]) break;
      line.insert(0, ";");
      at = &profile.nodes[at->parent];
    }
    lines.push_back(line);
  }
  return lines;
}

inline bool mentions(const std::vector<std::string>& sentences, const std::string& text) {
  for (const std::string& sentence : sentences) {
    if (sentence.find(text) != std::string::npos) return true;
  }
  return false;
}

inline std::uint64_t count_of(const Quality& quality, Truncation reason) {
  return quality.truncated[static_cast<std::size_t>(reason)];
}
inline std::uint64_t count_of(const Quality& quality, Loss reason) {
  return quality.lost[static_cast<std::size_t>(reason)];
}

}  // namespace flamed::store::test
