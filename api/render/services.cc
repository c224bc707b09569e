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

std::string_view service_name(const store::ProcessInfo& process) {
  if (!process.container.empty()) return short_id(process.container);
  if (!process.unit.empty()) return process.unit;
  if (process.executable.empty()) return kNoProgram;
  return std::string_view(process.executable).substr(process.executable.rfind('/') + 1);
}

std::vector<Service> services_of(const store::StackProfile& profile) {
  std::map<std::string_view, Service> by_name;
  std::vector<Service*> of_process;
  of_process.reserve(profile.processes.size());
  for (const store::ProcessInfo& process : profile.processes) {
    const std::string_view name = service_name(process);
    const auto [entry, is_new] = by_name.try_emplace(name);
    Service& service = entry->second;
    if (is_new) {
      service = {std::string(name), process.unit, process.container};
    } else {
      if (service.unit != process.unit) service.unit.clear();
      if (service.container != process.container) service.container.clear();
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
