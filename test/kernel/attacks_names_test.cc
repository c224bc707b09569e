// SPDX-License-Identifier: Apache-2.0
//
// Attacks by the names of files: a user who wants to know by what name others have a file, or to choose it for them.
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/handle.h"
#include "test/catch.h"
#include "test/kernel/attack.h"
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

TEST_CASE("a debug file that a user has laid out in his own mount namespace names none of root's programs") {
  RunningDaemon daemon;
  const OpenFolder folder;
  std::filesystem::copy_file(victim("nameless"), folder.path("tool"));
  REQUIRE(::chmod(folder.path("tool").c_str(), 0755) == 0);
  std::filesystem::copy_file(victim("liar"), folder.path("lie"));
  REQUIRE(::chmod(folder.path("lie").c_str(), 0755) == 0);
  const bool has_folder = std::filesystem::exists("/usr/lib/debug");
  std::filesystem::create_directories("/usr/lib/debug");
  {
    const std::string script =
        "mount -t tmpfs tmpfs /usr/lib/debug\n"
        "mkdir -p /usr/lib/debug/.build-id/f1\n"
        "cp \"$0/lie\" /usr/lib/debug/.build-id/f1/a3ed00f1a3ed00f1a3ed00f1a3ed00f1a3ed00.debug\n"
        "exec \"$0/tool\"\n";
    ChildProcess mallory(
        as_user(kAlice, {"unshare", "--user", "--map-root-user", "--mount", "sh", "-ec", script, folder.path()}));
    REQUIRE(has_samples(daemon, mallory.pid(), 30));
    // Whoever asks first has the file looked for where this process would look.
    const FoldedStacks stacks = daemon.folded(profile_of(mallory.pid()));
    INFO((stacks.empty() ? "" : stacks.begin()->first));
    CHECK(with(stacks, "lie_") == 0);
    ChildProcess roots({folder.path("tool")});
    REQUIRE(has_samples(daemon, roots.pid(), 30));
    CHECK(with(daemon.folded(profile_of(roots.pid())), "lie_") == 0);
  }
  // The file is right where root has laid it out: it was no other reason that kept it from being taken.
  const std::string hosts = "/usr/lib/debug/.build-id/f1/a3ed00f1a3ed00f1a3ed00f1a3ed00f1a3ed00.debug";
  std::filesystem::create_directories(std::filesystem::path(hosts).parent_path());
  std::filesystem::copy_file(victim("liar"), hosts);
  RunningDaemon second;
  ChildProcess roots({folder.path("tool")});
  CHECK(has_samples(second, roots.pid(), 30));
  CHECK(with(second.folded(profile_of(roots.pid())), "lie_leaf") >= 20);
  std::filesystem::remove_all(has_folder ? std::filesystem::path(hosts).parent_path() : "/usr/lib/debug");
}

/// Tells whether a file was opened, or read, since this was made.
class Watched {
 public:
  explicit Watched(const std::string& file) : inotify_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
    REQUIRE(::inotify_add_watch(inotify_.get(), file.c_str(), IN_OPEN | IN_ACCESS) >= 0);
  }
  bool was_opened() {
    std::array<char, 4096> events{};
    return ::read(inotify_.get(), events.data(), events.size()) > 0;
  }

 private:
  Fd inotify_;
};

TEST_CASE("a program's debug link makes flamed open nothing that the program's owner could not read himself") {
  RunningDaemon daemon;
  const OpenFolder folder;
  std::filesystem::create_directory(folder.path("secret"));
  std::ofstream(folder.path("secret/file")) << "root's own";
  REQUIRE(::chmod(folder.path("secret").c_str(), 0700) == 0);
  std::filesystem::create_directory(folder.path("his"));
  std::filesystem::copy_file(victim("linked"), folder.path("his/tool"));
  std::filesystem::create_symlink(folder.path("secret/file"), folder.path("his/names.c"));
  for (const char* name : {"his", "his/tool", "his/names.c"}) {
    REQUIRE(::lchown(folder.path(name).c_str(), kAlice, kAlice) == 0);
  }
  REQUIRE(::chmod(folder.path("his/tool").c_str(), 0755) == 0);
  Watched secret(folder.path("secret/file"));
  {
    ChildProcess tool(as_user(kAlice, {folder.path("his/tool")}));
    REQUIRE(has_samples(daemon, tool.pid(), 30));
    static_cast<void>(daemon.folded(profile_of(tool.pid())));
    CHECK_FALSE(secret.was_opened());
  }
  // Root's own link to it is followed, for a program of root's: that the file was not opened had no other reason.
  std::filesystem::copy_file(victim("linked"), folder.path("tool"));
  std::filesystem::create_symlink(folder.path("secret/file"), folder.path("names.c"));
  ChildProcess roots({folder.path("tool")});
  REQUIRE(has_samples(daemon, roots.pid(), 30));
  static_cast<void>(daemon.folded(profile_of(roots.pid())));
  CHECK(secret.was_opened());
}

}  // namespace
}  // namespace flamed::test
