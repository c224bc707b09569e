// SPDX-License-Identifier: Apache-2.0
#include "test/kernel/folded_stacks.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "test/catch.h"

namespace flamed::test {

std::string victim(const std::string& name) {
  const char* folder = std::getenv("FLAMED_VICTIMS");
  if (folder == nullptr) throw std::runtime_error("FLAMED_VICTIMS does not name the folder of the victims");
  return std::string(folder) + "/victim_" + name;
}

std::vector<std::string> builds_of(const std::string& name) {
  std::vector<std::string> builds{name};
  if (const std::string other = name + "_by_path"; std::filesystem::exists(victim(other))) builds.push_back(other);
  return builds;
}

bool has_victim(const std::string& name) {
  if (std::filesystem::exists(victim(name))) return true;
  WARN("SKIP: there was no compiler for the " << name << " program when this was configured");
  return false;
}

std::string profile_of(pid_t pid) { return "/profile?format=folded&pid=" + std::to_string(pid); }

RunningDaemon& frequent_daemon() {
  static RunningDaemon daemon({"--frequency", "997"});
  return daemon;
}

std::uint64_t count_if(const FoldedStacks& stacks, const std::function<bool(const std::string&)>& wanted) {
  std::uint64_t sum = 0;
  for (const auto& [stack, count] : stacks) sum += wanted(stack) ? count : 0;
  return sum;
}

std::uint64_t total(const FoldedStacks& stacks) {
  return count_if(stacks, [](const std::string&) { return true; });
}

std::uint64_t with(const FoldedStacks& stacks, const std::string& part) {
  return count_if(stacks,
                  [&](const std::string& stack) { return (";" + stack + ";").find(part) != std::string::npos; });
}

FoldedStacks settled_profile(const RunningDaemon& daemon, pid_t pid, const std::string& since) {
  FoldedStacks stacks = daemon.folded(profile_of(pid) + since);
  for (auto it = stacks.begin(); it != stacks.end();) {
    const bool early = it->first.rfind("[truncated: the process had only just begun]", 0) == 0 ||
                       it->first.rfind("[truncated: unwind rows not ready]", 0) == 0;
    it = early ? stacks.erase(it) : std::next(it);
  }
  return stacks;
}

bool has_samples(const RunningDaemon& daemon, pid_t pid, std::uint64_t wanted, const std::string& since) {
  // Waits longer while samples still arrive: how much CPU time a program gets beside others is not tested.
  std::uint64_t seen = 0;
  while (seen < wanted) {
    std::uint64_t now = seen;
    const auto grows = [&] { return (now = total(settled_profile(daemon, pid, since))) > seen; };
    if (!RunningDaemon::eventually(std::chrono::seconds(30) * patience(), grows)) return false;
    seen = now;
  }
  return true;
}

FoldedStacks profile_once_seen(const RunningDaemon& daemon, pid_t pid,
                               const std::function<bool(const std::string&)>& wanted_first, std::uint64_t wanted) {
  REQUIRE(RunningDaemon::eventually(std::chrono::seconds(60) * patience(),
                                    [&] { return count_if(settled_profile(daemon, pid), wanted_first) > 0; }));
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::string since =
      "&from=" + std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
  std::this_thread::sleep_for(std::chrono::milliseconds(1));  // a window must not be empty
  REQUIRE(has_samples(daemon, pid, wanted, since));
  return settled_profile(daemon, pid, since);
}

FoldedStacks profile_once_seen(const RunningDaemon& daemon, pid_t pid, const std::string& part, std::uint64_t wanted) {
  return profile_once_seen(
      daemon, pid,
      [&](const std::string& stack) {
        return with({{stack, 1}}, part) > 0;
      },
      wanted);
}

std::string repeated(const std::string& frame, int times) {
  std::string frames;
  for (int i = 0; i < times; ++i) frames += (i == 0 ? "" : ";") + frame;
  return frames;
}

}  // namespace flamed::test
