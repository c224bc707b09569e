// SPDX-License-Identifier: Apache-2.0
#include "store/query/thread_filter.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "store/model/container_text.h"

namespace flamed::store {
namespace {

constexpr std::string_view kDeleted = " (deleted)";  // as in /proc/PID/exe
constexpr std::size_t kShortContainerId = 12;        // as container tools print them
constexpr std::size_t kLongestComm = sizeof(ThreadName) - 1;

template <typename Values, typename Matches>
bool any_or_empty(const Values& values, Matches&& fits) {
  return values.empty() || std::any_of(values.begin(), values.end(), fits);
}

bool is_executable(std::string_view path, std::string_view wanted) {
  if (path.ends_with(kDeleted)) path.remove_suffix(kDeleted.size());
  if (path == wanted) return true;
  if (wanted.find('/') != std::string_view::npos) return false;
  const std::size_t slash = path.rfind('/');
  return slash != std::string_view::npos && path.substr(slash + 1) == wanted;
}

bool is_unit(std::string_view unit, std::string_view wanted) {
  if (unit == wanted) return true;
  constexpr std::string_view kService = ".service";
  return wanted.find('.') == std::string_view::npos && unit.size() == wanted.size() + kService.size() &&
         unit.starts_with(wanted) && unit.ends_with(kService);
}

/// What runs a container leaves its own name in the path, as in "/docker-<id>.scope" and "/docker/<id>".
bool is_run_by(std::string_view cgroup, std::string_view runtime) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kTraces{{
      {"docker", "/docker-"},
      {"docker", "/docker/"},
      {"podman", "/libpod"},
      {"containerd", "cri-containerd"},
      {"cri-o", "/crio-"},
      {"kubernetes", "/kubepods"},
      {"lxc", "/lxc"},
      {"systemd-nspawn", "/machine-"},
      {"systemd-nspawn", "/systemd-nspawn@"},
  }};
  return std::any_of(kTraces.begin(), kTraces.end(), [&](const auto& known) {
    return known.first == runtime && cgroup.find(known.second) != std::string_view::npos;
  });
}

/// The id of a pod, as kubectl prints it, in "pod<id>" or in systemd's "kubepods-burstable-pod<id>.slice", which has
/// underscores for the dashes.
bool is_of_pod(std::string_view cgroup, std::string_view wanted) {
  constexpr std::size_t kIdLength = 36;
  if (wanted.starts_with("pod")) wanted.remove_prefix(3);
  if (wanted.size() != kIdLength) return false;
  std::string below(wanted);
  std::replace(below.begin(), below.end(), '-', '_');
  return cgroup.find("pod" + std::string(wanted)) != std::string_view::npos ||
         cgroup.find("pod" + below) != std::string_view::npos;
}

/// "shop/web-7d9/nginx" by the whole, the pod with its namespace, the pod, or the container in it.
bool is_called(std::string_view name, std::string_view wanted) {
  if (name.empty()) return false;
  const auto [pod_namespace, pod, container] = parts_of_container(name);
  return name == wanted || container == wanted ||
         (!pod.empty() && (pod == wanted || wanted == std::string(pod_namespace) + "/" + std::string(pod)));
}

bool is_container(const ProcessRecord::Place& place, std::string_view wanted) {
  if (place.container.empty()) return false;
  const auto [id, name] = split_container(place.container);
  return id == wanted || (wanted.size() >= kShortContainerId && id.starts_with(wanted)) || is_called(name, wanted) ||
         is_run_by(place.cgroup, wanted) || is_of_pod(place.cgroup, wanted);
}

bool is_below(std::string_view cgroup, std::string_view wanted) {
  while (wanted.starts_with('/')) wanted.remove_prefix(1);
  while (wanted.ends_with('/')) wanted.remove_suffix(1);
  if (cgroup.empty()) return false;  // not known
  if (wanted.empty()) return true;
  while (cgroup.starts_with('/')) cgroup.remove_prefix(1);
  return cgroup.starts_with(wanted) && (cgroup.size() == wanted.size() || cgroup[wanted.size()] == '/');
}

}  // namespace

ThreadFilter::ThreadFilter(const SnapshotData& snapshot, const Selection& selection)
    : snapshot_(snapshot), selection_(selection), wants_all_(!selection.is_narrowed() && !snapshot.only_user) {
  if (wants_all_) return;
  threads_.assign(snapshot.threads.limit(), Verdict::kOpen);
  processes_.assign(snapshot.processes.limit(), Verdict::kOpen);
  if (selection.trees.empty()) return;
  in_tree_.assign(snapshot.processes.limit(), Verdict::kOpen);
  parents_.emplace(snapshot);
}

bool ThreadFilter::judge_thread(std::uint32_t thread) {
  const ThreadRecord& record = snapshot_.threads[thread];
  return snapshot_.shows(record) &&
         any_or_empty(selection_.tids, [&](std::int32_t tid) { return tid == record.tid; }) &&
         any_or_empty(selection_.comms,
                      [&](const std::string& comm) {
                        return text_of(record.comm) == std::string_view(comm).substr(0, kLongestComm);
                      }) &&
         wants_process(record.process);
}

bool ThreadFilter::wants_process(std::uint32_t process) {
  if (wants_all_) return true;
  if (processes_[process] == Verdict::kOpen) {
    const bool wanted =
        judge_process(snapshot_.processes[process]) && (selection_.trees.empty() || is_in_tree(process));
    processes_[process] = wanted ? Verdict::kYes : Verdict::kNo;
  }
  return processes_[process] == Verdict::kYes;
}

bool ThreadFilter::judge_process(const ProcessRecord& record) const {
  static const std::string kUnknown;
  static const ProcessRecord::Place kNowhere;
  const bool knows_program = record.executable && !snapshot_.hides_program_of(record);
  const std::string& executable = knows_program ? *record.executable : kUnknown;
  const ProcessRecord::Place& place = record.place ? *record.place : kNowhere;
  return snapshot_.shows(record) &&
         any_or_empty(selection_.processes,
                      [&](const ProcessSelector& selector) { return matches(selector, record.id); }) &&
         any_or_empty(selection_.executables,
                      [&](const std::string& wanted) { return is_executable(executable, wanted); }) &&
         any_or_empty(selection_.units, [&](const std::string& wanted) { return is_unit(place.unit, wanted); }) &&
         any_or_empty(selection_.containers, [&](const std::string& wanted) { return is_container(place, wanted); }) &&
         any_or_empty(selection_.cgroups, [&](const std::string& wanted) { return is_below(place.cgroup, wanted); }) &&
         any_or_empty(selection_.uids, [&](std::uint32_t uid) { return uid == record.user() && uid != kNoUser; }) &&
         (!selection_.accepts || selection_.accepts(snapshot_.info_of(record)));
}

bool ThreadFilter::is_in_tree(std::uint32_t process) {
  std::vector<std::uint32_t> path;
  Verdict verdict = Verdict::kNo;
  for (std::uint32_t at = process; at != ProcessParents::kNone; at = parents_->parent_of(snapshot_.processes[at])) {
    if (in_tree_[at] != Verdict::kOpen) {
      verdict = in_tree_[at];
      break;
    }
    in_tree_[at] = Verdict::kNo;  // ends the walk if the known parents form a cycle
    path.push_back(at);
    if (is_root(snapshot_.processes[at].id)) {
      verdict = Verdict::kYes;
      break;
    }
  }
  for (std::uint32_t at : path) in_tree_[at] = verdict;
  return verdict == Verdict::kYes;
}

bool ThreadFilter::is_root(ProcessId id) const {
  return std::any_of(selection_.trees.begin(), selection_.trees.end(),
                     [&](const ProcessSelector& root) { return matches(root, id); });
}

}  // namespace flamed::store
