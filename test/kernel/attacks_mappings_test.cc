// SPDX-License-Identifier: Apache-2.0
//
// Attacks by what is mapped: another file in the place of the one that was sampled, and what file systems that show
// stat(2) another device than they show in mappings need in spite of it.
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "base/file.h"
#include "symbolizer/module_opener.h"
#include "symbolizer/proc_text.h"
#include "test/catch.h"
#include "test/kernel/attack.h"
#include "test/kernel/folded_stacks.h"
#include "test/support/child_process.h"
#include "test/support/running_daemon.h"

namespace flamed::test {
namespace {

using std::chrono::seconds;

std::string library(const char* name) {
  return std::string(std::getenv("FLAMED_VICTIMS")) + "/libspin_" + name + ".so";
}

/// Where a function stands in its file, in hex. Those files have the same offsets as addresses.
std::string offset_of(const std::string& file, const std::string& function) {
  ChildProcess nm({"nm", file});
  while (const auto line = nm.read_line(seconds(10))) {
    if (line->ends_with(" T " + function)) return line->substr(0, line->find(' '));
  }
  return "";
}

TEST_CASE("a file that was bound over another one and mapped in its place does not name the other one's samples") {
  const std::string offset = offset_of(library("one"), "spin_one");
  REQUIRE_FALSE(offset.empty());
  REQUIRE(offset == offset_of(library("two"), "spin_two"));
  RunningDaemon daemon;
  const int tries = attack_tries(6);
  for (int i = 0; i < tries; ++i) {
    CAPTURE(i);
    const OpenFolder folder;
    std::filesystem::create_directory(folder.path("disk"));
    std::ofstream(folder.path("disk.wait")) << "";
    ChildProcess program({victim("swapped_files"), folder.path("disk"), library("one"), library("two"), offset, "400"});
    REQUIRE(program.read_line(seconds(20)) == "ready");
    // The daemon comes to look at the mapping when it is another one's, by luck or for the work it has.
    daemon.process().signal(SIGSTOP);
    std::filesystem::remove(folder.path("disk.wait"));
    const auto said = program.read_line(seconds(20) * patience());
    daemon.process().signal(SIGCONT);
    REQUIRE(said == "swapped");
    FoldedStacks stacks;
    REQUIRE(RunningDaemon::eventually(seconds(10) * patience(), [&] {
      stacks = daemon.folded(profile_of(program.pid()));
      return total(stacks) >= 60;
    }));
    const std::uint64_t all = total(stacks);
    INFO(all << " samples, " << with(stacks, ";spin_one") << " first, " << with(stacks, ";spin_two") << " second");
    // Half of all are the second's own, if it has a name at all.
    CHECK(with(stacks, ";spin_two") <= all * 65 / 100);
  }
}

/// The file system `type` mounted in the mount namespace of a shell, and a program that runs from there.
class FromFileSystem {
 public:
  /// `mount`: shell commands that mount it on $0/disk.
  explicit FromFileSystem(const std::string& mount)
      : shell_({"unshare", "--mount", "--propagation", "private", "bash", "-ec",
                "mkdir \"$0/disk\"\n" + mount + "\nexec \"$0/disk/tool\"\n", folder_.path(), victim("known_chain")},
               ChildProcess::Capture::kOutputAndErrors) {}
  [[nodiscard]] pid_t pid() const { return shell_.pid(); }
  /// What failed; empty while the program runs.
  std::string why_not() {
    std::string said;
    for (int i = 0; i < 40; ++i) {
      if (std::filesystem::path(target()).filename() == "tool") return "";
      if (const auto line = shell_.read_line(std::chrono::milliseconds(250))) said += *line + " ";
    }
    return said.empty() ? "it did not begin" : said;
  }
  /// The line of /proc/PID/maps with the program's code.
  [[nodiscard]] symbolizer::OpenRequest request() const {
    const std::string proc = "/proc/" + std::to_string(pid());
    const std::string maps = read_file(proc + "/maps", 1 << 20).value();
    for (const symbolizer::MapsLine& line : symbolizer::parse_executable_maps(maps)) {
      if (!line.path.ends_with("/tool")) continue;
      return {ModuleId{16}, line.file, std::string(line.path), pid(), 1, line.start, line.end};
    }
    return {};
  }

 private:
  [[nodiscard]] std::string target() const {
    std::error_code gone;
    return std::filesystem::read_symlink("/proc/" + std::to_string(shell_.pid()) + "/exe", gone).string();
  }
  OpenFolder folder_;
  ChildProcess shell_;
};

void check_is_named(FromFileSystem& program) {
  RunningDaemon daemon;
  REQUIRE(has_samples(daemon, program.pid(), 100));
  const FoldedStacks stacks = settled_profile(daemon, program.pid());
  INFO((stacks.empty() ? "" : stacks.begin()->first));
  CHECK(with(stacks, ";main;outer;middle;work_") >= total(stacks) * 9 / 10);
}

TEST_CASE("a program of a subvolume of btrfs is opened by its mapping, and one of another device is not") {
  FromFileSystem program(
      "truncate -s 128M \"$0/image\"\n"
      "mkfs.btrfs -q \"$0/image\"\n"
      "mount -o loop \"$0/image\" \"$0/disk\"\n"
      "btrfs subvolume create \"$0/disk/part\" >/dev/null\n"
      "cp \"$1\" \"$0/disk/part/tool\"\n"
      "mount --bind \"$0/disk/part\" \"$0/disk\"\n");
  if (const std::string why = program.why_not(); !why.empty()) {
    WARN("SKIP btrfs: " << why);
    return;
  }
  symbolizer::OpenRequest request = program.request();
  struct stat status {};
  REQUIRE(::stat(("/proc/" + std::to_string(program.pid()) + "/exe").c_str(), &status) == 0);
  REQUIRE(minor(status.st_dev) != request.file.device_minor);
  CHECK(symbolizer::open_module(request, "/proc").ok());
  ++request.file.device_minor;
  CHECK_FALSE(symbolizer::open_module(request, "/proc").ok());
  --request.file.device_minor;
  ++request.file.inode;
  CHECK_FALSE(symbolizer::open_module(request, "/proc").ok());
  check_is_named(program);
}

TEST_CASE("a program of an overlay is opened by its mapping") {
  FromFileSystem program(
      "mount -t tmpfs tmpfs \"$0/disk\"\n"
      "mkdir \"$0/disk\"/{lower,upper,work,merged}\n"
      "cp \"$1\" \"$0/disk/lower/tool\"\n"
      "mount -t overlay overlay -o \"lowerdir=$0/disk/lower,upperdir=$0/disk/upper,workdir=$0/disk/work\" "
      "\"$0/disk/merged\"\n"
      "mount --bind \"$0/disk/merged\" \"$0/disk\"\n");
  if (const std::string why = program.why_not(); !why.empty()) {
    WARN("SKIP overlay: " << why);
    return;
  }
  CHECK(symbolizer::open_module(program.request(), "/proc").ok());
  check_is_named(program);
}

}  // namespace
}  // namespace flamed::test
