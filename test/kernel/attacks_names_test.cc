// SPDX-License-Identifier: Apache-2.0
//
// Attacks by the names of files: a user who wants to know by what name others have a file, or to choose it for them.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "test/catch.h"
#include "test/kernel/folded_stacks.h"
#include "test/support/child_process.h"
#include "test/support/running_daemon.h"

namespace flamed::test {
namespace {

using std::chrono::seconds;

constexpr unsigned kAlice = 64101;
constexpr unsigned kBob = 64102;

/// A program under its own name, and under another one in a mount namespace.
class TwoNames {
 public:
  TwoNames() {
    std::string pattern = (std::filesystem::temp_directory_path() / "flamed-names-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    folder_ = pattern;
    REQUIRE(::chmod(pattern.c_str(), 0755) == 0);
    std::filesystem::copy_file(victim("known_chain"), folder_ / "open-name");
    REQUIRE(::chmod((folder_ / "open-name").c_str(), 0755) == 0);
    std::ofstream(folder_ / "secret-name") << "";
  }
  ~TwoNames() { std::filesystem::remove_all(folder_); }
  TwoNames(const TwoNames&) = delete;
  TwoNames& operator=(const TwoNames&) = delete;

  [[nodiscard]] std::vector<std::string> openly(unsigned user) const {
    std::vector<std::string> command = as(user);
    command.push_back((folder_ / "open-name").string());
    return command;
  }
  [[nodiscard]] std::vector<std::string> secretly(unsigned user) const {
    std::vector<std::string> command{"unshare",
                                     "--mount",
                                     "--propagation",
                                     "private",
                                     "sh",
                                     "-ec",
                                     "mount --bind \"$0/open-name\" \"$0/secret-name\"; exec \"$@\"",
                                     folder_.string()};
    for (const std::string& word : as(user)) command.push_back(word);
    command.push_back((folder_ / "secret-name").string());
    return command;
  }
  static std::vector<std::string> as(unsigned user) {
    const std::string id = std::to_string(user);
    return {"setpriv", "--reuid=" + id, "--regid=" + id, "--clear-groups"};
  }

 private:
  std::filesystem::path folder_;
};

std::string asked_by(unsigned user, const RunningDaemon& daemon, const std::string& target) {
  std::vector<std::string> command = TwoNames::as(user);
  command.insert(command.end(), {"curl", "--silent", "--max-time", "20",
                                 "http://127.0.0.1:" + std::to_string(daemon.port()) + target});
  ChildProcess client(command);
  std::string text;
  while (const auto line = client.read_line(seconds(25))) text += *line + "\n";
  return text;
}

TEST_CASE("a file has for each user the name by which that user's process has it, whoever had it first") {
  const RunningDaemon daemon;
  for (const bool secret_first : {true, false}) {
    CAPTURE(secret_first);
    const TwoNames program;
    const ChildProcess first(secret_first ? program.secretly(kAlice) : program.openly(kBob));
    REQUIRE(has_samples(daemon, first.pid(), 20));
    const ChildProcess second(secret_first ? program.openly(kBob) : program.secretly(kAlice));
    REQUIRE(has_samples(daemon, second.pid(), 20));
    const pid_t alices = secret_first ? first.pid() : second.pid();
    const pid_t bobs = secret_first ? second.pid() : first.pid();
    for (const std::string format : {"flamegraph", "speedscope", "top", "perf-script"}) {
      CAPTURE(format);
      const std::string told = "&format=" + format;
      const std::string bob = asked_by(kBob, daemon, "/profile?pid=" + std::to_string(bobs) + told);
      CHECK(bob.find("work_one") != std::string::npos);
      CHECK(bob.find("secret-name") == std::string::npos);
      const std::string alice = asked_by(kAlice, daemon, "/profile?pid=" + std::to_string(alices) + told);
      CHECK(alice.find("work_one") != std::string::npos);
      CHECK(alice.find("open-name") == std::string::npos);
    }
  }
}

}  // namespace
}  // namespace flamed::test
