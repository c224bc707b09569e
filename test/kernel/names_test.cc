// SPDX-License-Identifier: Apache-2.0
//
// A name for every frame: programs of each kind, with the exact frames that the real daemon must show for them.
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "test/catch.h"
#include "test/kernel/folded_stacks.h"
#include "test/support/child_process.h"
#include "test/support/running_daemon.h"

namespace flamed::test {
namespace {

using std::chrono::seconds;

struct ExpectedFrame {
  std::string name;
  std::string kind = "native";
  /// The last part of the file's path, and its lines: "names.c:6", "names.go:10|11"; "" if there must be none.
  std::string place{};
  bool inlined = false;
};

std::string place_of(const nlohmann::json& node) {
  if (!node.contains("file")) return "";
  const std::string file = node["file"];
  return file.substr(file.rfind('/') + 1) + ":" + std::to_string(node.value("line", 0));
}

bool is_at(const nlohmann::json& node, const std::string& wanted) {
  const std::string place = place_of(node);
  const std::size_t colon = wanted.find(':');
  if (colon == std::string::npos) return place == wanted;
  for (std::size_t from = colon; from != std::string::npos; from = wanted.find('|', from + 1)) {
    const std::size_t to = wanted.find('|', from + 1);
    const std::string line = wanted.substr(from + 1, to == std::string::npos ? to : to - from - 1);
    if (place == wanted.substr(0, colon) + ":" + line) return true;
  }
  return false;
}

/// Without the " file:line" that lines=1 appends.
std::string name_of(const nlohmann::json& node) {
  const auto name = node["name"].get<std::string>();
  const std::string place = place_of(node);
  const bool has_place = !place.empty() && name.size() > place.size() + 1 &&
                         name.compare(name.size() - place.size() - 1, std::string::npos, " " + place) == 0;
  return has_place ? name.substr(0, name.size() - place.size() - 1) : name;
}

bool is(const nlohmann::json& node, const ExpectedFrame& wanted) {
  return name_of(node) == wanted.name && node["kind"] == wanted.kind && is_at(node, wanted.place) &&
         node.value("inlined", false) == wanted.inlined;
}

/// Samples whose stacks have `chain` anywhere, in one piece.
std::uint64_t samples_with(const nlohmann::json& node, const std::vector<ExpectedFrame>& chain, std::size_t next = 0) {
  if (next != 0 || is(node, chain[0])) {
    if (!is(node, chain[next])) return 0;
    if (next + 1 == chain.size()) return node["value"];
  }
  std::uint64_t sum = 0;
  if (!node.contains("children")) return 0;
  const std::size_t below = next != 0 || is(node, chain[0]) ? next + 1 : 0;
  for (const auto& child : node["children"]) sum += samples_with(child, chain, below);
  return sum;
}

/// One line for each large node, for the message of a failed test.
void describe(const nlohmann::json& node, std::uint64_t at_least, int depth, std::string& out) {
  if (node["value"].get<std::uint64_t>() < at_least) return;
  out += std::string(static_cast<std::size_t>(depth), ' ') + std::to_string(node["value"].get<std::uint64_t>()) + " " +
         name_of(node) + " " + node["kind"].get<std::string>() + " " + place_of(node) +
         (node.value("inlined", false) ? " inlined" : "") + "\n";
  if (!node.contains("children")) return;
  for (const auto& child : node["children"]) describe(child, at_least, depth + 1, out);
}

/// Waits until `share` of the samples have exactly this chain.
void check_frames(RunningDaemon& daemon, pid_t pid, const std::vector<ExpectedFrame>& chain, double share = 0.9) {
  REQUIRE(has_samples(daemon, pid, 150));
  nlohmann::json answer;
  const bool found = RunningDaemon::eventually(seconds(20), [&] {
    // By line: a function whose samples are in several lines has no single one.
    answer = daemon.get_json("/profile?lines=1&pid=" + std::to_string(pid));
    auto all = answer["value"].get<double>();
    for (const auto& stack : answer["children"]) {
      // Taken before the tables of a new program were built.
      if (stack["kind"] == "marker") all -= stack["value"].get<double>();
    }
    return all > 0 && static_cast<double>(samples_with(answer, chain)) >= share * all;
  });
  std::string tree;
  describe(answer, answer["value"].get<std::uint64_t>() / 50, 0, tree);
  INFO(tree);
  std::string told;
  if (!found) {
    for (const auto& [name, value] : daemon.metrics()) told += name + " " + std::to_string(value) + "\n";
    while (const auto line = daemon.process().read_line(std::chrono::milliseconds(100))) told += *line + "\n";
  }
  INFO(told);
  CHECK(found);
}

const std::vector<ExpectedFrame> kWithLines = {{"main", "native", "names.c:20"},
                                               {"outer", "native", "names.c:15"},
                                               {"middle", "native", "names.c:10", true},
                                               {"leaf", "native", "names.c:6"}};
const std::vector<ExpectedFrame> kWithoutLines = {{"main"}, {"outer"}, {"leaf"}};

/// A folder that is removed with its content.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "flamed-names-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make a temporary folder");
    path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

bool has_command(const std::string& name) { return std::system(("command -v " + name + " >/dev/null").c_str()) == 0; }

bool has_commands(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (!has_command(name)) {
      WARN("SKIP: no " << name << " here");
      return false;
    }
  }
  return true;
}

/// Runs a shell script with $1, $2, ... and returns its first line of output.
std::string shell(const std::string& script, std::vector<std::string> arguments) {
  std::vector<std::string> command{"sh", "-c", "set -e; " + script, "sh"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  ChildProcess process(command);
  std::string line = process.read_line(seconds(30)).value_or("");
  const auto code = process.wait(seconds(30));
  if (code != 0) throw std::runtime_error("failed: " + script);
  return line;
}

/// Modules of the frames whose names end with this.
std::set<std::string> modules_of(const nlohmann::json& node, const std::string& name_end) {
  std::set<std::string> modules;
  const std::string name = node["name"];
  if (name.size() >= name_end.size() && name.substr(name.size() - name_end.size()) == name_end) {
    modules.insert(node["module"].get<std::string>());
  }
  if (!node.contains("children")) return modules;
  for (const auto& child : node["children"]) modules.merge(modules_of(child, name_end));
  return modules;
}

TEST_CASE("C with debug information: every frame with its file and line, inlined calls too") {
  RunningDaemon& daemon = frequent_daemon();
  ChildProcess program({victim("names_c")});
  check_frames(daemon, program.pid(), kWithLines);
}

TEST_CASE("a static-pie is named as well") {
  RunningDaemon& daemon = frequent_daemon();
  ChildProcess program({victim("names_static_pie")});
  check_frames(daemon, program.pid(), kWithLines);
}

TEST_CASE("a static-pie that runs before the daemon is named, though only [vsyscall] follows its mapping in /proc") {
  ChildProcess program({victim("names_static_pie")});
  RunningDaemon daemon;
  check_frames(daemon, program.pid(), kWithLines);
}

TEST_CASE("C++: templates, lambdas and inlined members, shortened") {
  RunningDaemon& daemon = frequent_daemon();
  ChildProcess program({victim("names_cc")});
  check_frames(
      daemon, program.pid(),
      {{"main", "native", "names.cc:33"},
       {"shop::fill<unsigned long, 5000000>", "native", "names.cc:24"},
       {"shop::Basket<unsigned long>::each<...>", "native", "names.cc:16", true},
       {"shop::fill<unsigned long, 5000000>::{lambda(unsigned long)#1}::operator()", "native", "names.cc:25"}});
}

TEST_CASE("Rust: paths without hashes") {
  const std::string name = GENERATE(from_range(builds_of("rust")));
  INFO(name);
  if (!has_victim(name)) return;
  RunningDaemon& daemon = frequent_daemon();
  ChildProcess program({victim(name)});
  check_frames(daemon, program.pid(), {{"chain::main"}, {"chain::outer"}, {"chain::middle"}, {"chain::work"}});
}

TEST_CASE("Go: files, lines and inlined calls, also if fully stripped") {
  const std::string program_name = GENERATE("names_go", "names_go_stripped");
  const std::string name = GENERATE_COPY(from_range(builds_of(program_name)));
  if (!has_victim(name)) return;
  INFO(name);
  RunningDaemon& daemon = frequent_daemon();
  ChildProcess program({victim(name)});
  check_frames(daemon, program.pid(),
               {{"main.main", "go", "names.go:35"},
                {"main.outer", "go", "names.go:29"},
                {"main.middle", "go", "names.go:23", true},
                {"main.leaf", "go", "names.go:17|18|0"}});
}

TEST_CASE("a stripped program is named by its MiniDebugInfo") {
  if (!has_commands({"objcopy", "strip", "xz"})) return;
  const Folder folder;
  shell(
      "objcopy -S --keep-symbol=outer --keep-symbol=leaf --keep-symbol=main --only-keep-debug \"$1\" \"$2.mini\";"
      "objcopy -S \"$1\" \"$2.mini\" --keep-symbol=outer --keep-symbol=leaf --keep-symbol=main;"
      "xz -k \"$2.mini\"; strip -o \"$2\" \"$1\";"
      "objcopy --add-section .gnu_debugdata=\"$2.mini.xz\" \"$2\"",
      {victim("names_c"), folder.file("program")});
  RunningDaemon& daemon = frequent_daemon();
  ChildProcess program({folder.file("program")});
  check_frames(daemon, program.pid(), kWithoutLines);
}

TEST_CASE("a stripped program is named by its debug file beside it, which its debug link names") {
  if (!has_commands({"objcopy", "strip"})) return;
  const Folder folder;
  shell(
      "objcopy --only-keep-debug \"$1\" \"$2.debug\"; strip --remove-section=.note.gnu.build-id -o \"$2\" \"$1\";"
      "objcopy --add-gnu-debuglink=\"$2.debug\" \"$2\"",
      {victim("names_c"), folder.file("program")});
  RunningDaemon& daemon = frequent_daemon();
  ChildProcess program({folder.file("program")});
  check_frames(daemon, program.pid(), kWithLines);
}

TEST_CASE("a stripped program is named by the debug file of its build-id in its own root") {
  if (!has_commands({"objcopy", "strip", "readelf", "unshare", "mount", "chroot"})) return;
  const Folder folder;
  // A minimal container: a file system of its own with the static program and its debug file.
  const std::string root = folder.file("root");
  shell(
      "mkdir -p \"$2\"; objcopy --only-keep-debug \"$1\" \"$2/debug\"; strip -o \"$2/program\" \"$1\";"
      "id=$(readelf -n \"$2/program\" | sed -n 's/.*Build ID: //p'); test -n \"$id\";"
      "d=\"$2/usr/lib/debug/.build-id/$(echo $id | cut -c1-2)\"; mkdir -p \"$d\";"
      "mv \"$2/debug\" \"$d/$(echo $id | cut -c3-).debug\"",
      {victim("names_static_pie"), root});
  RunningDaemon& daemon = frequent_daemon();
  ChildProcess program({"unshare", "--mount", "chroot", root, "/program"});
  check_frames(daemon, program.pid(), kWithLines);
}

TEST_CASE("a program that exists only in its own mount namespace is named, and so is a deleted one") {
  if (!has_commands({"unshare", "mount"})) return;
  const bool deleted = GENERATE(false, true);
  INFO((deleted ? "deleted" : "in a mount namespace"));
  const Folder folder;
  const std::string file = folder.file("program");
  std::unique_ptr<ChildProcess> program;
  RunningDaemon& daemon = frequent_daemon();
  if (deleted) {
    std::filesystem::copy_file(victim("names_c"), file);
    program = std::make_unique<ChildProcess>(std::vector<std::string>{file});
    std::filesystem::remove(file);
  } else {
    program = std::make_unique<ChildProcess>(
        std::vector<std::string>{"unshare", "--mount", "sh", "-c",
                                 "set -e; mount -t tmpfs tmpfs \"$1\"; cp \"$2\" \"$1/program\"; exec \"$1/program\"",
                                 "sh", std::filesystem::path(file).parent_path().string(), victim("names_c")});
  }
  check_frames(daemon, program->pid(), kWithLines);
  CHECK_FALSE(std::filesystem::exists(file));
}

TEST_CASE("the kernel's functions are named below the program's") {
  RunningDaemon& daemon = frequent_daemon();
  ChildProcess program({victim("system_calls")});
  check_frames(daemon, program.pid(), {{kSystemCall, "kernel"}, {kSystemCallCallee, "kernel"}}, 0.5);
}

TEST_CASE("a BPF program has its own name, at every place in its code") {
  RunningDaemon& daemon = frequent_daemon();
  ChildProcess program({victim("bpf_spin")}, ChildProcess::Capture::kOutputAndErrors);
  if (const auto code = program.wait(seconds(1)); code == 77) {
    const std::string reason = program.read_line(seconds(5)).value_or("it does not say why");
    WARN("SKIP bpf-on-demand: this kernel runs no BPF program on demand, or not as machine code: " << reason);
    return;
  }
  REQUIRE(has_samples(daemon, program.pid(), 150));
  // Below the system call that runs it, as "bpf_prog_<tag>_<name>". An emulated CPU takes interrupts between blocks of
  // at most 512 instructions. One that was due in the last of the program's eight blocks is seen in the loop around it.
  const double share = patience() == 1 ? 0.9 : 0.8;
  const std::regex named("(^|;)__(do_)?sys_bpf;.*;bpf_test_run;bpf_prog_[0-9a-f]{16}_flamed_spin(;|$)");
  FoldedStacks stacks;
  const bool is_named = RunningDaemon::eventually(seconds(45), [&] {
    stacks = settled_profile(daemon, program.pid());
    const auto in_program = count_if(stacks, [&](const std::string& stack) { return std::regex_search(stack, named); });
    return static_cast<double>(in_program) >= share * static_cast<double>(total(stacks));
  });
  for (const auto& [stack, count] : stacks) UNSCOPED_INFO(count << "  " << stack);
  CHECK(is_named);
  const nlohmann::json answer = daemon.get_json("/profile?pid=" + std::to_string(program.pid()));
  CHECK(modules_of(answer, "_flamed_spin") == std::set<std::string>{"[bpf]"});
}

}  // namespace
}  // namespace flamed::test
