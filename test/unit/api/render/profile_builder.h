// SPDX-License-Identifier: Apache-2.0
//
// Hand-made profiles, for tests of rendering.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "store/model/profile.h"

namespace flamed::api {

/// A profile of one test. Nodes are added parents first, in the store's order.
class ProfileBuilder {
 public:
  explicit ProfileBuilder(std::string root = "all") {
    profile.asked = {WallTime{1769868000LL * kNsPerSecond}, WallTime{1769868900LL * kNsPerSecond}};
    profile.used = profile.asked;
    profile.resolution_ns = kNsPerMinute;
    profile.period_ns = 10'101'010;
    profile.frames.push_back({std::move(root), "", store::FrameKind::kRoot, ""});
    profile.nodes.push_back({});
  }

  std::uint32_t add(std::uint32_t parent, store::NamedFrame frame, std::uint64_t self) {
    profile.frames.push_back(std::move(frame));
    const auto node = static_cast<std::uint32_t>(profile.nodes.size());
    profile.nodes.push_back({static_cast<std::uint32_t>(profile.frames.size() - 1), parent, 0, 0});
    count(node, self);
    return node;
  }
  std::uint32_t add(std::uint32_t parent, std::string name, std::uint64_t self) {
    return add(parent, {std::move(name), "m", store::FrameKind::kNative, ""}, self);
  }

  /// Samples that end in `node`.
  void count(std::uint32_t node, std::uint64_t self) {
    profile.nodes[node].self_samples += self;
    while (true) {
      profile.nodes[node].total_samples += self;
      if (node == 0) return;
      node = profile.nodes[node].parent;
    }
  }

  store::Profile profile;
};

}  // namespace flamed::api
