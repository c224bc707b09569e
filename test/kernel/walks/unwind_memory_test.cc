// SPDX-License-Identifier: Apache-2.0
//
// Unwind rows of many files, within their memory budget.
#include <signal.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "test/catch.h"
#include "test/kernel/folded_stacks.h"
#include "test/support/child_process.h"
#include "test/support/running_daemon.h"

namespace flamed::test {
namespace {

using std::chrono::seconds;
namespace fs = std::filesystem;

/// Programs that map copies of a library whose code takes many rows, so that their need does not depend on the machine.
class Mappers {
 public:
  /// A process's mappings must fit into a block of 1,024.
  static constexpr int kFilesPerProcess = 50;
  static constexpr int kProcesses = 2;
  static constexpr int kFiles = kFilesPerProcess * kProcesses;

  Mappers() {
    std::string name = (fs::temp_directory_path() / "flamed-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
    folder_ = name;
    const fs::path library = fs::path(victim("")).parent_path() / "libmany_rows.so";
    for (int process = 0; process < kProcesses; ++process) {
      const std::string list = (folder_ / ("list" + std::to_string(process))).string();
      std::ofstream out(list);
      for (int i = 0; i < kFilesPerProcess; ++i) {
        const fs::path copy = folder_ / (std::to_string(process) + "-" + std::to_string(i) + ".so");
        fs::copy_file(library, copy);
        out << copy.string() << '\n';
      }
      out.close();
      processes_.push_back(std::make_unique<ChildProcess>(std::vector<std::string>{victim("mapped_files"), list}));
      if (!processes_.back()->read_line(seconds(60))) throw std::runtime_error("mapped_files says nothing");
    }
  }
  ~Mappers() {
    send(SIGCONT);
    fs::remove_all(folder_);
  }
  /// From now on none of the files is sampled any more.
  void stop() const { send(SIGSTOP); }
  Mappers(const Mappers&) = delete;
  Mappers& operator=(const Mappers&) = delete;

 private:
  void send(int signal) const {
    for (const auto& process : processes_) ::kill(process->pid(), signal);
  }

  fs::path folder_;
  std::vector<std::unique_ptr<ChildProcess>> processes_;
};

/// The metrics once this many modules have rows and no more are being built: nothing changed for 3 s.
std::map<std::string, double> settled_metrics(const RunningDaemon& daemon, double modules) {
  std::map<std::string, double> metrics;
  double rows = -1;
  auto since = std::chrono::steady_clock::now();
  static_cast<void>(RunningDaemon::eventually(seconds(400), [&] {
    metrics = daemon.metrics();
    const auto now = std::chrono::steady_clock::now();
    if (std::exchange(rows, metrics["flamed_unwind_rows"] + metrics["flamed_module_files"]) != rows) since = now;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    return metrics["flamed_unwind_modules"] > modules && now - since > seconds(3);
  }));
  return metrics;
}

constexpr double kMebibyte = 1048576;

struct Stacks {
  double whole = 0;
  double all = 0;
};

/// The process's next seconds.
Stacks stacks_of(const RunningDaemon& daemon, pid_t pid, int for_seconds) {
  const nlohmann::json quality =
      daemon.get_json("/profile?seconds=" + std::to_string(for_seconds) + "&pid=" + std::to_string(pid))["quality"];
  Stacks stacks{.whole = quality["whole"].get<double>(), .all = quality["whole"].get<double>()};
  for (const auto& [reason, count] : quality["truncated"].items()) stacks.all += count.get<double>();
  return stacks;
}

TEST_CASE("the rows of many files fit into the default budget; in an eighth of the need, those of sampled files do") {
  const Mappers mappers;
  double need = 0;
  {
    RunningDaemon daemon;
    auto metrics = settled_metrics(daemon, Mappers::kFiles);
    need = metrics["flamed_unwind_row_bytes"];
    CHECK(metrics["flamed_unwind_modules"] >= Mappers::kFiles);
    CHECK(metrics["flamed_unwind_refused_total"] == 0);
    CHECK(metrics["flamed_unwind_evictions_total"] == 0);
    CHECK(metrics["flamed_unwind_slab_bytes"] <= metrics["flamed_unwind_budget_bytes"]);
    const RunningDaemon::End end = daemon.end();
    INFO("lost" << end.losses);
    CHECK(end.lost == 0);
  }

  const double budget = std::max(1.0, std::ceil(need / 8 / kMebibyte));
  CAPTURE(need / kMebibyte, budget);
  RunningDaemon daemon({"--unwind-memory", std::to_string(static_cast<int>(budget)) + "MiB"});
  REQUIRE(RunningDaemon::eventually(seconds(200), [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    return daemon.metrics()["flamed_unwind_evictions_total"] > 0;
  }));
  mappers.stop();
  // The memory is full of rows of programs that don't run. Running programs get theirs, one after the other, as soon as
  // modules that were sampled within the last 5 s may make room.
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{victim("chains"), "recursion", "20"}, {victim("exceptions")}}) {
    INFO(command[0]);
    const ChildProcess program(command);
    CHECK(RunningDaemon::eventually(seconds(60), [&] {
      const Stacks stacks = stacks_of(daemon, program.pid(), 1);
      return stacks.all > 0 && stacks.whole == stacks.all;
    }));
    const Stacks stacks = stacks_of(daemon, program.pid(), 3);
    CAPTURE(stacks.whole, stacks.all);
    CHECK(stacks.all > 0);
    CHECK(stacks.whole >= 0.9 * stacks.all);
  }
  auto metrics = daemon.metrics();
  CHECK(metrics["flamed_unwind_slab_bytes"] <= budget * kMebibyte);
  CHECK(metrics["flamed_unwind_evictions_total"] > 0);
  const RunningDaemon::End end = daemon.end();
  INFO("lost" << end.losses);
  CHECK(end.lost == 0);
  CHECK(end.taken == end.whole + end.truncated);
}

}  // namespace
}  // namespace flamed::test
