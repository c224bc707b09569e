// SPDX-License-Identifier: Apache-2.0
//
// A profile as engines for many hosts take it: the stacks of each service by themselves, with labels. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "store/query/stack_profile.h"

namespace flamed::api {

/// What each service has in addition to its own labels: service_name, unit and container.
struct HostLabels {
  std::string host{};     ///< name of this host
  std::string machine{};  ///< what tells it from other hosts of that name; not told, only mixed into ids
  std::vector<std::pair<std::string, std::string>> labels{};  ///< these win over the service's own
};

/// A PushRequest of Pyroscope's push.v1.PusherService
/// (https://github.com/grafana/pyroscope/blob/main/api/push/v1/push.proto): a series with one gzipped pprof for each
/// service. __name__ is process_cpu, or off_cpu for waiting time. The ID of a profile is the same each time that the
/// same window is asked for.
Result<std::string> render_pyroscope(const store::StackProfile& profile, const HostLabels& host);

/// The numbers of the fields of a Sample changed in opentelemetry-proto 1.10.
enum class OtlpLayout : std::uint8_t { kCurrent, kBefore110 };

/// A gzipped ExportProfilesServiceRequest of OpenTelemetry
/// (https://github.com/open-telemetry/opentelemetry-proto, profiles/v1development): a resource with one profile for
/// each service, and one dictionary for all. The sample type is samples/count with a period of cpu/nanoseconds, or
/// off_cpu/nanoseconds for waiting time.
Result<std::string> render_otlp(const store::StackProfile& profile, const HostLabels& host, OtlpLayout layout);
/// Not compressed.
std::string encode_otlp(const store::StackProfile& profile, const HostLabels& host, OtlpLayout layout);

}  // namespace flamed::api
