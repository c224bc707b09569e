// SPDX-License-Identifier: Apache-2.0
//
// PathNamer: names frames by the paths of their modules, so that tests see which file an address was found in.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/identity.h"
#include "store/model/profile.h"
#include "symbolizer/process/module_table.h"

namespace flamed::test {

inline constexpr std::uint64_t kKernel = 0xffffffff81000000;

/// Names a frame "path+offset", or "kernel+offset".
class PathNamer final : public store::FrameNamer {
 public:
  explicit PathNamer(const symbolizer::ModuleTable& modules) : modules_(modules) {}
  std::vector<std::shared_ptr<const store::InlineChain>> name(std::span<const Frame> frames) override {
    std::vector<std::shared_ptr<const store::InlineChain>> chains;
    for (const Frame& frame : frames) {
      const symbolizer::ModulePtr module = modules_.find(frame.module);
      const std::uint64_t offset = frame.module == kKernelModule ? frame.offset - kKernel : frame.offset;
      char text[24];
      std::snprintf(text, sizeof text, "+%llx", static_cast<unsigned long long>(offset));
      const std::string name = (module == nullptr ? "gone" : module->path) + text;
      chains.push_back(
          std::make_shared<const store::InlineChain>(store::InlineChain{{name, "", store::FrameKind::kNative, ""}}));
    }
    return chains;
  }

 private:
  const symbolizer::ModuleTable& modules_;
};

/// "outer;inner count" for each stack, without the root's name.
inline std::vector<std::string> stacks_of(const store::Profile& profile) {
  std::vector<std::string> lines;
  for (const store::ProfileNode& node : profile.nodes) {
    if (node.self_samples == 0) continue;
    std::string line;
    for (const store::ProfileNode* up = &node; up != &profile.nodes[0]; up = &profile.nodes[up->parent]) {
      line.insert(0, profile.frames[up->frame].name + (line.empty() ? "" : ";"));
    }
    lines.push_back(line + " " + std::to_string(node.self_samples));
  }
  return lines;
}

}  // namespace flamed::test
