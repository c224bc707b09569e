// SPDX-License-Identifier: Apache-2.0
#include "daemon/sampler/cpu_news.h"

#include <string>
#include <vector>

#include "test/catch.h"

namespace flamed::daemon {
namespace {

using namespace std::string_literals;

TEST_CASE("a CPU that came online or went offline is reported by its number") {
  CHECK(parse_cpu_news("online@/devices/system/cpu/cpu3\0ACTION=online\0"s) == 3);
  CHECK(parse_cpu_news("offline@/devices/system/cpu/cpu127\0ACTION=offline\0DEVPATH=/devices/system/cpu/cpu127\0"s) ==
        127);
  CHECK(parse_cpu_news("online@/devices/system/cpu/cpu0") == 0);
}

TEST_CASE("events of other devices or other kinds are ignored") {
  for (const std::string& message :
       {"add@/devices/system/cpu/cpu3\0"s, "online@/devices/system/memory/memory3\0"s,
        "online@/devices/system/cpu/cpu"s, "online@/devices/system/cpu/cpu3x"s,
        "online@/devices/system/cpu/cpu3/cache"s, "online@/devices/system/cpu/cpu-1"s,
        "online@/devices/system/cpu/cpu99999999999"s, "online"s, "@"s, ""s, "libudev\0\xfe\xed"s}) {
    CAPTURE(message);
    CHECK_FALSE(parse_cpu_news(message));
  }
}

TEST_CASE("without any event there is nothing to read") {
  Result<CpuNews> news = CpuNews::open();
  if (!news) {
    WARN("SKIP cpu-news: " << news.error().message());
    return;
  }
  CHECK(news->fd() >= 0);
  CHECK(news->take() == std::vector<int>());
}

}  // namespace
}  // namespace flamed::daemon
