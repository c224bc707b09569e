// SPDX-License-Identifier: Apache-2.0
//
// Attacks by file names: a user tries to learn the name that others have for a file, or to choose it for them.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "test/catch.h"
#include "test/kernel/attacks/attack.h"
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
    std::filesystem::copy_file(victim("known_chain"), folder_.path("open-name"));
    REQUIRE(::chmod(folder_.path("open-name").c_str(), 0755) == 0);
    std::ofstream(folder_.path("secret-name")) << "";
  }

  [[nodiscard]] std::vector<std::string> openly(unsigned user) const {
    return as_user(user, {folder_.path("open-name")});
  }
  [[nodiscard]] std::vector<std::string> secretly(unsigned user) const {
    std::vector<std::string> command{"unshare",
                                     "--mount",
                                     "--propagation",
                                     "private",
                                     "sh",
                                     "-ec",
                                     "mount --bind \"$0/open-name\" \"$0/secret-name\"; exec \"$@\"",
                                     folder_.path()};
    for (const std::string& word : as_user(user, {folder_.path("secret-name")})) command.push_back(word);
    return command;
  }

 private:
  OpenFolder folder_;
};

std::string asked_by(unsigned user, const RunningDaemon& daemon, const std::string& target) {
  ChildProcess client(as_user(
      user, {"curl", "--silent", "--max-time", "20", "http://127.0.0.1:" + std::to_string(daemon.port()) + target}));
  std::string text;
  while (const auto line = client.read_line(seconds(25))) text += *line + "\n";
  return text;
}

TEST_CASE("each user sees a file by the name in their own processes, whoever mapped it first") {
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
