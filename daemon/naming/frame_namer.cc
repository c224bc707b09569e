// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/frame_namer.h"

#include <optional>
#include <string>

#include "store/model/wait_reason.h"
#include "symbolizer/names/runtime_functions.h"

namespace flamed::daemon {

namespace {

/// The name of a thread that holds a lock, by the kept name of threads that are called so.
std::shared_ptr<const store::InlineChain> name_holder(const store::HolderFrame& holder,
                                                      const std::shared_ptr<const store::InlineChain>& name) {
  const bool has_name = holder.name != 0 && name != nullptr && !name->empty() && name->front().reason.empty();
  const std::string tid = std::to_string(holder.tid);
  return share({{has_name ? "[held by " + name->front().name + " (" + tid + ")]" : "[held by thread " + tid + "]", "",
                 store::FrameKind::kKernel, ""}});
}

}  // namespace

std::vector<std::shared_ptr<const store::InlineChain>> FrameNamer::name(std::span<const Frame> frames) {
  std::vector<std::shared_ptr<const store::InlineChain>> chains(frames.size());
  std::vector<Frame> code;
  code.reserve(frames.size());
  bool has_others = false;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    if (const std::optional<store::WaitReason> reason = store::wait_reason_in(frames[i])) {
      chains[i] = share({{"[" + std::string(store::name_of(*reason)) + "]", "", store::FrameKind::kKernel, ""}});
      has_others = true;
    } else if (const std::optional<store::HolderFrame> holder = store::holder_in(frames[i])) {
      code.push_back(symbolizer::RuntimeFunctions::frame_of(holder->name, 0));
      has_others = true;
    } else {
      code.push_back(without_mark(frames[i]));
    }
  }
  std::vector<std::shared_ptr<const store::InlineChain>> named = symbolizer_.symbolise(code);
  if (!has_others) return named;
  std::size_t next = 0;
  for (std::size_t i = 0; i < frames.size() && next < named.size(); ++i) {
    if (chains[i] != nullptr) continue;
    chains[i] = std::move(named[next++]);
    if (const std::optional<store::HolderFrame> holder = store::holder_in(frames[i])) {
      chains[i] = name_holder(*holder, chains[i]);
    }
  }
  return chains;
}

}  // namespace flamed::daemon
