// SPDX-License-Identifier: Apache-2.0
#include "api/querier/labels.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "api/render/services.h"
#include "api/text/utf8.h"

namespace flamed::api {
namespace {

/// Grafana shows CPUs instead of nanoseconds for exactly this id.
constexpr std::array<ProfileType, 2> kTypes{{
    {"process_cpu:cpu:nanoseconds:cpu:nanoseconds", "process_cpu", "cpu", "nanoseconds", "cpu", "nanoseconds",
     store::Measure::kCpu},
    // As Pyroscope calls what OpenTelemetry's profiler sends.
    {"off_cpu:off_cpu:nanoseconds::", "off_cpu", "off_cpu", "nanoseconds", "", "", store::Measure::kWait},
}};

using Facts = ProcessLabels::Facts;
using ValueOf = std::string (*)(const Facts&);

/// Sorted by name.
constexpr std::array<std::pair<std::string_view, ValueOf>, 16> kLabels{{
    {"__name__", [](const Facts& of) { return std::string(of.type.name); }},
    {"__period_type__", [](const Facts& of) { return std::string(of.type.period_type); }},
    {"__period_unit__", [](const Facts& of) { return std::string(of.type.period_unit); }},
    {"__profile_type__", [](const Facts& of) { return std::string(of.type.id); }},
    {"__service_name__", [](const Facts& of) { return std::string(service_name(of.process)); }},
    {"__type__", [](const Facts& of) { return std::string(of.type.sample_type); }},
    {"__unit__", [](const Facts& of) { return std::string(of.type.sample_unit); }},
    {"container", [](const Facts& of) { return std::string(container_of(of.process)); }},
    {"host", [](const Facts& of) { return std::string(of.host); }},
    {"namespace", [](const Facts& of) { return std::string(pod_of(of.process).pod_namespace); }},
    {"pid", [](const Facts& of) { return std::to_string(of.process.id.pid); }},
    {"pod", [](const Facts& of) { return std::string(pod_of(of.process).pod); }},
    {"process", [](const Facts& of) { return of.process.comm; }},
    {"service_name", [](const Facts& of) { return std::string(service_name(of.process)); }},
    {"unit", [](const Facts& of) { return of.process.unit; }},
    {"user", [](const Facts& of) { return of.process.uid ? std::to_string(*of.process.uid) : std::string(); }},
}};

}  // namespace

std::span<const ProfileType> profile_types() { return kTypes; }

const ProfileType* find_profile_type(std::string_view id) {
  const auto* const type =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const ProfileType& row) { return row.id == id; });
  return type == kTypes.end() ? nullptr : type;
}

bool is_profile_type_id(std::string_view id) {
  constexpr std::ptrdiff_t kColons = 4;
  constexpr std::size_t kLongest = 256;
  return id.size() <= kLongest && std::count(id.begin(), id.end(), ':') == kColons && !id.starts_with(':');
}

std::vector<std::string_view> label_names() {
  std::vector<std::string_view> names;
  for (const auto& [name, value_of] : kLabels) names.push_back(name);
  return names;
}

std::string ProcessLabels::value_of(std::string_view name) const {
  const auto* const label =
      std::find_if(kLabels.begin(), kLabels.end(), [&](const auto& known) { return known.first == name; });
  return label == kLabels.end() ? std::string() : repair_utf8(label->second(facts_));
}

bool ProcessLabels::match(const LabelSelector& selector) const {
  // Grafana writes the type's id where Prometheus has the metric.
  const std::string& metric = selector.metric();
  if (!metric.empty() && metric != facts_.type.name && metric != facts_.type.id) return false;
  return selector.matches([&](std::string_view name) { return value_of(name); });
}

}  // namespace flamed::api
