// SPDX-License-Identifier: Apache-2.0
//
// Attacks by separate debug files: a user tries to choose the names of others' programs, or to make flamed open files
// that the user may not open.
#include <poll.h>
#include <sys/inotify.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/handle.h"
#include "test/catch.h"
#include "test/kernel/attacks/attack.h"
#include "test/kernel/folded_stacks.h"
#include "test/support/child_process.h"
#include "test/support/running_daemon.h"

namespace flamed::test {
namespace {

using std::chrono::seconds;

constexpr unsigned kAlice = 64101;
constexpr unsigned kMallory = 64107;

bool has_commands(const std::vector<std::string>& names) {
  return std::all_of(names.begin(), names.end(), [](const std::string& name) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the test's only thread
    const bool there = std::system(("command -v " + name + " >/dev/null").c_str()) == 0;
    if (!there) WARN("SKIP: no " << name << " here");
    return there;
  });
}

void shell(const std::string& script, std::vector<std::string> arguments) {
  std::vector<std::string> command{"sh", "-ec", script, "sh"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  ChildProcess process(command);
  if (process.wait(seconds(60)) != 0) throw std::runtime_error("failed: " + script);
}

/// Creates /usr/lib/debug if it is missing, and removes it again.
class DebugFolder {
 public:
  DebugFolder() : made_(std::filesystem::create_directories(kPath)) {}
  ~DebugFolder() {
    if (made_) std::filesystem::remove(kPath);
  }
  DebugFolder(const DebugFolder&) = delete;
  DebugFolder& operator=(const DebugFolder&) = delete;

 private:
  static constexpr const char* kPath = "/usr/lib/debug";
  const bool made_;
};

std::uint64_t calls_of(const RunningDaemon& daemon, const ChildProcess& program, const std::string& function) {
  return with(daemon.folded(profile_of(program.pid())), ";main;" + function + ";");
}

/// Is the function shown after a while? The daemon looks for debug files in the first query with samples.
bool shows(const RunningDaemon& daemon, const ChildProcess& program, const std::string& function) {
  REQUIRE(has_samples(daemon, program.pid(), 30));
  return RunningDaemon::eventually(seconds(3), [&] { return calls_of(daemon, program, function) > 0; });
}

/// Makes $2/program, a stripped $1, and $2/debug, its debug file. $2/where has the place of that below /usr/lib/debug.
/// $2/forged has another name for one of the functions.
constexpr const char* kSplit =
    "objcopy --only-keep-debug \"$1\" \"$2/debug\"; strip -o \"$2/program\" \"$1\";"
    "id=$(readelf -n \"$2/program\" | sed -n 's/.*Build ID: //p'); test -n \"$id\";"
    "echo \".build-id/$(echo $id | cut -c1-2)/$(echo $id | cut -c3-).debug\" > \"$2/where\";"
    "sed 's/\\x00outer\\x00/\\x00owned\\x00/g' \"$2/debug\" > \"$2/forged\"; ! cmp -s \"$2/debug\" \"$2/forged\"";

constexpr const char* kPlace =
    "where=/usr/lib/debug/$(cat \"$0/where\"); mkdir -p \"${where%/*}\"; cp \"$0/forged\" \"$where\"; exec ";

/// With a file system of the user over /usr/lib/debug that has the forged debug file.
std::vector<std::string> with_forged_file(unsigned user, const OpenFolder& folder) {
  return as_user(user,
                 {"unshare", "--user", "--map-root-user", "--mount", "--propagation", "private", "sh", "-ec",
                  std::string("mount -t tmpfs tmpfs /usr/lib/debug;") + kPlace + "\"$0/program\"", folder.path("")});
}

TEST_CASE("a user's debug file names only the user's own programs") {
  if (!has_commands({"objcopy", "strip", "readelf", "unshare", "setpriv"})) return;
  const DebugFolder debug;
  const OpenFolder folder;
  shell(kSplit, {victim("names_c"), folder.path("")});
  RunningDaemon daemon;
  {
    const ChildProcess mallorys(with_forged_file(kMallory, folder));
    CHECK_FALSE(shows(daemon, mallorys, "owned"));
    const ChildProcess roots({folder.path("program")});
    CHECK_FALSE(shows(daemon, roots, "owned"));
  }
  const ChildProcess later({folder.path("program")});
  CHECK_FALSE(shows(daemon, later, "owned"));
  CHECK(calls_of(daemon, later, "outer") == 0);

  // The user may name programs of their own.
  const OpenFolder own;
  shell(std::string(kSplit) + "; chown -R \"$3\" \"$2\"", {victim("names_c"), own.path(""), std::to_string(kMallory)});
  const ChildProcess named(with_forged_file(kMallory, own));
  CHECK(shows(daemon, named, "owned"));
}

TEST_CASE("a debug file on a medium that a user mounted does not count as root's") {
  if (!has_commands({"objcopy", "strip", "readelf", "unshare", "setpriv"})) return;
  const DebugFolder debug;
  const OpenFolder folder;
  shell(kSplit, {victim("names_c"), folder.path("")});
  // Like a user's USB stick or FUSE: the kernel trusts the owners that the medium claims, also root.
  const std::string script =
      std::string("mount -t tmpfs -o nosuid,nodev,mode=755 tmpfs /usr/lib/debug;") + kPlace + "\"$@\"";
  std::vector<std::string> command{"unshare", "--mount", "--propagation", "private",
                                   "sh",      "-ec",     script,          folder.path("")};
  for (const std::string& word : as_user(kMallory, {folder.path("program")})) command.push_back(word);
  RunningDaemon daemon;
  const ChildProcess mallorys(command);
  CHECK_FALSE(shows(daemon, mallorys, "owned"));
  const ChildProcess roots({folder.path("program")});
  CHECK_FALSE(shows(daemon, roots, "owned"));
}

TEST_CASE("a user's container is named by its own debug files") {
  if (!has_commands({"objcopy", "strip", "readelf", "unshare", "setpriv", "chroot"})) return;
  const OpenFolder folder;
  shell(kSplit, {victim("names_static_pie"), folder.path("")});
  RunningDaemon daemon;
  const std::string script =
      "mount -t tmpfs tmpfs /mnt; where=/mnt/usr/lib/debug/$(cat \"$0/where\"); mkdir -p \"${where%/*}\";"
      "cp \"$0/debug\" \"$where\"; cp \"$0/program\" /mnt/program; exec chroot /mnt /program";
  const ChildProcess program(as_user(kAlice, {"unshare", "--user", "--map-root-user", "--mount", "--propagation",
                                              "private", "sh", "-ec", script, folder.path("")}));
  CHECK(shows(daemon, program, "outer"));
}

/// Counts opens and reads of some files by all processes.
class Watch {
 public:
  void add(const std::string& path) {
    REQUIRE(::inotify_add_watch(inotify_.get(), path.c_str(), IN_OPEN | IN_ACCESS) >= 0);
  }
  [[nodiscard]] bool saw_something() const {
    pollfd events{inotify_.get(), POLLIN, 0};
    return ::poll(&events, 1, 0) > 0;
  }

 private:
  Fd inotify_{::inotify_init1(IN_CLOEXEC)};
};

TEST_CASE("a debug link does not make flamed open files that the program's owner may not open") {
  if (!has_commands({"objcopy", "strip", "setpriv"})) return;
  const OpenFolder folder;
  const std::string target =
      GENERATE("secret", "closed/open", "/sys/kernel/uevent_seqnum", "/proc/sys/kernel/hostname");
  CAPTURE(target);
  shell(
      "objcopy --only-keep-debug \"$1\" \"$2/program.debug\"; strip --remove-section=.note.gnu.build-id -o "
      "\"$2/program\" "
      "\"$1\"; objcopy --add-gnu-debuglink=\"$2/program.debug\" \"$2/program\";"
      "mkdir -m 700 \"$2/closed\" \"$2/.debug\"; cp \"$2/program.debug\" \"$2/secret\"; chmod 600 \"$2/secret\";"
      "cp \"$2/program.debug\" \"$2/closed/open\"; mv \"$2/program.debug\" \"$2/.debug/program.debug\";"
      "chmod 600 \"$2/.debug/program.debug\"; ln -s \"$3\" \"$2/program.debug\";"
      "chown -h -R \"$4\" \"$2/program\" \"$2/program.debug\" \"$2/.debug\"",
      {victim("names_c"), folder.path(""), target, std::to_string(kAlice)});
  Watch watch;
  watch.add(target.starts_with("/") ? target : folder.path(target));
  RunningDaemon daemon;
  const ChildProcess program(as_user(kAlice, {folder.path("program")}));
  // The next place has a file that only she may read.
  CHECK(shows(daemon, program, "outer"));
  CHECK_FALSE(watch.saw_something());
}

TEST_CASE("a user's mount does not make flamed open files that only root may read") {
  if (!has_commands({"objcopy", "strip", "readelf", "unshare", "setpriv"})) return;
  const DebugFolder debug;
  const OpenFolder folder;
  shell(std::string(kSplit) + "; cp \"$2/debug\" \"$2/secret\"; chmod 600 \"$2/secret\"",
        {victim("names_c"), folder.path("")});
  const std::string script =
      "mount -t tmpfs tmpfs /usr/lib/debug; where=/usr/lib/debug/$(cat \"$0/where\"); mkdir -p \"${where%/*}\";"
      "touch \"$where\"; mount --bind \"$0/secret\" \"$where\"; exec \"$0/program\"";
  Watch watch;
  watch.add(folder.path("secret"));
  RunningDaemon daemon;
  // Root may read it and the program is root's, but the user who made the path to it may not.
  const ChildProcess mallorys(as_user(kMallory, {"unshare", "--user", "--map-root-user", "--mount", "--propagation",
                                                 "private", "sh", "-ec", script, folder.path("")}));
  CHECK_FALSE(shows(daemon, mallorys, "outer"));
  CHECK_FALSE(watch.saw_something());
}

}  // namespace
}  // namespace flamed::test
