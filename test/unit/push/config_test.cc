// SPDX-License-Identifier: Apache-2.0
#include "push/config.h"

#include <nlohmann/json.hpp>
#include <string>

#include "test/catch.h"
#include "test/unit/api/access/scratch_file.h"

namespace flamed::push {
namespace {

Result<Config> parse_receiver(const std::string& members) {
  return parse_config(R"({"receivers": [{"name": "a", "format": "otlp", "url": "http://h:4318")" +
                      (members.empty() ? "" : ", " + members) + "}]}");
}

TEST_CASE("a receiver needs a name, a format and an address, and has defaults for the rest") {
  const Config config = parse_receiver("").value();
  CHECK(config.socket == "/run/flamed/flamed.sock");
  REQUIRE(config.receivers.size() == 1);
  const Receiver& receiver = config.receivers[0];
  CHECK(receiver.origin == "http://h:4318");
  CHECK(receiver.path == "/v1development/profiles");
  CHECK(receiver.interval_ns == 15 * kNsPerSecond);
  CHECK(receiver.max_age_ns == 60 * kNsPerMinute);
  CHECK(receiver.sends_cpu);
  CHECK(receiver.sends_wait);
  CHECK_FALSE(receiver.names_all);
  CHECK(parse_receiver(R"("naming": "all")").value().receivers[0].names_all);
  CHECK(parse_config(R"({"receivers": [{"name": "a", "format": "pyroscope", "url": "https://h/x/"}]})")
            ->receivers[0]
            .path == "/x/");
  CHECK(parse_config(R"({"receivers": [{"name": "a", "format": "pyroscope", "url": "https://h/"}]})")
            ->receivers[0]
            .path == "/push.v1.PusherService/Push");
  for (const char* text : {R"({"format": "otlp", "url": "http://h"})", R"({"name": "a", "url": "http://h"})",
                           R"({"name": "a", "format": "otlp"})"}) {
    CHECK_FALSE(parse_config(std::string(R"({"receivers": [)") + text + "]}"));
  }
}

TEST_CASE("selection and labels become parameters of the daemon's API") {
  const Config config =
      parse_receiver(R"("select": {"unit": ["a.service", "b&c"], "side": "user"}, "labels": {"env": "pro d"})").value();
  CHECK(config.receivers[0].selection == "&label=env%3Dpro%20d&side=user&unit=a.service&unit=b%26c");
}

TEST_CASE("what is no configuration is refused with what is allowed") {
  for (const char* members :
       {R"("interval": "7s")", R"("interval": 15)", R"("interval": "15")", R"("max_age": "1m")", R"("measures": [])",
        R"("measures": ["wall"])", R"("naming": "none")", R"("select": {"from": "now"})", R"("select": {"unit": 1})",
        R"("labels": {"a b": "c"})", R"("labels": {"__name__": "c"})", R"("headers": {"X": "a\nb"})",
        R"("headers": {"X:": "a"})", R"("headers": {"X": {"path": "a"}})", R"("basic_auth": {"user": "a"})",
        R"("basic_auth": {"user": "a:b", "password_file": "c"})",
        R"("basic_auth": {"user": "a", "password_file": "c"}, "bearer_token_file": "d")", R"("password": "secret")"}) {
    CAPTURE(members);
    CHECK_FALSE(parse_receiver(members));
  }
  for (const char* url :
       {"h:4040", "ftp://h", "http://", "http:///x", "http://h\\r\\nX: y", "http://user@h", "http://h/?a"}) {
    CAPTURE(url);
    CHECK_FALSE(
        parse_config(std::string(R"({"receivers": [{"name": "a", "format": "otlp", "url": ")") + url + "\"}]}"));
  }
  CHECK_FALSE(parse_config(R"({"receivers": [{"name": "../a", "format": "otlp", "url": "http://h"}]})"));
  CHECK_FALSE(parse_config("[]"));
  CHECK_FALSE(parse_config("{"));
  CHECK_FALSE(parse_config(R"({"socket": "flamed.sock"})"));
  CHECK(parse_config(R"({"sockets": ""})").error().message() == "unknown key 'sockets'; known are socket, receivers");
  const std::string one = R"({"name": "a", "format": "otlp", "url": "http://h"})";
  CHECK(parse_config("{\"receivers\": [" + one + "," + one + "]}").error().message() ==
        "receiver 2 has the name of another one");
}

TEST_CASE("secrets are the first lines of files, by path or as credentials of the service") {
  const api::ScratchFile file("s3cret\nmore\n");
  const std::string& path = file.path();
  const std::string folder = path.substr(0, path.rfind('/'));
  const std::string name = path.substr(path.rfind('/') + 1);
  for (const auto& [file_name, credentials] : {std::pair(path, std::string()), std::pair(name, folder)}) {
    const nlohmann::json receiver{{"name", "a"},
                                  {"format", "otlp"},
                                  {"url", "http://h"},
                                  {"basic_auth", {{"user", "u"}, {"password_file", file_name}}},
                                  {"headers", {{"X-Key", {{"file", file_name}}}, {"X-Plain", "p"}}}};
    Config config = parse_config(nlohmann::json{{"receivers", nlohmann::json::array({receiver})}}.dump()).value();
    REQUIRE(read_secrets(config, credentials));
    CHECK(config.receivers[0].password.text == "s3cret");
    REQUIRE(config.receivers[0].headers.size() == 2);
    CHECK(config.receivers[0].headers[0].second.text == "s3cret");
    CHECK(config.receivers[0].headers[1].second.text == "p");
  }
  Config missing = parse_receiver(R"("bearer_token_file": "token")").value();
  CHECK(read_secrets(missing, "").error().message() ==
        "receiver a: the credential token is not there: name it in LoadCredential= of the unit, or give a path");
  CHECK_FALSE(read_secrets(missing, "/nowhere"));
}

}  // namespace
}  // namespace flamed::push
