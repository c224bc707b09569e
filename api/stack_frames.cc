// SPDX-License-Identifier: Apache-2.0
#include "api/stack_frames.h"

namespace flamed::api {
namespace {

/// By node: functions from it to the outermost.
std::vector<std::uint64_t> depths_of(const store::StackProfile& profile) {
  std::vector<std::uint64_t> depths(profile.nodes.size(), 0);
  for (std::size_t i = 1; i < profile.nodes.size(); ++i) {
    const store::StackNode& node = profile.nodes[i];
    depths[i] = depths[node.caller] + profile.frames[node.frame].chain->size();
  }
  return depths;
}

}  // namespace

std::string truncation_name(store::Truncation reason) {
  return "[truncated: " + std::string(store::describe(reason)) + "]";
}

std::uint64_t functions_written(const store::StackProfile& profile) {
  const std::vector<std::uint64_t> depths = depths_of(profile);
  std::uint64_t sum = 0;
  for (const store::StackCount& count : profile.counts) sum += depths[count.stack] + 1;
  return sum;
}

std::uint64_t functions_written(const store::TimedSamples& samples) {
  const std::vector<std::uint64_t> depths = depths_of(samples.stacks);
  std::uint64_t sum = 0;
  for (const store::TimedSample& sample : samples.samples) sum += depths[sample.stack] + 1;
  return sum;
}

}  // namespace flamed::api
