// SPDX-License-Identifier: Apache-2.0
//
// Programs and clients that cost as much as they can: false unwind information, huge maps of JIT code, connections
// passed to other users, queries about everything from many connections.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/handle.h"
#include "test/catch.h"
#include "test/kernel/accounts.h"
#include "test/kernel/attacks/attack.h"
#include "test/kernel/folded_stacks.h"
#include "test/support/child_process.h"
#include "test/support/running_daemon.h"

namespace flamed::test {
namespace {

using std::chrono::seconds;

constexpr unsigned kMallory = 64701;

bool is_long() { return attack_tries(1) != 1; }

void check_others_are_whole(const RunningDaemon& daemon, const ChildProcess& other) {
  const FoldedStacks stacks = settled_profile(daemon, other.pid());
  INFO((stacks.empty() ? "" : stacks.begin()->first));
  CHECK(with(stacks, ";main;outer;middle;work_") >= total(stacks) * 98 / 100);
}

#if defined(__x86_64__)
TEST_CASE("false unwind information costs only the stacks of its own program") {
  RunningDaemon daemon;
  ChildProcess other({victim("known_chain")});
  REQUIRE(has_samples(daemon, other.pid(), 50));
  for (const std::string kind : {"itself", "elsewhere", "kernel", "program"}) {
    CAPTURE(kind);
    ChildProcess program(as_user(kMallory, {victim("forged_rows"), kind}));
    REQUIRE(program.read_line(seconds(20)) == "ready");
    REQUIRE(has_samples(daemon, program.pid(), is_long() ? 2000 : 200));
    const FoldedStacks stacks = settled_profile(daemon, program.pid());
    for (const auto& [stack, count] : stacks) UNSCOPED_INFO(count << "  " << stack.substr(0, 400));
    // Before it was ready, it wrote its memory for the first time.
    const auto of_attack = total(stacks) - with(stacks, ";main;asm_exc_page_fault");
    // The first frame is where it ran. The stack that the rows lead to is cut, and ends.
    CHECK(with(stacks, "[truncated") >= of_attack * 95 / 100);
  }
  check_others_are_whole(daemon, other);
  CHECK(daemon.metrics()["flamed_samples_lost_total"] == 0);
  check_every_sample_is_counted(daemon);
}

TEST_CASE("a huge map of JIT code delays no answers") {
  RunningDaemon daemon;
  ChildProcess other({victim("known_chain")});
  REQUIRE(has_samples(daemon, other.pid(), 50));
  const double before = daemon.metrics()["flamed_resident_bytes"];
  ChildProcess program(as_user(kMallory, {victim("jit")}));
  const std::string file = "/tmp/perf-" + std::to_string(program.pid()) + ".map";
  REQUIRE(RunningDaemon::eventually(seconds(20), [&] { return std::filesystem::exists(file); }));
  {
    std::ofstream map(file, std::ios::app);
    const int lines = is_long() ? 40'000'000 : 4'000'000;  // 25 bytes each
    for (int i = 0; i < lines; ++i) map << std::hex << 0x10000000 + i * 64 << " 40 forged_" << i << "\n";
  }
  // It is read as soon as samples are in its code.
  REQUIRE(has_samples(daemon, program.pid(), 200));
  for (int i = 0; i < 20; ++i) {
    const HttpAnswer answer = daemon.get(profile_of(other.pid()));
    CHECK(answer.status == 200);
    CHECK(daemon.get(profile_of(program.pid())).status == 200);
  }
  check_others_are_whole(daemon, other);
  const double after = daemon.metrics()["flamed_resident_bytes"];
  WARN("memory " << before / (1 << 20) << " MiB before, " << after / (1 << 20) << " MiB after");
  CHECK(after - before < (300U << 20));
  CHECK(daemon.metrics()["flamed_samples_lost_total"] == 0);
  program.kill();
  std::filesystem::remove(file);
  check_every_sample_is_counted(daemon);
}
#endif

TEST_CASE("a user who is passed an open connection has the rights of the user who opened it") {
  const OpenFolder folder;
  RunningDaemon daemon({"--listen", "unix:" + folder.path("socket")});
  REQUIRE(::chmod(folder.path("socket").c_str(), 0666) == 0);
  for (const uid_t opener : {uid_t{0}, uid_t{kMallory}}) {
    CAPTURE(opener);
    REQUIRE(::seteuid(opener) == 0);
    Fd socket(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::snprintf(address.sun_path, sizeof address.sun_path, "%s", folder.path("socket").c_str());
    const bool connected = ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    // Another user sends a request over it.
    REQUIRE(::seteuid(0) == 0);
    REQUIRE(connected);
    REQUIRE(::seteuid(opener == 0 ? kMallory : 0) == 0);
    const std::string request = "GET /processes HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    const bool sent = ::send(socket.get(), request.data(), request.size(), 0) == static_cast<ssize_t>(request.size());
    REQUIRE(::seteuid(0) == 0);
    REQUIRE(sent);
    std::string answer;
    char bytes[4096];
    for (ssize_t got = 0; (got = ::recv(socket.get(), bytes, sizeof bytes, 0)) > 0;)
      answer.append(bytes, static_cast<std::size_t>(got));
    CHECK(answer.find(opener == 0 ? "\"visible_uid\":null" : "\"visible_uid\":" + std::to_string(kMallory)) !=
          std::string::npos);
  }
}

TEST_CASE("64 connections that compare everything, again and again, keep out no client and lose no sample") {
  RunningDaemon daemon;
  ChildProcess other({victim("known_chain")});
  REQUIRE(has_samples(daemon, other.pid(), 200));
  const double before = daemon.metrics()["flamed_resident_bytes"];
  const std::string url = "http://127.0.0.1:" + std::to_string(daemon.port()) +
                          "/diff?from=now-20s&to=now&base_from=now-40s&base_to=now-20s";
  ChildProcess client(
      as_user(kMallory, {"wrk", "--threads", "1", "--connections", "64", "--duration", is_long() ? "60s" : "8s", url}));
  for (int i = 0; i < 10; ++i) {
    CHECK(daemon.get("/healthz").status == 200);
    CHECK(daemon.get(profile_of(other.pid())).status == 200);
    std::this_thread::sleep_for(seconds(is_long() ? 5 : 1));
  }
  REQUIRE(client.wait(seconds(90)) == 0);
  const double after = daemon.metrics()["flamed_resident_bytes"];
  WARN("memory " << before / (1 << 20) << " MiB before, " << after / (1 << 20) << " MiB after");
  CHECK(after - before < (400U << 20));
  check_others_are_whole(daemon, other);
  CHECK(daemon.metrics()["flamed_samples_lost_total"] == 0);
  check_every_sample_is_counted(daemon);
}

}  // namespace
}  // namespace flamed::test
