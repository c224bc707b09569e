// SPDX-License-Identifier: Apache-2.0
#include "daemon/containers/container_namer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <utility>

#include "store/model/container_text.h"
#include "symbolizer/reader/container_names.h"

namespace flamed::daemon {
namespace {

/// The kubelet links a log, and runtimes write their files, before or just after the container starts.
constexpr std::array<std::int64_t, 3> kAgainAfterNs{2 * kNsPerSecond, 10 * kNsPerSecond, 60 * kNsPerSecond};

}  // namespace

std::string container_name_of(const symbolizer::ContainerNames& names) {
  if (names.pod.empty() || names.pod_namespace.empty()) return names.name;
  // The container that only holds the pod's namespaces has no name.
  return names.pod_namespace + "/" + names.pod + "/" + (names.name.empty() ? "[pod]" : names.name);
}

std::string ContainerNamer::text_of(const std::string& container) {
  if (!symbolizer::is_container_id(container)) return container;
  if (known_.size() >= kMostKnown) known_.clear();
  const auto [entry, is_new] = known_.try_emplace(container);
  if (is_new && !requests_.try_push({container, 0, {}})) known_.erase(entry);
  return is_new ? container : store::join_container(container, entry->second);
}

std::unordered_set<std::string> ContainerNamer::take_named() {
  std::vector<Answer> answers;
  {
    const std::lock_guard lock(mutex_);
    answers = std::exchange(answers_, {});
  }
  std::unordered_set<std::string> named;
  for (Answer& answer : answers) {
    known_[answer.id] = std::move(answer.name);
    named.insert(std::move(answer.id));
  }
  return named;
}

void ContainerNamer::run(const std::stop_token& stop) {
  const symbolizer::BackgroundReading in_background;
  std::vector<Request> later;
  while (!stop.stop_requested()) {
    if (later.empty()) {
      std::optional<Request> request = requests_.pop(stop);
      if (!request) return;
      later.push_back(std::move(*request));
    } else {
      const auto next = std::min_element(
          later.begin(), later.end(), [](const Request& a, const Request& b) { return a.not_before < b.not_before; });
      const std::int64_t wait_ns = std::max<std::int64_t>(next->not_before.ns - clock_.monotonic().ns, 0);
      requests_.await(stop, std::chrono::steady_clock::now() + std::chrono::nanoseconds(wait_ns));
      while (std::optional<Request> request = requests_.try_pop()) later.push_back(std::move(*request));
    }
    const MonotonicTime now = clock_.monotonic();
    const auto first_due =
        std::partition(later.begin(), later.end(), [&](const Request& request) { return now < request.not_before; });
    std::vector<Request> due(std::make_move_iterator(first_due), std::make_move_iterator(later.end()));
    later.erase(first_due, later.end());
    for (Request& request : due) {
      if (stop.stop_requested()) return;
      std::string name = find(request.id);
      if (!name.empty()) {
        const std::lock_guard lock(mutex_);
        answers_.push_back({std::move(request.id), std::move(name)});
      } else if (request.tries < kAgainAfterNs.size() && later.size() < kMostWaiting) {
        request.not_before = {clock_.monotonic().ns + kAgainAfterNs[request.tries++]};
        later.push_back(std::move(request));
      }
    }
  }
}

std::string ContainerNamer::find(const std::string& id) {
  Result<symbolizer::ContainerFiles> found = opener_.find_container_files(id);
  if (!found) return {};
  std::string name = container_name_of(symbolizer::parse_container_log_name(found->log_name, id));
  for (const symbolizer::ContainerFiles::File& file : found->files) {
    if (!name.empty()) break;
    const Result<symbolizer::ContainerNames> names = reader_.read_container(file.file.get(), file.format, id);
    if (names) name = container_name_of(*names);
  }
  return name;
}

}  // namespace flamed::daemon
