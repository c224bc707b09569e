// SPDX-License-Identifier: Apache-2.0
//
// Unwind rows of all that is installed, within the memory that they may take.
#include <signal.h>

#include <algorithm>
#include <array>
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

struct ElfFiles {
  std::vector<std::string> paths;
  double bytes = 0;
};

/// Every ELF file of the machine's programs and libraries, once.
ElfFiles installed_elf_files() {
  ElfFiles files;
  for (const char* root : {"/usr/bin", "/usr/sbin", "/usr/lib", "/usr/libexec"}) {
    std::error_code error;
    for (fs::recursive_directory_iterator it(root, error), end; !error && it != end; it.increment(error)) {
      std::error_code ignored;
      if (it->is_symlink(ignored) || !it->is_regular_file(ignored)) continue;
      std::ifstream file(it->path(), std::ios::binary);
      std::array<char, 18> head{};
      file.read(head.data(), head.size());
      constexpr int kExecutable = 2;
      constexpr int kShared = 3;
      if (!file || std::string(head.data(), 4) != "\177ELF" || (head[16] != kExecutable && head[16] != kShared)) {
        continue;
      }
      files.paths.push_back(it->path().string());
      files.bytes += static_cast<double>(it->file_size(ignored));
    }
  }
  return files;
}

/// Programs that have the files mapped, at most 900 each: a process's mappings must fit into a block of 1,024.
class Mappers {
 public:
  explicit Mappers(const std::vector<std::string>& paths) {
    std::string name = (fs::temp_directory_path() / "flamed-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
    folder_ = name;
    for (std::size_t first = 0; first < paths.size(); first += 900) {
      const std::string list = (folder_ / ("list" + std::to_string(first))).string();
      std::ofstream out(list);
      for (std::size_t i = first; i < std::min(first + 900, paths.size()); ++i) out << paths[i] << '\n';
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

/// Metrics once the rows of so many modules stand and no more are being built: nothing changed for 3 s.
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

TEST_CASE(
    "the rows of every ELF file that is installed fit into the default memory; in an eighth, the sampled ones do") {
  const ElfFiles files = installed_elf_files();
  const Mappers mappers(files.paths);
  double need = 0;
  {
    RunningDaemon daemon;
    auto metrics = settled_metrics(daemon, 0.5 * static_cast<double>(files.paths.size()));
    const double cpu = metrics["flamed_cpu_seconds_total"];
    need = metrics["flamed_unwind_row_bytes"];
    WARN(files.paths.size() << " files, " << files.bytes / 1e6 << " MB: " << metrics["flamed_unwind_modules"]
                            << " modules with " << metrics["flamed_unwind_rows"] << " rows, " << need / kMebibyte
                            << " MiB in " << metrics["flamed_unwind_slab_bytes"] / kMebibyte << " MiB of slabs; " << cpu
                            << " s of CPU, or " << cpu / (files.bytes / 1e8) << " s per 100 MB");
    CHECK(metrics["flamed_unwind_modules"] > 0.5 * static_cast<double>(files.paths.size()));
    CHECK(metrics["flamed_unwind_refused_total"] == 0);
    CHECK(metrics["flamed_unwind_evictions_total"] == 0);
    CHECK(metrics["flamed_unwind_slab_bytes"] <= metrics["flamed_unwind_budget_bytes"]);
    const RunningDaemon::End end = daemon.end();
    INFO("lost" << end.losses);
    CHECK(end.lost == 0);
  }

  const double budget = std::max(1.0, std::ceil(need / 8 / kMebibyte));
  RunningDaemon daemon({"--unwind-memory", std::to_string(static_cast<int>(budget)) + "MiB"});
  CHECK(RunningDaemon::eventually(seconds(200), [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    return daemon.metrics()["flamed_unwind_evictions_total"] > 0;
  }));
  mappers.stop();
  // What was sampled within the last 5 s makes no room.
  std::this_thread::sleep_for(seconds(7));
  // The memory is full of what nobody runs. Programs that do run get theirs, one after the other.
  double whole = 0;
  double samples = 0;
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"/usr/bin/python3", "-c", "while True: sorted(str(i) for i in range(9999))"},
           {"/usr/bin/perl", "-e", "while (1) { my %h; $h{$_ % 97} .= \"x\" for 1 .. 9999 }"},
           {"/usr/bin/openssl", "speed", "-seconds", "60", "rsa2048"},
           {"/usr/bin/node", "-e", "for (;;) JSON.parse(JSON.stringify(Array.from({length: 9999}, Math.random)))"},
           {"/usr/bin/xz", "-9", "--stdout", "/dev/zero"}}) {
    if (!fs::exists(command[0])) continue;
    const ChildProcess program(command, ChildProcess::Capture::kOutputAndErrors);
    // What is cut are the first moments, while rows are built and others' leave.
    std::this_thread::sleep_for(seconds(4));
    const nlohmann::json quality =
        daemon.get_json("/profile?seconds=3&pid=" + std::to_string(program.pid()))["quality"];
    double cut = 0;
    for (const auto& [reason, count] : quality["truncated"].items()) cut += count.get<double>();
    UNSCOPED_INFO(command[0] << ": " << quality);
    whole += quality["whole"].get<double>();
    samples += quality["whole"].get<double>() + cut;
  }
  auto metrics = daemon.metrics();
  WARN(budget << " MiB allowed, " << metrics["flamed_unwind_row_bytes"] / kMebibyte << " MiB taken; "
              << metrics["flamed_unwind_evictions_total"] << " evictions, " << metrics["flamed_unwind_refused_total"]
              << " refusals, " << whole << " of the programs' " << samples << " samples whole");
  CHECK(metrics["flamed_unwind_slab_bytes"] <= budget * kMebibyte);
  CHECK(metrics["flamed_unwind_evictions_total"] > 0);
  CHECK(samples > 0);
  CHECK(whole >= 0.9 * samples);
  const RunningDaemon::End end = daemon.end();
  INFO("lost" << end.losses);
  CHECK(end.lost == 0);
  CHECK(end.taken == end.whole + end.truncated);
}

}  // namespace
}  // namespace flamed::test
