// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/reader/engine_answer.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/file.h"
#include "symbolizer/reader/cri_exchange.h"
#include "test/catch.h"
#include "test/unit/symbolizer/reader/cri_server.h"

namespace flamed::symbolizer {
namespace {

using test::CriServer;
using test::kContainerStatus;
using test::kSandboxStatus;

const std::string kId = "3f5a9c0d1e2b4f6a8c0d1e2f3a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d";
const std::string kOther(64, '0');
const std::vector<std::pair<std::string, std::string>> kLabels{{"io.kubernetes.container.name", "nginx"},
                                                               {"io.kubernetes.pod.name", "web-7d9-x2x"},
                                                               {"token", "a secret"},
                                                               {"io.kubernetes.pod.namespace", "shop"}};

std::string cri_answer(std::map<std::string, CriServer::Reply> replies) {
  return CriServer(std::move(replies)).answer(engine_question(EngineProtocol::kCri, kId));
}
std::string container_answer() {
  return cri_answer({{kContainerStatus, {test::framed(test::container_response(kId, "nginx", kLabels))}}});
}
Result<ContainerNames> parse_cri(const std::string& answer) {
  return parse_engine_answer(answer, EngineProtocol::kCri, kId);
}
Result<ContainerNames> parse_docker(const std::string& answer) {
  return parse_engine_answer(answer, EngineProtocol::kDocker, kId);
}

std::string error_of(const Result<ContainerNames>& names) {
  REQUIRE_FALSE(names);
  CHECK(names.error().message().find("secret") == std::string::npos);
  return names.error().message();
}

/// What is read from a server that sends `answer`, `step` bytes at a time, and hangs up.
Result<ContainerNames> read_from_server(EngineProtocol protocol, const std::string& answer, std::size_t step) {
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
  Fd own(ends[0]);
  std::thread server([&, theirs = ends[1]] {
    for (std::size_t at = 0; at < answer.size(); at += step) {
      const std::string_view piece = std::string_view(answer).substr(at, step);
      if (::send(theirs, piece.data(), piece.size(), MSG_NOSIGNAL) < 0) break;
    }
    ::close(theirs);
  });
  Result<ContainerNames> names = read_engine_answer(own.get(), protocol, kId);
  own.reset();
  server.join();
  return names;
}

// ---- CRI ----

TEST_CASE("an engine of the CRI is asked for a container and a sandbox at once, and not for their environment") {
  CriServer server({});
  server.answer(engine_question(EngineProtocol::kCri, kId));
  REQUIRE(server.asked().size() == 2);
  std::vector<std::string> paths;
  for (const auto& [stream, asked] : server.asked()) {
    paths.push_back(asked.headers.at(":path"));
    CHECK(asked.headers.at(":method") == "POST");
    CHECK(asked.headers.at("content-type") == "application/grpc");
    CHECK(asked.headers.at("te") == "trailers");
    // Without `verbose`, which is field 2.
    CHECK(asked.body == test::framed(test::field(1, kId)));
  }
  CHECK(paths == std::vector<std::string>{kContainerStatus, kSandboxStatus});
}

TEST_CASE("a container of the CRI has the names in its labels") {
  for (const std::size_t step : {std::size_t{1}, std::size_t{7}, std::size_t{1} << 20}) {
    const Result<ContainerNames> names = read_from_server(EngineProtocol::kCri, container_answer(), step);
    REQUIRE(names);
    CHECK(*names == ContainerNames{"nginx", "web-7d9-x2x", "shop"});
  }
}

TEST_CASE("a container of the CRI without labels has the name in its metadata") {
  const std::string answer =
      cri_answer({{kContainerStatus, {test::framed(test::container_response(kId, "a/b\x1b[2J", {}))}}});
  const ContainerNames names = parse_cri(answer).value();
  CHECK(names.name.starts_with("a_b"));
  CHECK(names.name.find_first_of("/\x1b") == std::string::npos);
  CHECK(names.pod.empty());
}

TEST_CASE("a sandbox of the CRI has the names of its pod alone") {
  const std::string answer =
      cri_answer({{kSandboxStatus, {test::framed(test::sandbox_response(kId, "web-7d9-x2x", "shop"))}}});
  CHECK(parse_cri(answer).value() == ContainerNames{"", "web-7d9-x2x", "shop"});
}

TEST_CASE("once the names have come, the other call need not be answered") {
  const std::string question = engine_question(EngineProtocol::kCri, kId);
  CriExchange exchange(kId);
  CHECK(exchange.question() == question);
  const std::string answer = container_answer();
  std::size_t taken = 0;
  while (!exchange.is_over() && taken < answer.size()) REQUIRE(exchange.take(answer.substr(taken++, 1)));
  CHECK(exchange.is_over());
  CHECK(taken < answer.size());
  CHECK(exchange.names().value().name == "nginx");
}

TEST_CASE("a container that an engine of the CRI does not know has no name") {
  CHECK(parse_cri(cri_answer({})).value() == ContainerNames());
  CHECK(parse_cri(cri_answer({{kContainerStatus, {"", "2"}}})).value() == ContainerNames());
}

TEST_CASE("an engine that finds another container gives no name") {
  const std::string answer =
      cri_answer({{kContainerStatus, {test::framed(test::container_response(kOther, "nginx", kLabels))}}});
  CHECK(parse_cri(answer).value() == ContainerNames());
}

TEST_CASE("an engine that refuses a call is an error with the status") {
  const std::string answer = cri_answer({{kContainerStatus, {"", "12"}}, {kSandboxStatus, {"", "12"}}});
  CHECK(error_of(parse_cri(answer)) == "the engine refuses the call: gRPC status 12");
}

TEST_CASE("answers of the CRI that are no single whole message are errors") {
  const std::string message = test::container_response(kId, "a secret", kLabels);
  std::string packed = test::framed(message);
  packed[0] = 1;
  for (const std::string& body :
       {std::string(), std::string("\0\0", 2), test::framed(message) + "x",
        test::framed(message) + test::framed(message), packed, test::framed(message).substr(0, 40),
        test::framed("\xff\xff\xff"), test::framed(message.substr(0, message.size() - 1))}) {
    error_of(parse_cri(cri_answer({{kContainerStatus, {body}}})));
  }
  error_of(parse_cri(cri_answer({{kContainerStatus, {test::framed(message), ""}}})));
  error_of(parse_cri(cri_answer({{kContainerStatus, {test::framed(message), "no number"}}})));
}

TEST_CASE("an engine of the CRI that hangs up early, or speaks something else, is an error") {
  const std::string answer = container_answer();
  for (std::size_t size = 0; size + 200 < answer.size(); size += 13) {
    error_of(read_from_server(EngineProtocol::kCri, answer.substr(0, size), 1000));
  }
  for (const std::string& noise : {std::string("HTTP/1.1 400 Bad Request\r\n\r\na secret"), std::string(1000, '\0'),
                                   std::string(1000, '\xff'), std::string("a secret")}) {
    error_of(read_from_server(EngineProtocol::kCri, noise, 1000));
  }
}

/// A frame of HTTP/2.
std::string frame(std::uint8_t type, std::uint8_t flags, std::uint32_t stream, const std::string& payload) {
  std::string out;
  for (const int shift : {16, 8, 0}) out += static_cast<char>(payload.size() >> shift);
  out += static_cast<char>(type);
  out += static_cast<char>(flags);
  for (const int shift : {24, 16, 8, 0}) out += static_cast<char>(stream >> shift);
  return out + payload;
}
std::string repeated(const std::string& text, std::size_t times) {
  std::string out;
  for (; times > 0; --times) out += text;
  return out;
}

TEST_CASE("floods of HTTP/2 end the reading") {
  const std::string begin = frame(NGHTTP2_SETTINGS, 0, 0, "");
  // A table entry of 4,000 bytes, and references to it: 61 is the last one that every table has.
  const std::string entry = std::string(
                                "\x40\x01"
                                "a\x7f\xa1\x1e",
                                6) +
                            std::string(4000, 'x');
  const std::string bomb = frame(NGHTTP2_HEADERS, 0, 1, "\x88" + entry) +
                           repeated(frame(NGHTTP2_CONTINUATION, 0, 1, std::string(16'000, '\xbe')), 200);
  const std::vector<std::pair<std::string, std::string>> floods{
      {"pings", repeated(frame(NGHTTP2_PING, 0, 0, std::string(8, 'p')), 100'000)},
      {"settings", repeated(frame(NGHTTP2_SETTINGS, 0, 0, ""), 100'000)},
      {"headers", frame(NGHTTP2_HEADERS, 0, 1, "\x88") +
                      repeated(frame(NGHTTP2_CONTINUATION, 0, 1, repeated(std::string("\0\1a\1b", 5), 3000)), 400)},
      {"header bomb", bomb},
      {"empty headers",
       frame(NGHTTP2_HEADERS, 0, 1, "\x88") + repeated(frame(NGHTTP2_CONTINUATION, 0, 1, ""), 500'000)},
      {"empty data",
       frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, "\x88") + repeated(frame(NGHTTP2_DATA, 0, 1, ""), 500'000)},
      {"data", frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, "\x88") +
                   repeated(frame(NGHTTP2_DATA, 0, 1, std::string(16'000, 'a')), 300)},
      {"window updates", repeated(frame(NGHTTP2_WINDOW_UPDATE, 0, 0, std::string("\x7f\xff\xff\xff", 4)), 100)},
      {"pushes",
       repeated(frame(NGHTTP2_PUSH_PROMISE, NGHTTP2_FLAG_END_HEADERS, 1, std::string("\0\0\0\2\x88", 5)), 100)},
      {"goaway", repeated(frame(NGHTTP2_GOAWAY, 0, 0, std::string(8, '\0')), 100'000)},
      {"unknown frames", repeated(frame(0xfa, 0, 0, std::string(10'000, 'a')), 500)},
  };
  for (const auto& [name, flood] : floods) {
    INFO(name);
    error_of(read_from_server(EngineProtocol::kCri, begin + flood, std::size_t{1} << 16));
    error_of(parse_cri(begin + flood));
  }
}

TEST_CASE("resets of calls are errors, and one that ends all others, too") {
  const std::string begin = frame(NGHTTP2_SETTINGS, 0, 0, "");
  for (const std::uint32_t code : {0U, 7U, 8U}) {
    const std::string reason{0, 0, 0, static_cast<char>(code)};
    const std::string resets = frame(NGHTTP2_RST_STREAM, 0, 1, reason) + frame(NGHTTP2_RST_STREAM, 0, 3, reason);
    CHECK(error_of(parse_cri(begin + resets)) == "the engine does not end the call as gRPC does");
  }
}

// ---- Docker ----

std::string docker_json(const std::string& id) {
  return R"({"Id":")" + id + R"(","Created":"2026-01-31T14:05:00Z","Path":"nginx","Args":["a secret"],"Name":"/web",
      "Config":{"Hostname":"a","Env":["PASSWORD=a secret","Name=a secret"],"Labels":{"com.example":"a secret"}}})";
}

TEST_CASE("an engine of Docker's API is asked for one container, without keeping the connection") {
  CHECK(engine_question(EngineProtocol::kDocker, kId) ==
        "GET /containers/" + kId + "/json HTTP/1.0\r\nHost: localhost\r\n\r\n");
}

TEST_CASE("a container of Docker's API has its name, and labels if the kubelet has started it") {
  const std::string head = "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n";
  for (const std::size_t step : {std::size_t{1}, std::size_t{1000}}) {
    CHECK(read_from_server(EngineProtocol::kDocker, head + docker_json(kId), step).value() ==
          ContainerNames{"web", "", ""});
  }
  CHECK(parse_docker(head + R"({"Id":")" + kId + R"(","Name":"/k8s_c","Config":{"Labels":{
      "io.kubernetes.container.name":"c","io.kubernetes.pod.name":"p","io.kubernetes.pod.namespace":"n"}}})")
            .value() == ContainerNames{"c", "p", "n"});
}

TEST_CASE("a container that an engine of Docker's API does not know, or finds by its name, has no name") {
  CHECK(parse_docker("HTTP/1.0 404 Not Found\r\n\r\n{\"message\":\"No such container: a secret\"}").value() ==
        ContainerNames());
  CHECK(parse_docker("HTTP/1.1 200 OK\r\n\r\n" + docker_json(kOther)).value() == ContainerNames());
}

TEST_CASE("what is no good answer of Docker's API is an error without a word of it") {
  const std::string json = docker_json(kId);
  const std::string head = "HTTP/1.0 200 OK\r\n\r\n";
  CHECK(error_of(parse_docker("HTTP/1.0 500 a secret\r\n\r\n")) == "the engine refuses to answer: HTTP status 500");
  for (const std::string& answer : {std::string(), std::string("HTTP/1."), std::string("HTTP/1.\r\n\r\n"),
                                    std::string("HTTP/1.0 a secret\r\n\r\n"), std::string("HTTP/1.0 200 OK\r\n"), head,
                                    head + json.substr(0, json.size() - 1), "HTTP/2 200 OK\r\n\r\n" + json,
                                    head + "a secret", "HTTP/1.0 200 OK\r\n\r\n1f\r\n" + json, container_answer()}) {
    error_of(read_from_server(EngineProtocol::kDocker, answer, 1000));
  }
}

TEST_CASE("an answer without an end is not read to its end") {
  for (const EngineProtocol protocol : {EngineProtocol::kDocker, EngineProtocol::kCri}) {
    const std::string head =
        protocol == EngineProtocol::kDocker ? "HTTP/1.0 200 OK\r\n\r\n{\"a\":\"" : frame(NGHTTP2_SETTINGS, 0, 0, "");
    const std::string more = protocol == EngineProtocol::kDocker
                                 ? std::string(8U << 20, 'a')
                                 : repeated(frame(0xfa, 0, 0, std::string(16'000, 'a')), 500);
    CHECK(error_of(read_from_server(protocol, head + more, std::size_t{1} << 16)) ==
          "it is larger than any such answer");
  }
}

TEST_CASE("answers of containerd, Docker and Podman have the names") {
  const char* folder = std::getenv("FLAMED_ENGINE_ANSWERS");
  REQUIRE(folder != nullptr);
  // Recorded from engines that had such a container; their ids were replaced.
  const std::vector<std::pair<std::string, ContainerNames>> answers{
      {"cri_containerd_1.6_container", {"nginx", "web-0", "shop"}},
      {"cri_containerd_1.6_sandbox", {"", "web-0", "shop"}},
      {"cri_containerd_1.6_none", {}},
      {"docker_20.10", {"shop-web", "", ""}},
      {"podman_4.3", {"shop-store", "", ""}}};
  for (const auto& [name, names] : answers) {
    INFO(name);
    // The first byte is the fuzzer's.
    const std::string answer = read_file(std::string(folder) + "/" + name, kMaxEngineAnswerBytes).value().substr(1);
    const EngineProtocol protocol = name.starts_with("cri") ? EngineProtocol::kCri : EngineProtocol::kDocker;
    CHECK(parse_engine_answer(answer, protocol, std::string(64, 'a')).value() == names);
  }
}

TEST_CASE("what is no id is not asked for") {
  for (const char* id : {"", "web", "../../info", "3f5a HTTP/1.0\r\nX: y"}) {
    for (const EngineProtocol protocol : {EngineProtocol::kDocker, EngineProtocol::kCri}) {
      CHECK(engine_question(protocol, id).empty());
      CHECK_FALSE(parse_engine_answer("", protocol, id));
    }
  }
}

}  // namespace
}  // namespace flamed::symbolizer
