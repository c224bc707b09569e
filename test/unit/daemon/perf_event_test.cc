// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler/perf_event.h"

#include <cerrno>
#include <string>

#include "test/catch.h"

namespace flamed::daemon {
namespace {

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

TEST_CASE("above a paranoid level of 2 both ways out are named, and CAP_PERFMON is not, which would not help") {
  for (const int refused : {EACCES, EPERM}) {
    for (const int level : {3, 4}) {
      const std::string remedy = remedy_for_refused_event(refused, level);
      INFO(remedy);
      CHECK(has(remedy, ("kernel.perf_event_paranoid is " + std::to_string(level)).c_str()));
      CHECK(has(remedy, "sysctl kernel.perf_event_paranoid=2"));
      CHECK(has(remedy, "AmbientCapabilities=CAP_SYS_ADMIN"));
      CHECK(has(remedy, "CapabilityBoundingSet=CAP_SYS_ADMIN"));
      CHECK_FALSE(has(remedy, "CAP_PERFMON"));
    }
  }
}

TEST_CASE("at a paranoid level of 2 or less a refused event asks for CAP_PERFMON") {
  for (const int level : {-1, 0, 1, 2}) {
    const std::string remedy = remedy_for_refused_event(EACCES, level);
    CHECK(has(remedy, "CAP_PERFMON"));
    CHECK_FALSE(has(remedy, "paranoid"));
  }
}

TEST_CASE("an error that no setting cures has no remedy") { CHECK(remedy_for_refused_event(EINVAL, 3).empty()); }

}  // namespace
}  // namespace flamed::daemon
