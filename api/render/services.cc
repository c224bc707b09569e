// SPDX-License-Identifier: Apache-2.0
#include "api/render/services.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>

namespace flamed::api {
namespace {

/// Of processes without one, kernel threads among them: each of these as a service would hide the others.
constexpr std::string_view kNoProgram = "[kernel threads and unknown]";

/// As container tools print it.
std::string_view short_id(std::string_view container) {
  constexpr std::size_t kIdLength = 64;
  constexpr std::size_t kShownLength = 12;
  return container.size() == kIdLength ? container.substr(0, kShownLength) : container;
}

auto key_of(const store::StackCount& count) { return std::tuple(count.stack, count.truncation); }

void add_up(std::vector<store::StackCount>& counts) {
  std::stable_sort(counts.begin(), counts.end(),
                   [](const store::StackCount& a, const store::StackCount& b) { return key_of(a) < key_of(b); });
  std::size_t last = 0;
  for (std::size_t i = 1; i < counts.size(); ++i) {
    if (key_of(counts[i]) == key_of(counts[last])) {
      counts[last].samples += counts[i].samples;
      counts[last].ns += counts[i].ns;
    } else {
      counts[++last] = counts[i];
    }
  }
  if (!counts.empty()) counts.resize(last + 1);
}

}  // namespace

std::string_view container_of(const store::ProcessInfo& process) {
  const auto [id, name] = store::split_container(process.container);
  return name.empty() ? id : store::parts_of_container(name).container;
}

store::ContainerParts pod_of(const store::ProcessInfo& process) {
  return store::parts_of_container(store::split_container(process.container).name);
}

std::string service_name(const store::ProcessInfo& process) {
  if (!process.container.empty()) {
    const auto [id, name] = store::split_container(process.container);
    const auto [pod_namespace, pod, container] = store::parts_of_container(name);
    if (name.empty()) return std::string(short_id(id));
    if (pod.empty()) return std::string(name);
    return std::string(pod_namespace) + "/" + std::string(container);
  }
  if (!process.unit.empty()) return process.unit;
  if (process.executable.empty()) return std::string(kNoProgram);
  return process.executable.substr(process.executable.rfind('/') + 1);
}

std::vector<Service> services_of(const store::StackProfile& profile) {
  std::map<std::string, Service> by_name;
  std::vector<Service*> of_process;
  of_process.reserve(profile.processes.size());
  for (const store::ProcessInfo& process : profile.processes) {
    const std::string name = service_name(process);
    const auto [entry, is_new] = by_name.try_emplace(name);
    Service& service = entry->second;
    const store::ContainerParts pod = pod_of(process);
    const Service own{name,
                      process.unit,
                      std::string(store::split_container(process.container).id),
                      std::string(container_of(process)),
                      std::string(pod.pod),
                      std::string(pod.pod_namespace)};
    if (is_new) {
      service = own;
    } else {
      for (const auto text :
           {&Service::unit, &Service::container_id, &Service::container, &Service::pod, &Service::pod_namespace}) {
        if (service.*text != own.*text) (service.*text).clear();
      }
    }
    of_process.push_back(&service);
  }
  for (const store::StackCount& count : profile.counts) {
    of_process[profile.threads[count.thread].process]->counts.push_back(count);
  }
  std::vector<Service> services;
  for (auto& [name, service] : by_name) {
    if (service.counts.empty()) continue;
    add_up(service.counts);
    services.push_back(std::move(service));
  }
  return services;
}

}  // namespace flamed::api
