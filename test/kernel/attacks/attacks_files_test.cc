// SPDX-License-Identifier: Apache-2.0
//
// Attacks by files, intended or not: a file system that must be unmounted, blocks that must be freed, another file in a
// closed one's place, and a user with so many mapped files that others' have no room.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
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

constexpr unsigned kMallory = 64301;
/// The time from a program's end until its file is closed: the report of the end, the wait for other processes that map
/// it, and the naming.
constexpr seconds kClosedWithin{25};
/// The end of a whole stack of victim_names_c.
constexpr const char* kNamesWithLines = "main names.c:20;outer names.c:15;middle names.c:10;leaf names.c:6";

/// The files that the daemon and its helpers hold open, by their links in /proc.
std::multiset<std::string> open_files_of(pid_t daemon) {
  std::multiset<std::string> links;
  std::vector<pid_t> pids{daemon};
  for (std::size_t i = 0; i < pids.size(); ++i) {
    const std::string proc = "/proc/" + std::to_string(pids[i]);
    std::ifstream children(proc + "/task/" + std::to_string(pids[i]) + "/children");
    for (pid_t child = 0; children >> child;) pids.push_back(child);
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(proc + "/fd", error)) {
      std::error_code gone;
      const std::filesystem::path link = std::filesystem::read_symlink(entry.path(), gone);
      if (!gone) links.insert(link.string());
    }
  }
  return links;
}

bool holds(pid_t daemon, const std::string& path) {
  for (const std::string& link : open_files_of(daemon)) {
    if (link.starts_with(path)) return true;
  }
  return false;
}

std::string with_lines(pid_t pid) { return profile_of(pid) + "&lines=1"; }

TEST_CASE("a file system from which a program ran can be unmounted, and the program's samples keep names and lines") {
  RunningDaemon daemon;
  const OpenFolder folder;
  std::filesystem::create_directory(folder.path("disk"));
  // The shell has its own mount namespace. It prints the program's pid, ends it on request, and unmounts.
  ChildProcess shell({"unshare", "--mount", "--propagation", "private", "bash", "-ec",
                      "mount -t tmpfs tmpfs \"$0/disk\"\n"
                      "cp \"$1\" \"$0/disk/tool\"\n"
                      "\"$0/disk/tool\" >/dev/null & pid=$!\n"
                      "echo $pid\n"
                      "until [[ -e $0/end ]]; do sleep 0.05; done\n"
                      "kill $pid; wait $pid || true\n"
                      "for ((i = 0; i < 600; ++i)); do\n"
                      "  if umount \"$0/disk\" 2>/dev/null; then echo unmounted; exit; fi\n"
                      "  sleep 0.1\n"
                      "done\n"
                      "echo busy\n",
                      folder.path(), victim("names_c")});
  const auto pid = shell.read_line(seconds(20));
  REQUIRE(pid);
  const pid_t tool = std::stoi(*pid);
  REQUIRE(has_samples(daemon, tool, 30));
  std::ofstream(folder.path("end")) << "";
  const auto outcome = shell.read_line(kClosedWithin * patience());
  REQUIRE(outcome);
  CHECK(*outcome == "unmounted");
  const FoldedStacks stacks = daemon.folded(with_lines(tool));
  INFO((stacks.empty() ? "" : stacks.begin()->first));
  CHECK(with(stacks, kNamesWithLines) >= total(stacks) * 8 / 10);
}

TEST_CASE("a deleted program's blocks are freed once it has ended, and its samples keep their names") {
  RunningDaemon daemon;
  const pid_t pid = daemon.process().pid();
  const OpenFolder folder;
  const std::string file = folder.path("tool");
  std::filesystem::copy_file(victim("names_c"), file);
  ChildProcess tool({file});
  REQUIRE(has_samples(daemon, tool.pid(), 30));
  CHECK(holds(pid, file));
  std::filesystem::remove(file);
  tool.kill();
  CHECK(RunningDaemon::eventually(kClosedWithin * patience(), [&] { return !holds(pid, file); }));
  const FoldedStacks stacks = daemon.folded(with_lines(tool.pid()));
  CHECK(with(stacks, kNamesWithLines) >= total(stacks) * 8 / 10);
}

#if defined(__x86_64__)
TEST_CASE("a perf map is closed with its process, and its names stay") {
  RunningDaemon daemon;
  const pid_t pid = daemon.process().pid();
  ChildProcess tool({victim("jit")});
  const std::string file = "/tmp/perf-" + std::to_string(tool.pid()) + ".map";
  REQUIRE(has_samples(daemon, tool.pid(), 30));
  REQUIRE(RunningDaemon::eventually(seconds(20) * patience(), [&] { return holds(pid, file); }));
  tool.kill();
  std::filesystem::remove(file);
  CHECK(RunningDaemon::eventually(kClosedWithin * patience(), [&] { return !holds(pid, file); }));
  const FoldedStacks stacks = daemon.folded(profile_of(tool.pid()));
  CHECK(with(stacks, ";jit_work") >= total(stacks) * 8 / 10);
}
#endif

TEST_CASE("a program written over a closed one is another program, and the first one's samples keep their names") {
  RunningDaemon daemon;
  const pid_t pid = daemon.process().pid();
  const OpenFolder folder;
  const std::string file = folder.path("tool");
  std::filesystem::copy_file(victim("known_chain"), file);
  ChildProcess first({file});
  REQUIRE(has_samples(daemon, first.pid(), 30));
  first.kill();
  REQUIRE(RunningDaemon::eventually(kClosedWithin * patience(), [&] { return !holds(pid, file); }));
  // The same inode: not a new file under the old name.
  std::filesystem::copy_file(victim("names_c"), file, std::filesystem::copy_options::overwrite_existing);
  ChildProcess second({file});
  const std::string since = "&from=now-5s";
  CHECK(RunningDaemon::eventually(seconds(60) * patience(), [&] {
    const FoldedStacks late = daemon.folded(with_lines(second.pid()) + since);
    return total(late) >= 50 && with(late, kNamesWithLines) >= total(late) * 95 / 100;
  }));
  const FoldedStacks stacks = daemon.folded(profile_of(first.pid()));
  CHECK(with(stacks, ";main;outer;middle;work_") >= total(stacks) * 8 / 10);
}

/// Lowered for processes that are started meanwhile.
class OpenFileLimit {
 public:
  explicit OpenFileLimit(rlim_t files) {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const rlimit lower{files, files};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &lower) == 0);
  }
  ~OpenFileLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  OpenFileLimit(const OpenFileLimit&) = delete;
  OpenFileLimit& operator=(const OpenFileLimit&) = delete;

 private:
  rlimit before_{};
};

TEST_CASE("a user who has more files mapped than flamed may open costs no one else names") {
  constexpr int kFiles = 400;
  const OpenFolder folder;
  {
    std::ofstream list(folder.path("list"));
    for (int i = 0; i < kFiles; ++i) {
      const std::string file = folder.path("mapped_" + std::to_string(i));
      std::ofstream(file) << std::string(4096, '\0');
      list << file << "\n";
    }
  }
  std::optional<RunningDaemon> daemon;
  {
    const OpenFileLimit limit(512);  // half of them for modules
    daemon.emplace();
  }
  const std::string user = std::to_string(kMallory);
  ChildProcess mallory(
      {"setpriv", "--reuid=" + user, "--regid=" + user, "--clear-groups", victim("mapped_files"), folder.path("list")});
  REQUIRE(mallory.read_line(seconds(20)) == std::to_string(kFiles));
  REQUIRE(RunningDaemon::eventually(
      seconds(60) * patience(), [&] { return daemon->metrics()["flamed_module_files"] >= 250; },
      std::chrono::milliseconds(500)));

  // New files of root get their names while the attack goes on.
  for (int i = 0; i < 3; ++i) {
    const std::string file = folder.path("program_" + std::to_string(i));
    std::filesystem::copy_file(victim("names_c"), file);
    ChildProcess tool({file});
    REQUIRE(has_samples(*daemon, tool.pid(), 50));
    const FoldedStacks stacks = settled_profile(*daemon, tool.pid());
    INFO((stacks.empty() ? "" : stacks.begin()->first));
    CHECK(with(stacks, ";main;outer;middle;leaf") >= total(stacks) * 8 / 10);
  }
  const std::map<std::string, double> metrics = daemon->metrics();
  CHECK(metrics.at("flamed_module_files") <= 256);
  CHECK(metrics.at("flamed_module_files_crowded_out_total") > 0);
}

}  // namespace
}  // namespace flamed::test
