// SPDX-License-Identifier: Apache-2.0
//
// Attacks by mappings: a user tries to have samples of one file shown, and unwound, by another one, which the user
// mounts over its path and maps at its addresses.
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <memory>
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

/// A folder on a file system of its own, in a mount namespace of its own.
class Place {
 public:
  /// `script`: mounts something on $0/place, after `set -e`, with $0 a new folder. Prints "lacks: WHY" if it can't.
  explicit Place(const std::string& script) {
    std::filesystem::create_directory(folder_.path("place"));
    holder_ = std::make_unique<ChildProcess>(
        std::vector<std::string>{"unshare", "--mount", "--propagation", "private", "sh", "-ec",
                                 script + "; echo ready; exec sleep 100000", folder_.path()},
        ChildProcess::Capture::kOutputAndErrors);
    while (const auto line = holder_->read_line(seconds(60))) {
      said_ = *line;
      if (said_ == "ready" || said_.starts_with("lacks: ")) break;
    }
  }
  /// Empty if it is there.
  [[nodiscard]] std::string lacks() const { return said_.starts_with("lacks: ") ? said_.substr(7) : ""; }
  [[nodiscard]] bool is_ready() const { return said_ == "ready"; }
  [[nodiscard]] const std::string& said() const { return said_; }
  /// Runs the script there, with $0 as above and $1.
  [[nodiscard]] std::vector<std::string> inside(const std::string& script, const std::string& argument) const {
    const std::string namespace_of_it = "--mount=/proc/" + std::to_string(holder_->pid()) + "/ns/mnt";
    return {"nsenter", namespace_of_it, "unshare", "--mount",      "--propagation", "private",
            "sh",      "-ec",           script,    folder_.path(), argument};
  }

 private:
  OpenFolder folder_;  // destroyed after its holder
  std::unique_ptr<ChildProcess> holder_;
  std::string said_;
};

constexpr const char* kPlain = "mount -t tmpfs -o mode=755 tmpfs \"$0/place\"";
/// In a subvolume, whose device differs from the mount's and from the one in mappings.
constexpr const char* kBtrfs =
    "command -v mkfs.btrfs >/dev/null || { echo 'lacks: no mkfs.btrfs'; exit; };"
    "grep -qw btrfs /proc/filesystems || modprobe btrfs 2>/dev/null || { echo 'lacks: no btrfs in this kernel'; exit; "
    "};"
    "truncate -s 128M \"$0/image\"; mkfs.btrfs -q \"$0/image\" >/dev/null 2>&1; mkdir \"$0/whole\";"
    "mount -o loop \"$0/image\" \"$0/whole\" 2>/dev/null || { echo 'lacks: no loop device'; exit; };"
    "btrfs subvolume create \"$0/whole/part\" >/dev/null; mount --bind \"$0/whole/part\" \"$0/place\"";
/// Files are in the upper layer, but for two in the lower one, of which one is copied up.
constexpr const char* kOverlay =
    "grep -qw overlay /proc/filesystems || modprobe overlay 2>/dev/null || { echo 'lacks: no overlayfs'; exit; };"
    "mkdir \"$0/lower\" \"$0/layer\"; mount -t tmpfs tmpfs \"$0/lower\"; mount -t tmpfs tmpfs \"$0/layer\";"
    "mkdir \"$0/layer/upper\" \"$0/layer/work\"; for i in 1 2 3; do echo $i > \"$0/lower/$i\"; done;"
    "cp \"$FLAMED_VICTIMS/victim_known_chain\" \"$0/lower/below\"; cp \"$0/lower/below\" \"$0/lower/changed\";"
    "mount -t overlay -o \"lowerdir=$0/lower,upperdir=$0/layer/upper,workdir=$0/layer/work\" overlay \"$0/place\";"
    "touch \"$0/place/changed\"";

/// Reports the reason and returns false if there is no such place.
bool is_there(const Place& place, const std::string& name) {
  if (!place.lacks().empty()) {
    WARN("SKIP " << name << ": " << place.lacks() << " here");
    return false;
  }
  INFO(place.said());
  REQUIRE(place.is_ready());
  return true;
}

constexpr const char* kReplaced =
    "cp \"$FLAMED_VICTIMS/libchurn_one.so\" \"$0/place/first$1.so\";"
    "cp \"$FLAMED_VICTIMS/libchurn_two.so\" \"$0/place/second$1.so\";"
    "exec \"$FLAMED_VICTIMS/victim_replaced\" \"$0/place/first$1.so\" \"$0/place/second$1.so\"";
constexpr const char* kNamed =
    "test -e \"$0/place/$1\" || cp \"$FLAMED_VICTIMS/victim_known_chain\" \"$0/place/$1\"; exec \"$0/place/$1\"";

void check_nothing_takes_anothers_place(RunningDaemon& daemon, const Place& place) {
  const int tries = attack_tries(5);
  int in_place = 0;
  for (int i = 0; i < tries; ++i) {
    CAPTURE(i);
    // In half of the runs the daemon looks only after the end, otherwise at any time.
    const bool late = i % 2 == 0;
    if (late) {
      daemon.process().signal(SIGSTOP);
      REQUIRE(is_stopped(daemon.process().pid()));
    }
    ChildProcess program(place.inside(kReplaced, std::to_string(i)));
    const auto line = program.read_line(seconds(30 * patience()));
    REQUIRE(line.has_value());
    if (*line == "in its place") ++in_place;
    if (late) daemon.process().signal(SIGCONT);
    FoldedStacks stacks;
    REQUIRE(RunningDaemon::eventually(seconds(20 * patience()), [&] {
      stacks = daemon.folded(profile_of(program.pid()));
      return total(stacks) > 15 && count_if(stacks, [](const auto& stack) {
                                     return stack.find("has not been opened yet") != std::string::npos;
                                   }) == 0;
    }));
    for (const auto& [stack, count] : stacks) UNSCOPED_INFO(count << "  " << stack);
    CHECK(with(stacks, ";two_outer;") + with(stacks, ";two_middle;") + with(stacks, ";two_work;") == 0);
  }
  CHECK(in_place == tries);
}

TEST_CASE("a file that was mounted over another one's path and mapped at its addresses is never taken for it") {
  const Place place(kPlain);
  REQUIRE(is_there(place, "tmpfs"));
  RunningDaemon daemon;
  check_nothing_takes_anothers_place(daemon, place);
}

TEST_CASE("no file on btrfs is taken for another one in its place, and each has its names") {
  const Place place(kBtrfs);
  if (!is_there(place, "btrfs")) return;
  RunningDaemon daemon;
  check_nothing_takes_anothers_place(daemon, place);
  ChildProcess program(place.inside(kNamed, "program"));
  CHECK(RunningDaemon::eventually(seconds(20 * patience()), [&] {
    return with(daemon.folded(profile_of(program.pid())), ";main;outer;middle;work_") > 0;
  }));
}

TEST_CASE("no file on overlayfs is taken for another one in its place, and each has its names") {
  const Place place(kOverlay);
  if (!is_there(place, "overlayfs")) return;
  RunningDaemon daemon;
  check_nothing_takes_anothers_place(daemon, place);
  for (const std::string name : {"below", "changed", "above"}) {
    CAPTURE(name);
    ChildProcess program(place.inside(kNamed, name));
    CHECK(RunningDaemon::eventually(seconds(20 * patience()), [&] {
      return with(daemon.folded(profile_of(program.pid())), ";main;outer;middle;work_") > 0;
    }));
  }
}

}  // namespace
}  // namespace flamed::test
