// SPDX-License-Identifier: Apache-2.0
#include "api/render/stack_frames.h"

#include <algorithm>
#include <vector>

namespace flamed::api {
namespace {

/// By node: number of functions from it to the outermost.
std::vector<std::uint64_t> depths_of(const store::StackProfile& profile) {
  std::vector<std::uint64_t> depths(profile.nodes.size(), 0);
  for (std::size_t i = 1; i < profile.nodes.size(); ++i) {
    const store::StackNode& node = profile.nodes[i];
    depths[i] = depths[node.caller] + profile.frames[node.frame].chain->size();
  }
  return depths;
}

/// Adds up stacks' functions, and those of them that have a name.
class NamedFunctions {
 public:
  explicit NamedFunctions(const store::StackProfile& profile) : depths_(depths_of(profile)), named_(depths_.size(), 0) {
    for (std::size_t i = 1; i < profile.nodes.size(); ++i) {
      const store::StackNode& node = profile.nodes[i];
      const store::InlineChain& chain = *profile.frames[node.frame].chain;
      named_[i] = named_[node.caller] +
                  static_cast<std::uint64_t>(std::count_if(
                      chain.begin(), chain.end(), [](const auto& function) { return !is_nameless(function.kind); }));
    }
  }
  void add(std::uint32_t stack, std::uint64_t samples) {
    all_sum_ += depths_[stack] * samples;
    named_sum_ += named_[stack] * samples;
  }
  [[nodiscard]] double share() const {
    return all_sum_ == 0 ? 1 : static_cast<double>(named_sum_) / static_cast<double>(all_sum_);
  }

 private:
  std::vector<std::uint64_t> depths_;  ///< by node
  std::vector<std::uint64_t> named_;   ///< likewise
  std::uint64_t all_sum_ = 0;
  std::uint64_t named_sum_ = 0;
};

}  // namespace

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

double symbolised_share(const store::StackProfile& profile) {
  NamedFunctions functions(profile);
  for (const store::StackCount& count : profile.counts) functions.add(count.stack, count.samples);
  return functions.share();
}

double symbolised_share(const store::TimedSamples& samples) {
  NamedFunctions functions(samples.stacks);
  for (const store::TimedSample& sample : samples.samples) functions.add(sample.stack, 1);
  return functions.share();
}

}  // namespace flamed::api
