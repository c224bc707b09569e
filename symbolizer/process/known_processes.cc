// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/process/known_processes.h"

namespace flamed::symbolizer {
namespace {

/// Ended processes are judged by the time of a drain, and what was taken before that has come with it, but for what a
/// CPU was stopped over in the middle of writing.
constexpr std::int64_t kGraceNs = 3 * kNsPerSecond;

void append_modules_of(const Process& process, std::vector<ModuleId>& modules) {
  modules.push_back(process.anonymous);
  modules.push_back(process.unmapped);
  for (const MappingSet* maps : {process.maps.get(), process.earlier_maps.get()}) {
    if (maps == nullptr) continue;
    for (const Mapping& mapping : maps->mappings()) modules.push_back(mapping.module);
  }
}

}  // namespace

void KnownProcesses::append_mapped_modules(std::vector<ModuleId>& modules) const {
  for (const auto& [pid, process] : running_) append_modules_of(process, modules);
  for (const auto& [id, process] : ended_) append_modules_of(process, modules);
}

Process* KnownProcesses::find(const ProcessId& id) {
  Process* const running = find_running(id.pid);
  return running != nullptr && running->id == id ? running : find_ended(id);
}

Process& KnownProcesses::enter(std::int32_t pid) {
  // Made in its place: a Process is large, and moving it would cost more than filling it.
  const auto [place, is_new] = running_.try_emplace(pid);
  if (is_new) place->second.id = {pid, 0};
  return place->second;
}

void KnownProcesses::end(Process& running) {
  const std::int32_t pid = running.id.pid;
  put_ended(std::move(running));
  running_.erase(pid);
}

Process& KnownProcesses::put_ended(Process&& process) {
  const ProcessId id = process.id;
  to_forget_.emplace_back(process.last_seen, id);
  return ended_.insert_or_assign(id, std::move(process)).first->second;
}

Process* KnownProcesses::adopt_ended(const ProcessId& id) {
  auto node = ended_.extract({id.pid, 0});
  if (node.empty()) return nullptr;
  node.key() = id;
  node.mapped().id = id;
  to_forget_.emplace_back(node.mapped().last_seen, id);
  return &ended_.insert(std::move(node)).position->second;
}

void KnownProcesses::forget_ended(MonotonicTime now) {
  while (!to_forget_.empty() && now.ns - to_forget_.front().first.ns >= kGraceNs) {
    const ProcessId id = to_forget_.front().second;
    to_forget_.pop_front();
    const auto found = ended_.find(id);
    if (found == ended_.end()) continue;
    const MonotonicTime last_seen = found->second.last_seen;
    if (now.ns - last_seen.ns >= kGraceNs) {
      ended_.erase(found);
      ++releases_;
    } else {
      to_forget_.emplace_back(last_seen, id);
    }
  }
}

}  // namespace flamed::symbolizer
