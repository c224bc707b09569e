// SPDX-License-Identifier: Apache-2.0
#include "daemon/config/config.h"

#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "test/catch.h"
#include "test/unit/symbolizer_processes/temporary_directory.h"

namespace flamed::daemon {
namespace {

using Action = CommandLine::Action;
using Addresses = std::vector<api::ListenAddress>;

Result<CommandLine> parse(const std::vector<std::string>& words) {
  std::vector<const char*> pointers;
  pointers.reserve(words.size());
  for (const std::string& word : words) pointers.push_back(word.c_str());
  return parse_command_line(pointers);
}

/// With an empty configuration file, so that this machine's own is not read.
Result<CommandLine> parse_flags(std::vector<std::string> words) {
  static const test::TemporaryDirectory directory;
  static const std::string empty = directory.write("empty.json", "{}");
  words.insert(words.begin(), {"--config", empty});
  return parse(words);
}

bool mentions(const Error& error, const std::string& text) { return error.message().find(text) != std::string::npos; }

struct Good {
  std::string key;
  std::string flag;
  std::string value;  ///< as text
  bool (*is_set)(const Config&);
};
const std::vector<Good> kGood{
    {"listen", "--listen", "127.1.2.3:8080",
     [](const Config& config) {
       return config.listen == Addresses{{"127.1.2.3", 8080}};
     }},
    {"listen", "--listen", "[::1]:9091",
     [](const Config& config) {
       return config.listen == Addresses{{"::1", 9091}};
     }},
    {"listen", "--listen", "localhost:65535",
     [](const Config& config) {
       return config.listen == Addresses{{"localhost", 65535}};
     }},
    {"listen", "--listen", "unix:/run/flamed/flamed.sock",
     [](const Config& config) {
       return config.listen == Addresses{{"", 0, "/run/flamed/flamed.sock"}};
     }},
    {"token_file", "--token-file", "/etc/flamed/token",
     [](const Config& config) { return config.token_file == "/etc/flamed/token"; }},
    {"frequency_hz", "--frequency", "1", [](const Config& config) { return config.frequency_hz == 1; }},
    {"frequency_hz", "--frequency", "1000", [](const Config& config) { return config.frequency_hz == 1000; }},
    {"cpu_budget", "--cpu-budget", "0.3%", [](const Config& config) { return config.cpu_budget == Approx(0.003); }},
    {"cpu_budget", "--cpu-budget", "0.01%", [](const Config& config) { return config.cpu_budget == Approx(0.0001); }},
    {"cpu_budget", "--cpu-budget", "100%", [](const Config& config) { return config.cpu_budget == Approx(1.0); }},
    {"cpu_budget", "--cpu-budget", "off", [](const Config& config) { return !config.cpu_budget; }},
    {"retention", "--retention", "1m", [](const Config& config) { return config.retention_ns == kNsPerMinute; }},
    {"retention", "--retention", "31d",
     [](const Config& config) { return config.retention_ns == 31LL * 24 * 60 * kNsPerMinute; }},
    {"memory_budget", "--memory-budget", "8MiB",
     [](const Config& config) { return config.memory_budget_bytes == 8U << 20; }},
    {"memory_budget", "--memory-budget", "1024GiB",
     [](const Config& config) { return config.memory_budget_bytes == 1ULL << 40; }},
    {"memory_budget", "--memory-budget", "100000000",
     [](const Config& config) { return config.memory_budget_bytes == 100'000'000; }},
    {"history", "--history", "/srv/flamed",
     [](const Config& config) { return config.history_folder == "/srv/flamed"; }},
    {"history", "--history", "off", [](const Config& config) { return config.history_folder == ""; }},
    {"history_size", "--history-size", "16MiB", [](const Config& config) { return config.history_bytes == 16U << 20; }},
    {"history_size", "--history-size", "1024GiB",
     [](const Config& config) { return config.history_bytes == 1ULL << 40; }},
    {"history_age", "--history-age", "1d",
     [](const Config& config) { return config.history_age_ns == 24LL * 60 * kNsPerMinute; }},
    {"history_age", "--history-age", "3660d",
     [](const Config& config) { return config.history_age_ns == 3660LL * 24 * 60 * kNsPerMinute; }},
    {"waits", "--waits", "on", [](const Config& config) { return config.waits; }},
    {"waits", "--waits", "off", [](const Config& config) { return !config.waits; }},
    {"pressure", "--pressure", "off",
     [](const Config& config) {
       return config.pressure == PressureLimits{std::nullopt, std::nullopt, std::nullopt};
     }},
    {"pressure", "--pressure", "memory=2.5%,cpu=100%",
     [](const Config& config) {
       return config.pressure == PressureLimits{1.0, std::nullopt, 0.025};
     }},
    {"log_level", "--log-level", "trace", [](const Config& config) { return config.log_level == "trace"; }},
    {"log_level", "--log-level", "critical", [](const Config& config) { return config.log_level == "critical"; }},
};

struct Bad {
  std::string key;
  std::string flag;
  std::string value;
  std::string allowed;  ///< the valid values that the error names
};
const std::vector<Bad> kBad{
    {"listen", "--listen", "unix:", "unix:/PATH"},
    {"listen", "--listen", "unix:flamed.sock", "not an absolute path of a socket"},
    {"listen", "--listen", "unix:/run/flamed/", "not an absolute path of a socket"},
    {"listen", "--listen", "unix:/" + std::string(107, 'x'), "longer than 107 bytes"},
    {"token_file", "--token-file", "token", "the absolute path of a file"},
    {"listen", "--listen", "9090", "HOST:PORT"},
    {"listen", "--listen", "", "HOST:PORT"},
    {"listen", "--listen", ":9090", "HOST:PORT"},
    {"listen", "--listen", "localhost:", "HOST:PORT"},
    {"listen", "--listen", "localhost:0", "from 1 to 65535"},
    {"listen", "--listen", "localhost:65536", "from 1 to 65535"},
    {"listen", "--listen", "localhost:-1", "from 1 to 65535"},
    {"listen", "--listen", "localhost:80x", "from 1 to 65535"},
    {"listen", "--listen", "::1:9090", "must stand in brackets"},
    {"listen", "--listen", "[::1]", "such as 127.0.0.1:9091 or [::1]:9090"},
    {"listen", "--listen", "[]:9090", "HOST:PORT"},
    {"listen", "--listen", "[:9090", "HOST:PORT"},
    {"listen", "--listen", "[[::1]]:9090", "HOST:PORT"},
    {"listen", "--listen", "local host:9090", "HOST:PORT"},
    {"cpu_budget", "--cpu-budget", "0.3", "such as 0.3%"},
    {"cpu_budget", "--cpu-budget", "0%", "from 0.01% to 100%"},
    {"cpu_budget", "--cpu-budget", "101%", "from 0.01% to 100%"},
    {"cpu_budget", "--cpu-budget", "-1%", "from 0.01% to 100%"},
    {"cpu_budget", "--cpu-budget", "nan%", "from 0.01% to 100%"},
    {"cpu_budget", "--cpu-budget", "%", "from 0.01% to 100%"},
    {"cpu_budget", "--cpu-budget", "a little%", "from 0.01% to 100%"},
    {"pressure", "--pressure", "", "for some of cpu, io and memory"},
    {"pressure", "--pressure", "50%", "for some of cpu, io and memory"},
    {"pressure", "--pressure", "disk=50%", "for some of cpu, io and memory"},
    {"pressure", "--pressure", "cpu=50", "without a percent sign"},
    {"pressure", "--pressure", "cpu=0.5%", "out of range"},
    {"pressure", "--pressure", "cpu=101%", "out of range"},
    {"pressure", "--pressure", "cpu=nan%", "out of range"},
    {"pressure", "--pressure", "cpu=50%,", "for some of cpu, io and memory"},
    {"pressure", "--pressure", "cpu=50%,cpu=60%", "given twice"},
    {"frequency_hz", "--frequency", "0", "a whole number from 1 to 1000"},
    {"frequency_hz", "--frequency", "1001", "a whole number from 1 to 1000"},
    {"frequency_hz", "--frequency", "-5", "a whole number from 1 to 1000"},
    {"frequency_hz", "--frequency", "99.5", "a whole number from 1 to 1000"},
    {"frequency_hz", "--frequency", "99Hz", "a whole number from 1 to 1000"},
    {"frequency_hz", "--frequency", "99999999999", "a whole number from 1 to 1000"},
    {"retention", "--retention", "59s", "from 1m to 31d"},
    {"retention", "--retention", "32d", "from 1m to 31d"},
    {"retention", "--retention", "24", "from 1m to 31d"},
    {"retention", "--retention", "forever", "from 1m to 31d"},
    {"memory_budget", "--memory-budget", "7MiB", "from 8MiB to 1024GiB"},
    {"memory_budget", "--memory-budget", "1025GiB", "from 8MiB to 1024GiB"},
    {"memory_budget", "--memory-budget", "lots", "from 8MiB to 1024GiB"},
    {"history", "--history", "flamed", "off, or the absolute path of a folder"},
    {"history", "--history", "", "off, or the absolute path of a folder"},
    {"history_size", "--history-size", "15MiB", "from 16MiB to 1024GiB"},
    {"history_age", "--history-age", "23h", "from 1d to 3660d"},
    {"history_age", "--history-age", "3661d", "from 1d to 3660d"},
    {"log_level", "--log-level", "loud", "one of trace, debug, info, warning, error, critical"},
    {"log_level", "--log-level", "INFO", "one of trace, debug, info, warning, error, critical"},
};

TEST_CASE("every valid value is accepted in the file and as a flag, after a blank or an equals sign") {
  for (const Good& good : kGood) {
    CAPTURE(good.key, good.value);
    Config config;
    REQUIRE(apply_json("{\"" + good.key + "\": \"" + good.value + "\"}", config).ok());
    CHECK(good.is_set(config));
    const auto spaced = parse_flags({good.flag, good.value});
    REQUIRE(spaced.ok());
    CHECK(good.is_set(spaced->config));
    const auto attached = parse_flags({good.flag + "=" + good.value});
    REQUIRE(attached.ok());
    CHECK(good.is_set(attached->config));
  }
}

TEST_CASE("every bad value is refused with its key, the value, and the allowed values") {
  for (const Bad& bad : kBad) {
    CAPTURE(bad.key, bad.value);
    Config config;
    const Status in_file = apply_json("{\"" + bad.key + "\": \"" + bad.value + "\"}", config);
    REQUIRE_FALSE(in_file.ok());
    CHECK(mentions(in_file.error(), "bad value '" + bad.value + "' for " + bad.key + ":"));
    CHECK(mentions(in_file.error(), bad.allowed));
    for (const auto& flag : {parse_flags({bad.flag, bad.value}), parse_flags({bad.flag + "=" + bad.value})}) {
      REQUIRE_FALSE(flag.ok());
      CHECK(mentions(flag.error(), "bad value '" + bad.value + "' for " + bad.flag + ":"));
      CHECK(mentions(flag.error(), bad.allowed));
    }
  }
}

TEST_CASE("numbers in the file may stand without quotes") {
  Config config;
  REQUIRE(apply_json(R"({"frequency_hz": 49, "memory_budget": 67108864})", config).ok());
  CHECK(config.frequency_hz == 49);
  CHECK(config.memory_budget_bytes == 64U << 20);
}

TEST_CASE("the error for a number out of range differs from that for no number") {
  for (const std::string number : {"-5", "99.5", "1e3", "0", "18446744073709551615", "1e300"}) {
    CAPTURE(number);
    Config config;
    const Status status = apply_json("{\"frequency_hz\": " + number + "}", config);
    REQUIRE_FALSE(status.ok());
    CHECK(mentions(status.error(), "a whole number from 1 to 1000"));
    CHECK_FALSE(mentions(status.error(), "not a string or a number"));
  }
}

TEST_CASE("a value is text or a number") {
  for (const std::string value : {"true", "null", "[99]", "{\"hz\": 99}"}) {
    CAPTURE(value);
    Config config;
    const Status status = apply_json("{\"frequency_hz\": " + value + "}", config);
    REQUIRE_FALSE(status.ok());
    CHECK(mentions(status.error(), "frequency_hz: not a string or a number"));
    CHECK(config.frequency_hz == 99);
  }
}

TEST_CASE("a very deeply nested value is refused as well") {
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  Config config;
  CHECK_FALSE(apply_json("{\"listen\": " + deep + "}", config).ok());
}

TEST_CASE("the file may have comments, and keys that it leaves out keep their values") {
  Config config;
  config.log_level = "debug";
  const Status status = apply_json(R"(
      // one line
      { /* in
           the middle */ "retention": "2h" // at the end
      })",
                                   config);
  REQUIRE(status.ok());
  CHECK(config.retention_ns == 120 * kNsPerMinute);
  CHECK(config.log_level == "debug");
  CHECK(config.listen.empty());
}

TEST_CASE("there may be several addresses to listen on, and those of the command line replace those of the file") {
  Config config;
  REQUIRE(apply_json(R"({"listen": ["127.0.0.1:1", "unix:/run/a"]})", config).ok());
  CHECK(config.listen == Addresses{{"127.0.0.1", 1}, {"", 0, "/run/a"}});
  REQUIRE(apply_json(R"({"listen": "[::1]:2"})", config).ok());
  CHECK(config.listen == Addresses{{"::1", 2}});

  const test::TemporaryDirectory directory;
  const std::string file = directory.write("flamed.json", R"({"listen": ["127.0.0.1:1", "127.0.0.1:2"]})");
  CHECK(parse({"--config", file})->config.listen == Addresses{{"127.0.0.1", 1}, {"127.0.0.1", 2}});
  CHECK(parse({"--config", file, "--listen=unix:/run/a", "--listen", "[::1]:3"})->config.listen ==
        Addresses{{"", 0, "/run/a"}, {"::1", 3}});
}

TEST_CASE("one address twice, or too many, are refused") {
  CHECK(mentions(parse_flags({"--listen=127.0.0.1:1", "--listen=127.0.0.1:1"}).error(), "given twice"));
  std::vector<std::string> many;
  for (int i = 1; i <= 17; ++i) many.push_back("--listen=127.0.0.1:" + std::to_string(i));
  CHECK(mentions(parse_flags(many).error(), "too many addresses"));
  many.pop_back();
  CHECK(parse_flags(many).ok());
}

TEST_CASE("flamed listens beyond this host only with a token") {
  for (const std::string address : {"0.0.0.0:9090", "192.0.2.1:9090", "[::]:9090", "[2001:db8::1]:9090"}) {
    CAPTURE(address);
    const auto refused = parse_flags({"--listen", "127.0.0.1:9090", "--listen", address});
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().message().starts_with("refusing to listen on " + address + ": "));
    CHECK(mentions(refused.error(), "token_file"));
    CHECK(parse_flags({"--listen", address, "--token-file", "/etc/flamed/token"}).ok());
  }
  for (const std::string address : {"127.0.0.1:9090", "127.255.0.1:1", "[::1]:9090", "[::ffff:127.0.0.1]:9090",
                                    "localhost:9090", "unix:/run/flamed/flamed.sock"}) {
    CAPTURE(address);
    CHECK(parse_flags({"--listen", address}).ok());
  }
}

TEST_CASE("runtimes are all, none, or those that are listed") {
  using runtimes::RuntimeKind;
  Config config;
  CHECK(config.runtimes == runtimes::RuntimeKinds::all());
  REQUIRE(apply_json(R"({"runtimes": "off"})", config).ok());
  CHECK(config.runtimes.is_empty());
  REQUIRE(apply_json(R"({"runtimes": "node"})", config).ok());
  CHECK(config.runtimes.has(RuntimeKind::kV8));
  CHECK_FALSE(config.runtimes.has(RuntimeKind::kPython));
  REQUIRE(apply_json(R"({"runtimes": "python,node,java"})", config).ok());
  CHECK(config.runtimes == runtimes::RuntimeKinds::all());
  for (const std::string text : {"ruby", "python,", ",python", "python,,node", "on,python", ""}) {
    CAPTURE(text);
    CHECK_FALSE(apply_json("{\"runtimes\": \"" + text + "\"}", config).ok());
  }
}

TEST_CASE("an unknown key is refused with the list of known ones") {
  Config config;
  const Status status = apply_json(R"({"frequency": 99})", config);
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().message() ==
        "line 1: unknown key 'frequency'; known are listen, token_file, frequency_hz, cpu_budget, retention, "
        "memory_budget, unwind, unwind_memory, stack_slices, waits, pressure, command_lines, runtimes, "
        "debuginfod, container_engines, history, history_size, history_age, log_level");
}

TEST_CASE("text that is not JSON, or no object, is refused with the place or an example") {
  Config config;
  for (const std::string text :
       {"", "{", "{\"listen\"}", "{,}", "{\"listen\": \"a:1\",}", "\xff\xfe", "{\"listen\": \"\xff\"}"}) {
    CAPTURE(text);
    const Status status = apply_json(text, config);
    REQUIRE_FALSE(status.ok());
    CHECK(mentions(status.error(), "not valid JSON: "));
    CHECK(mentions(status.error(), "line 1"));
  }
  for (const std::string text : {"[]", "1", "\"listen\"", "null"}) {
    CAPTURE(text);
    const Status status = apply_json(text, config);
    REQUIRE_FALSE(status.ok());
    CHECK(mentions(status.error(), "not a JSON object"));
  }
}

TEST_CASE("the command line wins over the file") {
  const test::TemporaryDirectory directory;
  const std::string file = directory.write("flamed.json", R"({"frequency_hz": 49, "log_level": "debug"})");
  const auto line = parse({"--frequency", "199", "--config", file});
  REQUIRE(line.ok());
  CHECK(line->config.frequency_hz == 199);
  CHECK(line->config.log_level == "debug");
  CHECK(line->config_file == file);
  CHECK(line->action == Action::kRun);
}

TEST_CASE("the last of repeated flags counts") {
  CHECK(parse_flags({"--frequency", "10", "--frequency=20"})->config.frequency_hz == 20);
}

TEST_CASE("a configuration file that was named must exist") {
  const auto line = parse({"--config", "/nonexistent/flamed.json"});
  REQUIRE_FALSE(line.ok());
  CHECK(mentions(line.error(), "cannot read the configuration"));
  CHECK(mentions(line.error(), "/nonexistent/flamed.json: No such file or directory"));
}

TEST_CASE("a configuration file that can't be read is an error") {
  const test::TemporaryDirectory directory;
  CHECK_FALSE(parse({"--config", directory.path().string()}).ok());
  const std::string large = directory.write("large.json", std::string((1U << 20) + 1, ' '));
  const auto line = parse({"--config", large});
  REQUIRE_FALSE(line.ok());
  CHECK(mentions(line.error(), "larger than the limit"));
}

TEST_CASE("an error in the file names the file") {
  const test::TemporaryDirectory directory;
  const std::string file = directory.write("flamed.json", R"({"frequency_hz": 0})");
  const auto line = parse({"--config=" + file});
  REQUIRE_FALSE(line.ok());
  CHECK(line.error().message().rfind(file + ": line 1: bad value '0' for frequency_hz", 0) == 0);
}

TEST_CASE("without a configuration file the defaults are in force") {
  if (std::filesystem::exists(kDefaultConfigFile)) {
    std::cout << "SKIP: this machine has a " << kDefaultConfigFile << "\n";
    return;
  }
  const auto line = parse({});
  REQUIRE(line.ok());
  CHECK(line->config_file.empty());
  CHECK(line->config.frequency_hz == 99);
  CHECK(line->config.cpu_budget == Approx(0.003));
  CHECK(line->config.retention_ns == 24LL * 60 * kNsPerMinute);
  CHECK(line->config.memory_budget_bytes == 256U << 20);
  CHECK(line->config.log_level == "info");
}

TEST_CASE("each value knows where it was set: by a flag, in the file, or nowhere") {
  const test::TemporaryDirectory directory;
  const std::string file = directory.write("flamed.json", R"({"cpu_budget": "1%", "retention": "1h"})");
  const auto line = parse({"--config", file, "--retention", "2h"});
  REQUIRE(line.ok());
  CHECK(where_set(line->config, "cpu_budget") == file);
  CHECK(where_set(line->config, "retention") == "--retention");
  CHECK(where_set(line->config, "frequency_hz") == "default");
}

TEST_CASE("an unknown argument is named, with a value or without") {
  for (const std::string word : {"--frequenzy", "-x", "serve", "", "-", "--"}) {
    CAPTURE(word);
    const auto line = parse({word});
    REQUIRE_FALSE(line.ok());
    CHECK(line.error().message() == "unknown argument '" + word + "'; see flamed --help");
  }
  CHECK(parse({"--frequenzy=99"}).error().message() == "unknown argument '--frequenzy'; see flamed --help");
}

TEST_CASE("a flag without its value, or with one that it does not take, is an error") {
  for (const std::string flag :
       {"--config", "--listen", "--frequency", "--retention", "--memory-budget", "--log-level"}) {
    CAPTURE(flag);
    const auto line = parse({flag});
    REQUIRE_FALSE(line.ok());
    CHECK(line.error().message() == flag + " needs a value; see flamed --help");
  }
  for (const std::string flag : {"--version", "--help", "--check-config"}) {
    CAPTURE(flag);
    const auto line = parse({flag + "=1"});
    REQUIRE_FALSE(line.ok());
    CHECK(line.error().message() == flag + " takes no value; see flamed --help");
  }
}

TEST_CASE("help and version are printed even with a bad configuration") {
  CHECK(parse({"--version", "--config", "/nonexistent"})->action == Action::kVersion);
  CHECK(parse({"--help", "--frequency", "no number"})->action == Action::kHelp);
  CHECK(parse({"-h"})->action == Action::kHelp);
}

TEST_CASE("a check of the configuration reads file and flags") {
  CHECK(parse_flags({"--check-config"})->action == Action::kCheckConfig);
  CHECK(parse_flags({"--check-history"})->action == Action::kCheckHistory);
  CHECK_FALSE(parse_flags({"--check-config", "--frequency=0"}).ok());
  CHECK_FALSE(parse({"--check-config", "--config=/nonexistent"}).ok());
}

TEST_CASE("a stretch to export has two times and a file, and a file to open needs no configuration") {
  const auto exported = parse_flags({"--export", "yesterday 14:00", "now-1h", "/tmp/a.db", "--history", "/h"});
  REQUIRE(exported.ok());
  CHECK(exported->action == Action::kExport);
  CHECK(exported->from == "yesterday 14:00");
  CHECK(exported->to == "now-1h");
  CHECK(exported->file == "/tmp/a.db");
  CHECK(exported->config.history_folder == "/h");
  CHECK(parse_flags({"--export=now-1h", "now", "a.db"})->from == "now-1h");
  const auto cut = parse_flags({"--export", "now-1h", "now"});
  REQUIRE_FALSE(cut.ok());
  CHECK(cut.error().message() == "--export needs FROM, TO and FILE; see flamed --help");
  const auto opened = parse({"--open", "a.db", "--listen", "127.0.0.1:9999"});
  REQUIRE(opened.ok());
  CHECK(opened->action == Action::kOpen);
  CHECK(opened->file == "a.db");
  CHECK(opened->config_file.empty());
  CHECK_FALSE(parse({"--open"}).ok());
}

TEST_CASE("the help text has every flag and the default file") {
  const std::string help = help_text();
  for (const std::string word :
       {"--config FILE", "--listen ADDRESS", "--token-file FILE", "--frequency HZ", "--retention DURATION",
        "--memory-budget SIZE", "--log-level LEVEL", "--check-config", "--version", "--help", kDefaultConfigFile}) {
    CAPTURE(word);
    CHECK(help.find(word) != std::string::npos);
  }
}

TEST_CASE("the help text has every exit status") {
  const std::string help = help_text();
  CHECK(help.find("\n   0  told to exit\n") != std::string::npos);
  CHECK(help.find("\n  10  open files, memory or locked memory are limited too narrowly\n") != std::string::npos);
}

TEST_CASE("debuginfod is off unless servers are set") {
  Config config;
  CHECK(config.debuginfod_urls.empty());
  REQUIRE(apply_json(R"({"debuginfod": "https://debuginfod.example.org  file:///srv/debug/"})", config).ok());
  CHECK(config.debuginfod_urls == "https://debuginfod.example.org file:///srv/debug/");
  REQUIRE(apply_json(R"({"debuginfod": "off"})", config).ok());
  CHECK(config.debuginfod_urls.empty());
  for (const char* bad : {"", " ", "debian.net", "ftp://debian.net", "https://a b", "https://a\\nb"}) {
    CHECK_FALSE(apply_json(std::string(R"({"debuginfod": ")") + bad + "\"}", config).ok());
  }
}

TEST_CASE("no container engine is asked unless its socket is set") {
  using symbolizer::ContainerEngine;
  using symbolizer::EngineProtocol;
  Config config;
  CHECK(config.container_engines.empty());
  REQUIRE(
      apply_json(R"({"container_engines": ["cri:/run/containerd/containerd.sock", "docker:/run/a:b.sock"]})", config)
          .ok());
  CHECK(config.container_engines ==
        std::vector<ContainerEngine>{{EngineProtocol::kCri, "/run/containerd/containerd.sock"},
                                     {EngineProtocol::kDocker, "/run/a:b.sock"}});
  REQUIRE(apply_json(R"({"container_engines": "docker:/run/docker.sock"})", config).ok());
  CHECK(config.container_engines.size() == 1);
  REQUIRE(apply_json(R"({"container_engines": []})", config).ok());
  CHECK(config.container_engines.empty());
  for (const std::string& bad :
       {std::string(), std::string("/run/docker.sock"), std::string("cri:"), std::string("cri:run/a.sock"),
        std::string("unix:/run/a.sock"), std::string("CRI:/run/a.sock"), std::string("docker://\\u0000"),
        "cri:/" + std::string(4096, 'a')}) {
    CAPTURE(bad);
    const Status status = apply_json(R"({"container_engines": [")" + bad + "\"]}", config);
    REQUIRE_FALSE(status.ok());
    CHECK(mentions(status.error(), "bad value"));
  }
  CHECK_FALSE(apply_json(R"({"container_engines": ["cri:/a", "cri:/a"]})", config).ok());
  CHECK_FALSE(apply_json(R"({"container_engines": ["cri:/1", "cri:/2", "cri:/3", "cri:/4", "cri:/5", "cri:/6", "cri:/7",
      "cri:/8", "cri:/9"]})",
                         config)
                  .ok());
}

}  // namespace
}  // namespace flamed::daemon
