// SPDX-License-Identifier: Apache-2.0
//
// A disk that refuses history, and then takes it again: the real daemon on a small file system of its own.
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/handle.h"
#include "test/catch.h"
#include "test/kernel/folded_stacks.h"
#include "test/support/child_process.h"
#include "test/support/running_daemon.h"
#include "test/unit/symbolizer_processes/temporary_directory.h"

namespace flamed::test {
namespace {

using std::chrono::seconds;

/// Between two attempts to write is half a minute, or more on a busy machine.
constexpr seconds kAttempt{100};

bool runs_well(const std::vector<std::string>& command) {
  ChildProcess process(command, ChildProcess::Capture::kOutputAndErrors);
  while (process.read_line(seconds(30))) continue;
  return process.wait(seconds(5)) == 0;
}

nlohmann::json history_of(const RunningDaemon& daemon) {
  const nlohmann::json health = daemon.get_json("/healthz");
  for (const nlohmann::json& one : health["components"]) {
    if (one["name"] == "history") return one;
  }
  return {};
}

/// Waits for a complaint with these words, which says since when.
bool complains(const RunningDaemon& daemon, std::string_view words) {
  return RunningDaemon::eventually(
      kAttempt,
      [&] {
        const nlohmann::json history = history_of(daemon);
        const std::string detail = history["detail"];
        return history["ok"] == false && detail.find(words) != std::string::npos &&
               detail.find(" since 2") != std::string::npos;
      },
      seconds(1));
}

bool writes_again(const RunningDaemon& daemon) {
  const double before = daemon.metrics()["flamed_history_minutes_total"];
  return RunningDaemon::eventually(
      seconds(100),
      [&] { return history_of(daemon)["ok"] == true && daemon.metrics()["flamed_history_minutes_total"] > before; },
      seconds(1));
}

/// Samples are taken, and questions about memory answered at once.
void check_rest(const RunningDaemon& daemon) {
  const double before = daemon.metrics()["flamed_samples_taken_total"];
  const auto asked = std::chrono::steady_clock::now();
  CHECK(daemon.get("/profile?format=folded&from=now-10s").status == 200);
  CHECK(std::chrono::steady_clock::now() - asked < seconds(10));
  CHECK(RunningDaemon::eventually(seconds(20),
                                  [&] { return daemon.metrics()["flamed_samples_taken_total"] > before + 50; }));
  CHECK(daemon.get("/healthz").status == 200);
  CHECK(daemon.metrics()["flamed_samples_lost_total"] == 0);
}

/// Nothing is written to the file system while it lives.
class Frozen {
 public:
  explicit Frozen(const std::string& folder) : folder_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    REQUIRE(folder_);
    REQUIRE(::ioctl(folder_.get(), FIFREEZE, 0) == 0);
  }
  ~Frozen() { ::ioctl(folder_.get(), FITHAW, 0); }
  Frozen(const Frozen&) = delete;
  Frozen& operator=(const Frozen&) = delete;

 private:
  const Fd folder_;
};

}  // namespace

TEST_CASE("a read-only, full or frozen disk costs history at most, /healthz says since when, and writing resumes") {
  const TemporaryDirectory folder;
  const std::string image = folder.path("image");
  const std::string mounted = folder.path("mounted");
  std::filesystem::create_directory(mounted);
  std::ofstream(image).flush();
  std::filesystem::resize_file(image, 32U << 20);
  if (!runs_well({"mkfs.ext4", "-q", "-m", "0", image})) {
    WARN("SKIP: mkfs.ext4 is not there");
    return;
  }
  // In a namespace of the daemon's own, with which it goes.
  const std::vector<std::string> launcher{
      "unshare",
      "--mount",
      "--propagation",
      "private",
      "sh",
      "-ec",
      "mount -o loop " + image + " " + mounted + "; mount -o remount,ro " + mounted + "; exec \"$@\"",
      "sh"};
  if (!runs_well([&] {
        std::vector<std::string> command = launcher;
        command.emplace_back("true");
        return command;
      }())) {
    WARN("SKIP: a file can't be mounted here");
    return;
  }
  const ChildProcess busy({victim("known_chain")});
  RunningDaemon daemon({"--history", mounted + "/history"}, launcher);
  const std::string pid = std::to_string(daemon.process().pid());
  const std::string inside = "/proc/" + pid + "/root" + mounted;

  CHECK(complains(daemon, "Read-only file system"));
  check_rest(daemon);
  REQUIRE(runs_well({"nsenter", "--target", pid, "--mount", "mount", "-o", "remount,rw", mounted}));
  CHECK(writes_again(daemon));

  {
    std::ofstream filler(inside + "/filler");
    for (int block = 0; block < 32 && filler; ++block) filler << std::string(1U << 20, 'x') << std::flush;
  }
  CHECK(complains(daemon, "of the file system"));
  check_rest(daemon);
  std::filesystem::remove(inside + "/filler");
  CHECK(writes_again(daemon));

  const auto frozen_at = std::chrono::steady_clock::now();
  {
    const Frozen frozen(inside);
    CHECK(complains(daemon, "the disk has not answered"));
    check_rest(daemon);
    std::this_thread::sleep_until(frozen_at + seconds(60));
  }
  CHECK(writes_again(daemon));
  CHECK(daemon.metrics()["flamed_history_missed_minutes_total"] == 0);
  CHECK(daemon.metrics()["flamed_history_minutes_total"] >= 3);
  CHECK(runs_well({"nsenter", "--target", pid, "--mount", std::getenv("FLAMED_BINARY"), "--check-history", "--history",
                   mounted + "/history"}));
  CHECK(daemon.end().exit_code == 0);
}

}  // namespace flamed::test
