// SPDX-License-Identifier: Apache-2.0
//
// Access to the real daemon: callers with different uids use curl over TCP and the Unix socket, and their answers are
// searched for other users' data.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "test/catch.h"
#include "test/kernel/folded_stacks.h"
#include "test/kernel/unit_launcher.h"
#include "test/support/child_process.h"
#include "test/support/running_daemon.h"

namespace flamed::test {
namespace {

using std::chrono::seconds;

constexpr unsigned kAlice = 64101;
constexpr unsigned kBob = 64102;
constexpr unsigned kOperator = 64103;   // in the group flamed besides their own
constexpr unsigned kColleague = 64104;  // has it as primary group
constexpr unsigned kStranger = 64105;   // without an account
constexpr unsigned kContained = 64106;  // on the host; root in a user namespace of its own
constexpr unsigned kGroup = 64200;

/// A directory that all users may enter, removed with the test.
class Folder {
 public:
  Folder() {
    char name[] = "/tmp/flamed-access-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    path_ = name;
    REQUIRE(::chmod(name, 0755) == 0);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string write(const std::string& name, const std::string& text, mode_t mode = 0644) const {
    std::ofstream(path_ + "/" + name) << text;
    REQUIRE(::chmod((path_ + "/" + name).c_str(), mode) == 0);
    return path_ + "/" + name;
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The daemon, in a mount namespace whose account files have the users of this test.
class SharedHost {
 public:
  /// The daemon runs as root, or with the rights of its unit.
  explicit SharedHost(bool is_unit = false) {
    const auto account = [](const char* name, unsigned user, unsigned group) {
      return std::string(name) + ":x:" + std::to_string(user) + ":" + std::to_string(group) + "::/:/bin/false\n";
    };
    folder_.write("passwd", text_of("/etc/passwd") + account("t-alice", kAlice, kAlice) + account("t-bob", kBob, kBob) +
                                account("t-operator", kOperator, kOperator) +
                                account("t-colleague", kColleague, kGroup));
    // The first entry of a name counts.
    folder_.write("group", "flamed:x:" + std::to_string(kGroup) + ":t-operator\n" + text_of("/etc/group"));
    const std::string with_accounts = folder_.write("with-accounts",
                                                    R"(#!/bin/sh
exec unshare --mount --propagation private sh -ec '
mount --bind "$0/passwd" /etc/passwd
mount --bind "$0/group" /etc/group
exec "$@"' ")" + folder_.path() + "\" \"$@\"\n",
                                                    0755);
    std::vector<std::string> launcher{with_accounts};
    if (is_unit) {
      REQUIRE(::chown(folder_.path().c_str(), kUserOfUnit, kUserOfUnit) == 0);  // for the socket
      const std::vector<std::string> of_unit = launcher_with_filter();
      launcher.insert(launcher.end(), of_unit.begin(), of_unit.end());
    }
    daemon_.emplace(std::vector<std::string>{"--listen", "unix:" + socket()}, launcher);
    // The test is about flamed's own rule, not about the socket's permissions.
    REQUIRE(::chmod(socket().c_str(), 0666) == 0);
  }

  /// A busy process of the user, with a program and a name of its own.
  ChildProcess& run_as(unsigned user, const std::string& name, const std::string& program,
                       const std::vector<std::string>& arguments) {
    return run_text_as(user, name, text_of(victim(program)), arguments);
  }
  /// The same for a program with these bytes.
  ChildProcess& run_text_as(unsigned user, const std::string& name, const std::string& program,
                            const std::vector<std::string>& arguments = {}) {
    const std::string copy = folder_.write(name, program, 0755);
    std::vector<std::string> command = as(user);
    command.push_back(copy);
    command.insert(command.end(), arguments.begin(), arguments.end());
    return *victims_.emplace_back(std::make_unique<ChildProcess>(command));
  }

  static std::vector<std::string> as(unsigned user) {
    if (user == 0) return {};
    const std::string id = std::to_string(user);
    std::vector<std::string> command{"setpriv", "--reuid=" + id, "--regid=" + id, "--clear-groups"};
    if (user == kContained) command.insert(command.end(), {"unshare", "--user", "--map-root-user"});
    return command;
  }

  [[nodiscard]] std::string path_of(const std::string& name) const { return folder_.path() + "/" + name; }
  [[nodiscard]] double metric(const std::string& name) const { return daemon_->metrics()[name]; }

  struct Answer {
    int status = 0;  ///< 0: no answer
    std::string text;
  };
  /// Decompresses a compressed answer.
  [[nodiscard]] Answer ask(unsigned user, bool over_unix, const std::string& target,
                           const std::vector<std::string>& headers = {}) const {
    std::string curl =
        "body=$(mktemp) && status=$(curl --silent --globoff --path-as-is --max-time 20 --write-out '%{http_code}'";
    for (const std::string& header : headers) curl += " --header '" + header + "'";
    curl += over_unix ? " --unix-socket " + socket() + " 'http://localhost"
                      : " 'http://127.0.0.1:" + std::to_string(daemon_->port());
    curl += target + "' --output \"$body\"); gzip -dcf < \"$body\"; rm \"$body\"; printf '\\nSTATUS %s\\n' \"$status\"";
    std::vector<std::string> command = as(user);
    command.insert(command.end(), {"sh", "-c", curl});
    ChildProcess client(command, ChildProcess::Capture::kOutputAndErrors);
    Answer answer;
    while (auto line = client.read_line(seconds(25))) {
      if (line->rfind("STATUS ", 0) == 0) {
        answer.status = std::stoi(line->substr(7));
      } else {
        answer.text += *line + "\n";
      }
    }
    // The line break before the status is not part of the answer.
    while (!answer.text.empty() && answer.text.back() == '\n') answer.text.pop_back();
    return answer;
  }

  [[nodiscard]] const RunningDaemon& daemon() const { return *daemon_; }
  [[nodiscard]] std::string socket() const { return folder_.path() + "/flamed.sock"; }

 private:
  Folder folder_;
  std::optional<RunningDaemon> daemon_;
  std::vector<std::unique_ptr<ChildProcess>> victims_;
};

/// What shows that a process is in an answer: its name, its functions, and its pid in each form that answers use. A
/// number counts only as a whole: 27 is not in 2701.
std::vector<std::string> marks_of(const std::string& name, const std::vector<std::string>& functions, pid_t pid) {
  const std::string id = std::to_string(pid);
  std::vector<std::string> marks{name, "\"pid\":" + id, "\"tid\":" + id, id + "@", "(" + id, id + "/" + id};
  marks.insert(marks.end(), functions.begin(), functions.end());
  return marks;
}

bool has(const std::string& text, const std::string& mark) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
    const std::size_t end = at + mark.size();
    const bool goes_on_before = at > 0 && is_digit(mark.front()) && is_digit(text[at - 1]);
    const bool goes_on_after = end < text.size() && is_digit(mark.back()) && is_digit(text[end]);
    if (!goes_on_before && !goes_on_after) return true;
  }
  return false;
}

bool has_any(const std::string& text, const std::vector<std::string>& marks) {
  return std::any_of(marks.begin(), marks.end(), [&](const std::string& mark) { return has(text, mark); });
}

const std::vector<std::string>& data_targets() {
  static const std::vector<std::string> targets{"/profile",
                                                "/profile?format=columns",
                                                "/profile?format=folded",
                                                "/profile?format=pprof",
                                                "/profile?format=speedscope&group=thread",
                                                "/profile?format=perf-script",
                                                "/profile?format=top",
                                                "/profile?format=top-text&group=exe",
                                                "/diff?from=now-1m&base_from=now-2m",
                                                "/diff?from=now-1m&format=folded",
                                                "/processes",
                                                "/threads",
                                                "/timeline?processes=64",
                                                "/debug/pprof/profile?from=now-5m"};
  return targets;
}

TEST_CASE("each caller sees their own processes, and root and the group see all, over TCP and the Unix socket") {
  SharedHost host;
  const pid_t alices = host.run_as(kAlice, "alices-mark", "known_chain", {}).pid();
  const pid_t bobs = host.run_as(kBob, "bobs-mark", "slower", {"0"}).pid();
  const pid_t contained = host.run_as(kContained, "inner-mark", "deep", {}).pid();
  for (const pid_t pid : {alices, bobs, contained}) REQUIRE(has_samples(host.daemon(), pid, 20));

  struct Process {
    unsigned owner;
    pid_t pid;
    std::vector<std::string> marks;
  };
  const std::vector<Process> processes{{kAlice, alices, marks_of("alices-mark", {"work_one", "work_two"}, alices)},
                                       {kBob, bobs, marks_of("bobs-mark", {"steady"}, bobs)},
                                       {kContained, contained, marks_of("inner-mark", {"descend"}, contained)}};
  struct Caller {
    const char* name;
    unsigned user;
    bool sees_all;
  };
  const Caller callers[] = {{"root", 0, true},
                            {"a member of the group", kOperator, true},
                            {"one whose primary group it is", kColleague, true},
                            {"the owner", kAlice, false},
                            {"another user", kBob, false},
                            {"a user without processes or account", kStranger, false},
                            {"root of a user namespace", kContained, false}};
  for (const Caller& caller : callers) {
    for (const bool over_unix : {false, true}) {
      CAPTURE(caller.name, over_unix);
      for (const std::string target : {"/healthz", "/readyz", "/metrics", "/version", "/openapi.json", "/"}) {
        CAPTURE(target);
        const auto answer = host.ask(caller.user, over_unix, target);
        CHECK(answer.status == 200);
        CHECK_FALSE(answer.text.empty());
        for (const Process& process : processes) CHECK_FALSE(has_any(answer.text, process.marks));
      }
      for (const std::string& target : data_targets()) {
        CAPTURE(target);
        const auto answer = host.ask(caller.user, over_unix, target);
        CHECK(answer.status == 200);
        CHECK_FALSE(answer.text.empty());
        for (const Process& process : processes) {
          if (caller.sees_all || process.owner == caller.user) {
            CHECK(has_any(answer.text, process.marks));
          } else {
            CHECK_FALSE(has_any(answer.text, process.marks));
          }
        }
      }
      for (const Process& process : processes) {
        const bool may = caller.sees_all || process.owner == caller.user;
        const auto answer = host.ask(caller.user, over_unix, "/profile?pid=" + std::to_string(process.pid));
        CHECK(answer.status == (may ? 200 : 404));
      }
      // The answer is the same for an unused pid, a running one, and a sampled one.
      if (!caller.sees_all && caller.user != kBob) {
        const auto say = [&](pid_t pid) {
          const std::string id = std::to_string(pid);
          std::string text = host.ask(caller.user, over_unix, "/profile?pid=" + id).text;
          for (std::size_t at = text.find(id); at != std::string::npos; at = text.find(id))
            text.replace(at, id.size(), "?");
          return text;
        };
        CHECK(say(bobs) == say(4'194'303));
        CHECK(say(::getpid()) == say(4'194'303));
      }
    }
  }
}

TEST_CASE("a user sees a process's samples from when it became theirs, and nothing of one that was theirs") {
  SharedHost host;
  const std::string id = std::to_string(kAlice);
  // The process computes as root for a while, then goes on as Alice's.
  ChildProcess turncoat({"sh", "-c",
                         "i=0; while [ $i -lt 2000000 ]; do i=$((i+1)); done; exec setpriv --reuid=" + id +
                             " --regid=" + id + " --clear-groups " + victim("known_chain")});
  REQUIRE(has_samples(host.daemon(), turncoat.pid(), 20));
  REQUIRE(RunningDaemon::eventually(seconds(60), [&] {
    return host.ask(kAlice, false, "/profile?format=folded").text.find("work_two") != std::string::npos;
  }));
  const std::string query = "/profile?format=folded&group=none&pid=" + std::to_string(turncoat.pid());
  const std::string roots = host.ask(0, false, query).text;
  const std::string alices = host.ask(kAlice, false, query).text;
  const auto samples_outside = [](const std::string& folded) {
    std::uint64_t count = 0;
    std::istringstream lines(folded);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("# ")) continue;  // the reason for an empty answer
      if (line.find("middle") == std::string::npos) count += std::stoull(line.substr(line.rfind(' ') + 1));
    }
    return count;
  };
  // The shell's loop is root's; Alice may have a sample or two of her program's start.
  CHECK(samples_outside(roots) >= 20);
  CHECK(samples_outside(alices) < 10);
}

TEST_CASE("a setuid program is not shown to the user who started it") {
  SharedHost host;
  Folder folder;
  const std::string program = folder.path() + "/set-uid-mark";
  std::filesystem::copy_file(victim("known_chain"), program);
  REQUIRE(::chown(program.c_str(), kBob, kBob) == 0);
  REQUIRE(::chmod(program.c_str(), 04755) == 0);
  std::vector<std::string> command = SharedHost::as(kAlice);
  command.push_back(program);
  ChildProcess mixed(command);
  REQUIRE(has_samples(host.daemon(), mixed.pid(), 20));
  for (const unsigned user : {kAlice, kBob}) {
    CHECK(host.ask(user, false, "/processes").text.find("set-uid-mark") == std::string::npos);
  }
  CHECK(host.ask(0, false, "/processes").text.find("set-uid-mark") != std::string::npos);
}

TEST_CASE("requests of other sites and with other host names are refused, for every user of the browser") {
  SharedHost host;
  const std::string own = "127.0.0.1:" + std::to_string(host.daemon().port());
  const std::vector<std::vector<std::string>> cases{
      {"Host: evil.example"},
      {"Host: evil.example:" + std::to_string(host.daemon().port())},
      {"Host: localhost"},
      {"Host: 127.0.0.1"},
      {"Host: 127.0.0.1:1"},
      {"Host: 0.0.0.0:" + std::to_string(host.daemon().port())},
      {"Host: localhost.evil.example:" + std::to_string(host.daemon().port())},
      {"Host: " + own + ".evil.example"},
      {"Host: " + own + "@evil.example"},
      {"Host: evil.example@" + own},
      {"Origin: http://evil.example"},
      {"Origin: null"},
      {"Origin: https://" + own},
      {"Origin: http://127.0.0.1"},
      {"Origin: http://localhost:8080"},
      {"Origin: http://" + own + ".evil.example"},
      {"Origin: http://evil.example", "Origin: http://" + own},
      {"Sec-Fetch-Site: cross-site"},
      {"Sec-Fetch-Site: same-site"},
      {"Sec-Fetch-Site: none", "Sec-Fetch-Site: cross-site"},
      {"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: script"},
      {"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"},
      {"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"},
      {"Sec-Fetch-Site: same-origin", "Host: evil.example"},
      {"Sec-Fetch-Site: same-origin", "Origin: http://evil.example"},
      {"Authorization: Bearer made-up-made-up-made-up", "Host: evil.example"},
      {"Host: LOCALHOST.:" + std::to_string(host.daemon().port())},
      {"Host: [::1]:" + std::to_string(host.daemon().port())},
      {"Host: 2130706433:" + std::to_string(host.daemon().port())},
      {"Host: 0x7f.0.0.1:" + std::to_string(host.daemon().port())},
  };
  for (const auto& headers : cases) {
    for (const unsigned user : {0U, kAlice}) {
      CAPTURE(headers, user);
      CHECK(host.ask(user, false, "/processes", headers).status == 403);
    }
  }
  CHECK(host.ask(kAlice, false, "/processes", {"Host: localhost:" + std::to_string(host.daemon().port())}).status ==
        200);
  CHECK(host.ask(kAlice, false, "/processes", {"Sec-Fetch-Site: same-origin", "Origin: http://" + own}).status == 200);
  CHECK(host.ask(kAlice, false, "/?pid=1",
                 {"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"})
            .status == 200);
  CHECK(host.ask(kAlice, true, "/processes", {"Host: evil.example"}).status == 403);
}

/// The victim whose line table names files in `place`. Slashes fill the name up.
std::string program_with_sources_in(std::string place) {
  const std::string written = "/flamed-place-of-sources" + std::string(40, '-');
  REQUIRE(place.size() <= written.size());
  place.append(written.size() - place.size(), '/');
  std::string program = text_of(victim("sources"));
  std::size_t count = 0;
  for (std::size_t at = 0; (at = program.find(written, at)) != std::string::npos; ++count) {
    program.replace(at, written.size(), place);
  }
  REQUIRE(count > 0);
  return program;
}

struct SourceAnswer {
  std::size_t lines = 0;  ///< with samples
  std::string reason{};
  bool is_newer = false;
  std::vector<std::pair<int, std::string>> text{};
};

/// What the user gets of a function with one source file.
SourceAnswer source_of(const SharedHost& host, unsigned user, pid_t pid, const std::string& function) {
  // Identical requests within a second would share an answer.
  static int window_s = 900;
  const auto answer = host.ask(user, true,
                               "/source?text=1&pid=" + std::to_string(pid) + "&function=" + function + "&from=now-" +
                                   std::to_string(++window_s) + "s");
  CAPTURE(answer.text);
  REQUIRE(answer.status == 200);
  const nlohmann::json json = nlohmann::json::parse(answer.text);
  SourceAnswer source{json["lines"].size()};
  REQUIRE(json["texts"].size() == 1);
  const nlohmann::json& text = json["texts"][0];
  if (!text["reason"].is_null()) source.reason = text["reason"];
  source.is_newer = text["newer"];
  for (const auto& line : text["lines"]) source.text.emplace_back(line["line"], line["text"]);
  return source;
}

TEST_CASE("text of sources is shown to a process's user and to root, as far as the user may read it") {
  const bool is_unit = GENERATE(false, true);
  CAPTURE(is_unit);
  SharedHost host(is_unit);
  const Folder folder;
  std::string text;
  for (int i = 1; i <= 40; ++i) text += "line " + std::to_string(i) + " of the source\n";
  const std::string plain = folder.write("plain.c", text, 0600);
  REQUIRE(::chown(plain.c_str(), kAlice, kAlice) == 0);
  REQUIRE(::mkfifo((folder.path() + "/pipe.c").c_str(), 0666) == 0);
  const ChildProcess& program = host.run_text_as(kAlice, "with-sources", program_with_sources_in(folder.path()));
  const pid_t pid = program.pid();
  REQUIRE(RunningDaemon::eventually(seconds(30), [&] {
    const auto answer = host.ask(0, true, "/source?format=text&pid=" + std::to_string(pid) + "&function=shadow");
    return answer.text.find("/etc/shadow:") != std::string::npos;
  }));

  for (const unsigned user : {kAlice, 0U}) {
    CAPTURE(user);
    const SourceAnswer source = source_of(host, user, pid, "plain");
    CHECK(source.reason.empty());
    CHECK(source.is_newer == false);
    CHECK(source.lines > 0);
    CHECK(source.text.size() > source.lines);
    for (const auto& [number, words] : source.text) {
      CHECK(words == "line " + std::to_string(number) + " of the source");
      // Lines 10 to 15 are the function's.
      CHECK(number >= 6);
      CHECK(number <= 19);
    }
    const SourceAnswer shadow = source_of(host, user, pid, "shadow");
    CHECK(shadow.lines > 0);
    CHECK(shadow.text.empty());
    CHECK(shadow.reason == "its owner, group and mode do not let the user read it");
    CHECK(source_of(host, user, pid, "pipe_file").reason == "it is not a regular file");
  }
  const SourceAnswer member = source_of(host, kOperator, pid, "plain");
  CHECK(member.lines > 0);
  CHECK(member.text.empty());
  CHECK(member.reason == "its process belongs to another user");
  CHECK(host.ask(kBob, true, "/source?text=1&function=plain").text.find("plain.c") == std::string::npos);

  // Written after the program was built.
  std::filesystem::last_write_time(plain, std::filesystem::last_write_time(host.path_of("with-sources")) + seconds(60));
  CHECK(source_of(host, kAlice, pid, "plain").is_newer);
  // Another file in its place.
  std::filesystem::remove(plain);
  std::filesystem::create_symlink("/etc/shadow", plain);
  for (const unsigned user : {kAlice, 0U}) {
    const SourceAnswer swapped = source_of(host, user, pid, "plain");
    CHECK(swapped.text.empty());
    CHECK(swapped.reason == "its owner, group and mode do not let the user read it");
  }
}

TEST_CASE("a source on a file system that may not answer is refused, and nobody waits for it") {
  const bool is_unit = GENERATE(false, true);
  CAPTURE(is_unit);
  SharedHost host(is_unit);
  const Folder folder;
  const Folder other;
  REQUIRE(std::filesystem::create_directory(folder.path() + "/fuse"));
  const std::string program = folder.write("program", program_with_sources_in(folder.path()), 0755);
  ChildProcess server({victim("hanging_fuse"), folder.path() + "/fuse", program, other.path()},
                      ChildProcess::Capture::kOutputAndErrors);
  const auto line = server.read_line(seconds(5));
  if (!line || line->find_first_not_of("0123456789") != std::string::npos) {
    WARN("SKIP fuse: no FUSE here: " << line.value_or("nothing was said"));
    return;
  }
  const pid_t pid = std::stoi(*line);
  REQUIRE(RunningDaemon::eventually(seconds(30), [&] {
    const auto answer = host.ask(0, true, "/source?format=text&pid=" + std::to_string(pid) + "&function=fuse_file");
    return answer.text.find("/fuse/program:") != std::string::npos;
  }));
  const SourceAnswer source = source_of(host, 0, pid, "fuse_file");
  CHECK(source.lines > 0);
  CHECK(source.text.empty());
  CHECK(source.reason.starts_with("it is not on a disk of this machine, but on fuse"));
  CHECK(host.metric("flamed_hung_file_systems") == 0);
}

}  // namespace
}  // namespace flamed::test
