// SPDX-License-Identifier: Apache-2.0
#include "daemon/config/reload.h"

#include <array>
#include <string>

#include "test/catch.h"
#include "test/unit/symbolizer_processes/temporary_directory.h"

namespace flamed::daemon {
namespace {

/// A daemon that was started with this configuration file.
struct Started {
  explicit Started(const std::string& text) : file(directory.write("flamed.json", text)) {
    const auto line = parse_command_line(arguments);
    REQUIRE(line.ok());
    running = line->config;
  }
  Result<Reload> reload_with(const std::string& text) {
    directory.write("flamed.json", text);
    return read_again(arguments, running);
  }
  test::TemporaryDirectory directory;
  std::string file;
  std::array<const char*, 2> arguments{"--config", file.c_str()};
  Config running;
};

TEST_CASE("a log level is applied while the daemon runs") {
  Started daemon("{}");
  const auto reload = daemon.reload_with(R"({"log_level": "debug"})");
  REQUIRE(reload.ok());
  CHECK(reload->config.log_level == "debug");
  CHECK(describe(*reload) == "log_level applied");
}

TEST_CASE("a CPU budget is applied while the daemon runs") {
  Started daemon("{}");
  auto reload = daemon.reload_with(R"({"cpu_budget": "1%"})");
  REQUIRE(reload.ok());
  CHECK(reload->config.cpu_budget == Approx(0.01));
  CHECK(describe(*reload) == "cpu_budget applied");
  CHECK(where_set(reload->config, "cpu_budget") == daemon.file);
  reload = daemon.reload_with(R"({"cpu_budget": "off"})");
  REQUIRE(reload.ok());
  CHECK_FALSE(reload->config.cpu_budget);
}

TEST_CASE("an option that takes a restart stays as it was, and is reported") {
  Started daemon("{}");
  const auto reload = daemon.reload_with(R"({"frequency_hz": 49, "log_level": "debug", "retention": "1h"})");
  REQUIRE(reload.ok());
  CHECK(reload->config.frequency_hz == 99);
  CHECK(reload->config.retention_ns == 24 * 60 * kNsPerMinute);
  CHECK(where_set(reload->config, "log_level") == daemon.file);
  CHECK(where_set(reload->config, "frequency_hz") == "default");
  CHECK(describe(*reload) == "log_level applied; frequency_hz, retention at the next restart");
}

TEST_CASE("a bad configuration changes nothing, and the error names file and line") {
  Started daemon("{}");
  const auto bad = daemon.reload_with("{\n  // more\n  \"log_level\": \"debug\",\n  \"frequency_hz\": 0\n}");
  REQUIRE_FALSE(bad.ok());
  CHECK(bad.error().message().find(daemon.file + ": line 4: bad value '0' for frequency_hz") == 0);
  CHECK(daemon.reload_with("{\n\n,}").error().message().find("line 3") != std::string::npos);
}

TEST_CASE("an unchanged configuration changes nothing") {
  Started daemon(R"({"frequency_hz": 49})");
  const auto reload = daemon.reload_with(R"({"frequency_hz": 49})");
  REQUIRE(reload.ok());
  CHECK(describe(*reload) == "nothing has changed");
}

}  // namespace
}  // namespace flamed::daemon
