// SPDX-License-Identifier: Apache-2.0
//
// Hand-made stack profiles, for tests of rendering.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/query/timed_samples.h"

namespace flamed::api {

/// A profile of one test.
class StackProfileBuilder {
 public:
  static constexpr std::int64_t kStartNs = 1769868000LL * kNsPerSecond;

  StackProfileBuilder() {
    profile.asked = profile.used = {WallTime{kStartNs}, WallTime{kStartNs + 60 * kNsPerSecond}};
    profile.resolution_ns = 1;
    profile.period_ns = 10'000'000;
  }

  std::uint32_t thread(const store::ProcessInfo& process, std::int32_t tid, std::string comm) {
    profile.processes.push_back(process);
    profile.threads.push_back({static_cast<std::uint32_t>(profile.processes.size() - 1), tid, std::move(comm)});
    return static_cast<std::uint32_t>(profile.threads.size() - 1);
  }
  /// `chain` outermost first.
  std::uint32_t frame(std::uint64_t offset, store::InlineChain chain) {
    profile.frames.push_back(
        {{kFirstFreeModule, offset}, std::make_shared<const store::InlineChain>(std::move(chain))});
    return static_cast<std::uint32_t>(profile.frames.size() - 1);
  }
  std::uint32_t node(std::uint32_t caller, std::uint32_t frame) {
    profile.nodes.push_back({caller, frame});
    return static_cast<std::uint32_t>(profile.nodes.size() - 1);
  }
  void count(std::uint32_t thread, std::uint32_t stack, std::uint64_t samples,
             std::optional<store::Truncation> truncation = {}) {
    const std::uint64_t ns = samples * static_cast<std::uint64_t>(profile.period_ns);
    profile.counts.push_back({thread, stack, truncation, samples, ns});
    profile.total_samples += samples;
    profile.total_ns += ns;
  }

  store::StackProfile profile;
};

/// main → work → (inlined) step, and main → read → [kernel] ksys_read; one stack cut short; one sample without a stack.
inline store::StackProfile example_stacks() {
  using store::FrameKind;
  StackProfileBuilder b;
  store::ProcessInfo process{{10, 20}, "worker", "/bin/worker", 0, {}, {}};
  process.unit = "worker.service";
  const std::uint32_t first = b.thread(process, 10, "worker");
  const std::uint32_t second = b.thread({{11, 21}, "other", "", 0, {}, {}}, 12, "pool; 1");
  const std::uint32_t main = b.node(0, b.frame(0x100, {{"main", "worker", FrameKind::kNative, "", "", "0a1b"}}));
  store::NamedFrame work{"work", "worker", FrameKind::kNative, "", "void work(int)", "0a1b", "src/work.cc", 7};
  store::NamedFrame step{"step", "worker", FrameKind::kNative, "", "", "0a1b", "src/step.h", 9, true};
  const std::uint32_t inlined = b.node(main, b.frame(0x200, {work, step}));
  const std::uint32_t read = b.node(main, b.frame(0x300, {{"read", "libc.so.6", FrameKind::kNative, ""}}));
  const std::uint32_t kernel =
      b.node(read, b.frame(0xffffffff81000000, {{"ksys_read", "[kernel]", FrameKind::kKernel, ""}}));
  const std::uint32_t unknown =
      b.node(0, b.frame(0x400, {{"[unknown] (lib+0x400)", "lib", FrameKind::kUnknown, "no symbols"}}));
  b.count(first, inlined, 5);
  b.count(first, kernel, 3);
  b.count(second, unknown, 2, store::Truncation::kDepthLimit);
  b.count(second, 0, 1);
  return std::move(b.profile);
}

}  // namespace flamed::api
