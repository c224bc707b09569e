// SPDX-License-Identifier: Apache-2.0
//
// The real daemon, the real flamed-push, and receivers of the test's own, which decode what they get: it is what the
// daemon answers about the same time, to the sample, whatever the receivers answer.
#include <httplib.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "test/catch.h"
#include "test/kernel/folded_stacks.h"
#include "test/support/child_process.h"
#include "test/support/engine_messages.h"
#include "test/support/running_daemon.h"

namespace flamed::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;

constexpr const char* kPushPath = "/push.v1.PusherService/Push";
constexpr const char* kOtlpPath = "/v1development/profiles";

/// Takes requests, and answers the first ones of a receiver as it is told to.
class Receivers {
 public:
  struct Got {
    std::string body;
    bool is_otlp = false;
    std::string content_type;
    std::string authorization;
    int status = 200;

    [[nodiscard]] std::vector<ReceivedProfile> profiles() const {
      return is_otlp ? profiles_of_otlp(body) : profiles_of_push(body);  // httplib's server has unpacked the former
    }
  };

  Receivers() {
    const auto take = [this](const httplib::Request& request, httplib::Response& response) {
      answer(request, response);
    };
    server_.Post("/.*", take);
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
  }
  ~Receivers() {
    server_.stop();
    thread_.join();
  }
  Receivers(const Receivers&) = delete;
  Receivers& operator=(const Receivers&) = delete;

  [[nodiscard]] std::string url(const std::string& name, const std::string& path) const {
    return "http://127.0.0.1:" + std::to_string(port_) + "/" + name + path;
  }
  void refuse_first(const std::string& name, std::vector<int> statuses) { statuses_[name] = std::move(statuses); }
  [[nodiscard]] std::vector<Got> got(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto found = got_.find(name);
    return found == got_.end() ? std::vector<Got>() : found->second;
  }

 private:
  void answer(const httplib::Request& request, httplib::Response& response) {
    const std::lock_guard lock(mutex_);
    const std::string name = request.path.substr(1, request.path.find('/', 1) - 1);
    const bool is_otlp = request.path.ends_with(kOtlpPath);
    std::vector<Got>& got = got_[name];
    Got one{request.body, is_otlp, request.get_header_value("Content-Type"), request.get_header_value("Authorization")};
    if (got.size() < statuses_[name].size()) one.status = statuses_[name][got.size()];
    got.push_back(one);
    response.status = one.status;
    if (one.status == 200) {
      response.set_content(is_otlp ? std::string("\x0a\x00", 2) : std::string(),
                           is_otlp ? "application/x-protobuf" : "application/proto");
    } else if (one.status == 307) {
      response.set_header("Location", url("redirected", kPushPath));
    } else {
      response.set_header("Retry-After", "1");
    }
  }

  httplib::Server server_;
  int port_ = 0;
  std::thread thread_;
  mutable std::mutex mutex_;
  std::map<std::string, std::vector<int>> statuses_;
  std::map<std::string, std::vector<Got>> got_;
};

/// A folder for one test.
struct Folder {
  Folder() {
    char name[] = "/tmp/flamed-push-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    path = name;
  }
  ~Folder() { std::system(("rm -r " + path).c_str()); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string path;
};

std::int64_t end_ms(const ReceivedProfile& profile) { return (profile.time_ns + profile.duration_ns) / 1'000'000; }

/// The stacks of all profiles of a request as one. The folded format has a name for the program in front of none.
FoldedStacks stacks_of(const Receivers::Got& got) {
  FoldedStacks stacks;
  for (const ReceivedProfile& profile : got.profiles()) {
    for (const auto& [stack, samples] : profile.stacks) stacks[stack] += samples;
  }
  return stacks;
}

json component_of(const RunningDaemon& daemon, const std::string& name) {
  const json health = daemon.get_json("/healthz");
  for (const json& component : health["components"]) {
    if (component["name"] == name) return component;
  }
  return {{"detail", ""}};
}

/// By receiver, one metric.
std::uint64_t metric_of(const RunningDaemon& daemon, const std::string& name, const std::string& labels) {
  const std::string text = daemon.get("/metrics").body;
  const std::string key = name + "{" + labels + "} ";
  const std::size_t at = text.find(key);
  return at == std::string::npos ? 0 : std::stoull(text.substr(at + key.size()));
}

TEST_CASE("receivers get what the daemon answers of the same time, to the sample, and the rest is counted") {
  const char* const program = std::getenv("FLAMED_PUSH_BINARY");
  if (program == nullptr || *program == '\0') {
    WARN("SKIP: there is no flamed-push: it needs libcurl and OpenSSL to be built");
    return;
  }
  const Folder folder;
  const std::string socket = folder.path + "/flamed.sock";
  RunningDaemon daemon({"--listen", "unix:" + socket});
  const ChildProcess busy({victim("known_chain")});
  REQUIRE(has_samples(daemon, busy.pid(), 100));

  Receivers receivers;
  receivers.refuse_first("again", {503, 429, 502});
  receivers.refuse_first("broken", {500, 400, 307});
  std::ofstream(folder.path + "/token") << "t0ken\n";
  const auto receiver = [&](const std::string& name, const std::string& format, const std::string& path) {
    return json{{"name", name},
                {"format", format},
                {"url", receivers.url(name, path)},
                {"interval", "5s"},
                {"measures", {"cpu"}},
                {"naming", "all"},
                {"select", {{"exe", "victim_known_chain"}}},
                {"labels", {{"env", "test"}}}};
  };
  json all = receiver("all", "pyroscope", kPushPath);
  all.erase("select");
  all["bearer_token_file"] = folder.path + "/token";
  json down = receiver("down", "pyroscope", kPushPath);
  down["url"] = "http://127.0.0.1:1";
  const json config{{"socket", socket},
                    {"receivers",
                     {all, receiver("one", "pyroscope", kPushPath), receiver("otlp", "otlp", kOtlpPath),
                      receiver("again", "pyroscope", kPushPath), receiver("broken", "pyroscope", kPushPath), down}}};
  std::ofstream(folder.path + "/push.json") << config.dump();
  const std::vector<std::string> command{program, "--config", folder.path + "/push.json", "--state", folder.path};
  {
    ChildProcess push(command, ChildProcess::Capture::kOutputAndErrors);
    REQUIRE(RunningDaemon::eventually(seconds(60) * patience(), [&] { return receivers.got("one").size() >= 3; }));
    REQUIRE(RunningDaemon::eventually(seconds(60) * patience(), [&] { return receivers.got("again").size() >= 5; }));
    REQUIRE(RunningDaemon::eventually(seconds(60) * patience(), [&] { return receivers.got("broken").size() >= 4; }));
    push.signal(SIGTERM);
    CHECK(push.wait(seconds(40)) == 0);
  }
  // Started anew, it goes on where it was.
  {
    ChildProcess push(command, ChildProcess::Capture::kOutputAndErrors);
    const std::size_t before = receivers.got("one").size();
    REQUIRE(
        RunningDaemon::eventually(seconds(60) * patience(), [&] { return receivers.got("one").size() >= before + 2; }));
    // The report follows at the next interval.
    REQUIRE(RunningDaemon::eventually(seconds(30) * patience(), [&] {
      return component_of(daemon, "push")["detail"].get<std::string>().find("one (cpu): accepted all") !=
             std::string::npos;
    }));
    const json health = component_of(daemon, "push");
    INFO(health);
    CHECK(health["ok"] == false);
    CHECK(health["detail"].get<std::string>().find("down (cpu): does not answer, and is tried again") !=
          std::string::npos);
    CHECK(daemon.get("/healthz").status == 200);
    CHECK(metric_of(daemon, "flamed_push_requests_total", R"(receiver="one",measure="cpu")") >= 1);
    push.signal(SIGTERM);
    CHECK(push.wait(seconds(40)) == 0);
  }

  const auto folded = [&](const ReceivedProfile& profile, const std::string& selection) {
    return daemon.folded("/profile?format=folded&group=none&from=" + std::to_string(profile.time_ns / 1'000'000) +
                         "&to=" + std::to_string(end_ms(profile)) + selection);
  };
  std::uint64_t samples = 0;
  for (const char* name : {"one", "otlp", "again"}) {
    std::int64_t until_ms = 0;
    for (const Receivers::Got& got : receivers.got(name)) {
      INFO(name);
      CHECK(got.content_type == (got.is_otlp ? "application/x-protobuf" : "application/proto"));
      const std::vector<ReceivedProfile> profiles = got.profiles();
      REQUIRE(profiles.size() == 1);
      const ReceivedProfile& profile = profiles[0];
      if (got.status != 200) continue;
      CHECK(stacks_of(got) == folded(profile, "&exe=victim_known_chain"));
      samples += total(stacks_of(got));
      CHECK(profile.labels.at("env") == "test");
      // Each stretch once, none left out.
      if (until_ms != 0) CHECK(profile.time_ns / 1'000'000 == until_ms);
      until_ms = end_ms(profile);
    }
  }
  CHECK(samples >= 100);  // how much CPU time the program gets beside others is not tested

  // The same bytes with the same id until they were taken.
  const std::vector<Receivers::Got> again = receivers.got("again");
  for (std::size_t i = 1; i <= 3; ++i) {
    CHECK(again[i].body == again[0].body);
    CHECK(again[i].profiles().at(0).id == again[0].profiles().at(0).id);
  }
  CHECK(again[4].profiles().at(0).id != again[0].profiles().at(0).id);
  // What was refused is not sent again, and a redirect is not followed.
  std::set<std::int64_t> times;
  for (const Receivers::Got& got : receivers.got("broken")) CHECK(times.insert(got.profiles().at(0).time_ns).second);
  CHECK(receivers.got("redirected").empty());

  // The whole machine: a series for each service, all samples in one of them.
  for (const Receivers::Got& got : receivers.got("all")) {
    CHECK(got.authorization == "Bearer t0ken");
    std::set<std::string> services;
    const std::vector<ReceivedProfile> profiles = got.profiles();
    for (const ReceivedProfile& profile : profiles) CHECK(services.insert(profile.labels.at("service_name")).second);
    CHECK(total(stacks_of(got)) == total(folded(profiles.at(0), "")));
  }
}

}  // namespace
}  // namespace flamed::test
