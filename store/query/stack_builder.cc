// SPDX-License-Identifier: Apache-2.0
#include "store/query/stack_builder.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

namespace flamed::store {

StackBuilder::StackBuilder(const SnapshotData& snapshot, const Selection& selection, const ProfileOptions& options,
                           QueryBudget& budget)
    : snapshot_(snapshot),
      selection_(selection),
      options_(options),
      budget_(budget),
      states_(snapshot),
      seen_at_(snapshot.tree.frames.limit(), kNone),
      thread_at_(snapshot.threads.limit(), kNone),
      process_at_(snapshot.processes.limit(), kNone) {}

bool StackBuilder::see(StackRef ref, std::uint64_t samples) {
  states_.of(ref.stack, [&](std::uint32_t id, const Frame& frame) {
    const bool kernel = frame.module == kKernelModule;
    if (!options_.interpreter && is_interpreter(frame)) return;
    if (seen_at_[id] != kNone || (selection_.side != Side::kBoth && kernel != (selection_.side == Side::kKernel)))
      return;
    seen_at_[id] = static_cast<std::uint32_t>(seen_.size());
    seen_.push_back(frame);
  });
  if (!states_.has(ref, selection_.side)) return false;
  states_.count(ref, samples, quality_);
  return true;
}

void StackBuilder::name(FrameNamer& namer) {
  std::vector<std::shared_ptr<const InlineChain>> chains;
  if (!seen_.empty()) chains = namer.name(seen_);
  chains.resize(seen_.size());
  shown_.reserve(seen_.size());
  for (std::size_t i = 0; i < seen_.size(); ++i) shown_.push_back(show(seen_[i], chains[i]));
  placed_.assign(std::max<std::size_t>(snapshot_.tree.nodes.limit(), 1), Placed{});
  placed_[kEmptyStack.value].node = 0;
}

StackBuilder::Shown StackBuilder::show(const Frame& address, const std::shared_ptr<const InlineChain>& named) {
  static const auto kUnnamed =
      std::make_shared<const InlineChain>(1, NamedFrame{"[unknown]", "", FrameKind::kUnknown, "it has no name"});
  std::shared_ptr<const InlineChain> chain = named != nullptr && !named->empty() ? named : kUnnamed;
  const bool shorter = !options_.inlines && chain->size() > 1;
  const bool longer_names =
      options_.full_names &&
      std::any_of(chain->begin(), chain->end(), [](const NamedFrame& frame) { return !frame.full_name.empty(); });
  if (shorter || longer_names) {
    auto changed = std::make_shared<InlineChain>(chain->begin(), shorter ? chain->begin() + 1 : chain->end());
    for (NamedFrame& frame : *changed) {
      if (longer_names && !frame.full_name.empty()) frame.name = frame.full_name;
    }
    chain = std::move(changed);
  }
  Shown shown;
  const auto fits = [&](const NameMatcher& matcher) {
    return matcher &&
           std::any_of(chain->begin(), chain->end(), [&](const NamedFrame& frame) { return matcher(frame.name); });
  };
  shown.focused = fits(options_.focus);
  shown.ignored = fits(options_.ignore);
  if (fits(options_.hide)) {
    auto rest = std::make_shared<InlineChain>();
    for (const NamedFrame& frame : *chain) {
      if (!options_.hide(frame.name)) rest->push_back(frame);
    }
    if (rest->empty()) return shown;
    chain = std::move(rest);
  }
  shown.frame = static_cast<std::uint32_t>(frames_.size());
  // Kernel addresses would undo address space randomisation (KASLR).
  const bool hidden = snapshot_.only_user && address.module == kKernelModule;
  frames_.push_back({hidden ? Frame{kKernelModule, 0} : without_mark(address), std::move(chain)});
  return shown;
}

const StackBuilder::Placed& StackBuilder::place(StackId stack) {
  path_.clear();
  std::uint32_t node = stack.value;
  for (; placed_[node].node == kNone; node = snapshot_.tree.nodes[node].caller.value) path_.push_back(node);
  Placed at = placed_[node];
  for (std::size_t i = path_.size(); i-- > 0;) {
    const std::uint32_t seen = seen_at_[snapshot_.tree.nodes[path_[i]].frame.value];
    if (seen != kNone) {  // else a mark of truncation, a frame of the other side, or an interpreter's
      const Shown& shown = shown_[seen];
      at.focused = at.focused || shown.focused;
      at.ignored = at.ignored || shown.ignored;
      if (shown.frame != kNone) {
        nodes_.push_back({at.node, shown.frame});
        at.node = static_cast<std::uint32_t>(nodes_.size() - 1);
        static_cast<void>(budget_.grow());
      }
    }
    placed_[path_[i]] = at;
  }
  return placed_[stack.value];
}

std::optional<StackBuilder::Built> StackBuilder::stack(StackRef ref) {
  if (budget_.exhausted()) return std::nullopt;
  const Placed& placed = place(ref.stack);
  if (placed.ignored || (options_.focus && !placed.focused)) return std::nullopt;
  return Built{placed.node, states_.truncation_of(ref)};
}

std::uint32_t StackBuilder::thread(std::uint32_t thread) {
  if (thread_at_[thread] != kNone) return thread_at_[thread];
  const ThreadRecord& record = snapshot_.threads[thread];
  if (process_at_[record.process] == kNone) {
    process_at_[record.process] = static_cast<std::uint32_t>(processes_.size());
    processes_.push_back(record.process);
  }
  thread_at_[thread] = static_cast<std::uint32_t>(threads_.size());
  threads_.push_back({process_at_[record.process], record.tid, std::string(text_of(record.comm))});
  return thread_at_[thread];
}

void StackBuilder::count(std::uint32_t thread, const Built& built, std::uint64_t samples, std::uint64_t ns) {
  counts_.push_back({thread, built.stack, built.truncation, samples, ns});
  static_cast<void>(budget_.grow());
}

void StackBuilder::finish(StackProfile& profile) && {
  // Processes by id; threads follow them.
  std::vector<std::uint32_t> order(processes_.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto id_of = [&](std::uint32_t process) { return snapshot_.processes[processes_[process]].id; };
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return id_of(a) < id_of(b); });
  std::vector<std::uint32_t> rank(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    rank[order[i]] = static_cast<std::uint32_t>(i);
    profile.processes.push_back(snapshot_.info_of(snapshot_.processes[processes_[order[i]]]));
  }
  for (StackThread& thread : threads_) thread.process = rank[thread.process];
  profile.frames = std::move(frames_);
  profile.nodes = std::move(nodes_);
  profile.threads = std::move(threads_);
  profile.counts = std::move(counts_);
  for (const StackCount& count : profile.counts) {
    profile.total_samples += count.samples;
    profile.total_ns += count.ns;
  }
  profile.quality += quality_;
}

}  // namespace flamed::store
