// SPDX-License-Identifier: Apache-2.0
//
// PushReports: the last report of flamed-push, and what /healthz, /metrics and /push say of it. In memory only. Any
// thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "api/question/push_report.h"
#include "api/sources.h"
#include "base/clock.h"

namespace flamed::api {

class PushReports {
 public:
  /// The CPU time that the program has used since the last report: of a program that was started since, all. Never more
  /// than the time that passed.
  std::int64_t take(PushReport report, MonotonicTime now);

  /// Empty as long as there was no report.
  [[nodiscard]] std::optional<Component> component(MonotonicTime now) const;
  void append_metrics(std::vector<Metric>& metrics) const;
  /// {"reported": whether there was one, "receivers": as in the report}
  [[nodiscard]] std::string render() const;

 private:
  mutable std::mutex mutex_;
  std::optional<PushReport> last_;  ///< guarded by mutex_, as is the next one
  MonotonicTime taken_{};
};

}  // namespace flamed::api
