// SPDX-License-Identifier: Apache-2.0
//
// Attacks on the process that reads files: a user tries to take names from others.
#include <pwd.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "test/catch.h"
#include "test/kernel/folded_stacks.h"
#include "test/support/child_process.h"
#include "test/support/running_daemon.h"

namespace flamed::test {
namespace {

using std::chrono::seconds;

constexpr unsigned kNobody = 65534;

/// As /healthz has it; -1 while there is none.
pid_t worker_of(const RunningDaemon& daemon) {
  const std::string health = daemon.get("/healthz").body;
  const std::size_t at = health.find("reads the files (pid ");
  return at == std::string::npos ? -1 : static_cast<pid_t>(std::stol(health.substr(at + 21)));
}

/// The real, effective, saved and file-system ids from /proc. `what`: "Uid:" or "Gid:".
std::vector<unsigned> ids_of(pid_t pid, const std::string& what) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  std::vector<unsigned> ids;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(what)) continue;
    std::istringstream numbers(line.substr(what.size()));
    for (unsigned id = 0; numbers >> id;) ids.push_back(id);
  }
  return ids;
}

int run(const std::vector<std::string>& command) {
  ChildProcess process(command, ChildProcess::Capture::kOutputAndErrors);
  return process.wait(seconds(20)).value_or(-1);
}

int run_as(unsigned user, unsigned group, std::vector<std::string> command) {
  command.insert(command.begin(),
                 {"setpriv", "--reuid=" + std::to_string(user), "--regid=" + std::to_string(group), "--clear-groups"});
  return run(command);
}
int run_as_nobody(const std::vector<std::string>& command) { return run_as(kNobody, kNobody, command); }

std::vector<std::string> limit(pid_t pid, const std::string& what) {
  return {"prlimit", "--pid=" + std::to_string(pid), what};
}

/// A program that is new to the daemon, whose functions it has to name.
class NewProgram {
 public:
  NewProgram() {
    std::string pattern = (std::filesystem::temp_directory_path() / "flamed-attack-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    folder_ = pattern;
    std::filesystem::copy_file(victim("known_chain"), folder_ / "program");
  }
  ~NewProgram() { std::filesystem::remove_all(folder_); }
  NewProgram(const NewProgram&) = delete;
  NewProgram& operator=(const NewProgram&) = delete;

  [[nodiscard]] bool gets_names(const RunningDaemon& daemon) const {
    const ChildProcess program({(folder_ / "program").string()});
    return RunningDaemon::eventually(seconds(10 * patience()), [&] {
      return with(daemon.folded(profile_of(program.pid())), ";main;outer;middle;work_") > 0;
    });
  }

 private:
  std::filesystem::path folder_;
};

TEST_CASE("the worker has a uid of its own, and no other user's process can end its work") {
  RunningDaemon daemon;
  const pid_t worker = worker_of(daemon);
  REQUIRE(worker > 0);
  const std::vector<unsigned> users = ids_of(worker, "Uid:");
  REQUIRE(users.size() == 4);
  for (const unsigned user : users) {
    CHECK(user == users.front());
    CHECK(user != 0);
    CHECK(user != kNobody);
  }
  const passwd* account = ::getpwuid(users.front());  // NOLINT(concurrency-mt-unsafe): the test's only thread
  CHECK((account == nullptr || std::string(account->pw_name) == "flamed"));

  CHECK(run_as_nobody(limit(worker, "--nproc=0:0")) != 0);
  CHECK(NewProgram().gets_names(daemon));
  CHECK(run_as_nobody({"sh", "-c", "kill -TERM " + std::to_string(worker)}) != 0);
  CHECK(worker_of(daemon) == worker);
}

TEST_CASE("a failed worker is replaced, and /healthz is right about it") {
  RunningDaemon daemon;
  // Killed by the worker's own user.
  for (const char* what : {"--nproc=0:0", "--nofile=0:0", "--as=1000000:1000000"}) {
    CAPTURE(what);
    const pid_t worker = worker_of(daemon);
    REQUIRE(worker > 0);
    REQUIRE(run_as(ids_of(worker, "Uid:").front(), ids_of(worker, "Gid:").front(), limit(worker, what)) == 0);
    CHECK(NewProgram().gets_names(daemon));
    const pid_t successor = worker_of(daemon);
    CHECK(successor > 0);
    CHECK(successor != worker);
    CHECK(daemon.get("/healthz").body.find("files are not read") == std::string::npos);
  }
  CHECK(daemon.metrics()["flamed_worker_restarts_total"] <= 6);
}

}  // namespace
}  // namespace flamed::test
