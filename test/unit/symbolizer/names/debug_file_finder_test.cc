// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/names/debug_file_finder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "symbolizer/elf/elf_facts_reader.h"
#include "symbolizer/process/direct_root_files.h"
#include "symbolizer/reader/direct_module_reader.h"
#include "test/catch.h"
#include "test/unit/symbolizer/forwarding_reader.h"
#include "test/unit/symbolizer/victims.h"
#include "test/unit/symbolizer_processes/temporary_directory.h"

namespace flamed::symbolizer {
namespace {

constexpr const char* kByBuildId = "usr/lib/debug/.build-id/00/112233445566778899aabbccddeeff01234567.debug";

std::string split(const std::string& name) { return std::string(VICTIM_SPLIT) + "/" + name; }
std::string split_bytes(const std::string& name) { return bytes_of(split(name).c_str()); }

/// A host, and process 7 in a container of its own, both of plain directories.
struct Machine {
  test::TemporaryDirectory host;
  test::TemporaryDirectory proc;
  DirectModuleReader reader;
  DirectRootFiles files{{.proc = proc.path().string(), .host_root = host.path().string()}};
  DebugFileFinder finder{reader, files};

  static constexpr std::int32_t kPid = 7;
  void in_container(const std::string& path, const std::string& bytes) const { proc.write("7/root/" + path, bytes); }

  DebugFiles find(const std::string& victim, const std::string& path, std::int32_t pid = 0) {
    return find(finder, victim, path, pid);
  }
  /// The program itself is the test's, and is beside its other files.
  DebugFiles find(DebugFileFinder& by, const std::string& victim, const std::string& path, std::int32_t pid = 0) const {
    const Fd file = open_victim(host.write("program", split_bytes(victim)).c_str());
    return by.find({path, read_elf_facts(file.get()).value(), pid, owner_of(file.get())});
  }
  bool finds(const std::string& victim, const std::string& path, std::int32_t pid = 0) {
    return static_cast<bool>(find(victim, path, pid).debug);
  }
};

TEST_CASE("without a debug file none is found") {
  Machine machine;
  const DebugFiles files = machine.find("stripped", "/usr/bin/victim", Machine::kPid);
  CHECK_FALSE(files.debug);
  CHECK_FALSE(files.alternate);
  CHECK_FALSE(files.pending);
}

TEST_CASE("a debug file is found by its build-id") {
  Machine machine;
  machine.host.write(kByBuildId, split_bytes("stripped.debug"));
  const DebugFiles files = machine.find("stripped", "/usr/bin/victim");
  REQUIRE(files.debug);
  CHECK(files.debug_facts.has_symtab);
  CHECK(files.debug_facts.has_debug_info);
}

TEST_CASE("a debug file whose build-id differs from its name is not used") {
  Machine machine;
  std::string bytes = split_bytes("stripped.debug");
  const std::size_t at = bytes.find(std::string("\x00\x11\x22\x33\x44\x55", 6));
  REQUIRE(at != std::string::npos);
  bytes[at] = '\x01';
  machine.host.write(kByBuildId, bytes);
  CHECK_FALSE(machine.finds("stripped", "/usr/bin/victim"));
}

TEST_CASE("a debug file is found by debuglink beside the program, in .debug, and under the folder for such files") {
  for (const char* place :
       {"opt/app/linked.debug", "opt/app/.debug/linked.debug", "usr/lib/debug/opt/app/linked.debug"}) {
    Machine machine;
    machine.host.write(place, split_bytes("linked.debug"));
    CHECK(machine.finds("linked", "/opt/app/linked"));
    CHECK(machine.finds("linked", "/opt/app/linked (deleted)"));
    CHECK_FALSE(machine.finds("linked", "/opt/other/linked"));
    CHECK_FALSE(machine.finds("linked", "linked"));
  }
}

TEST_CASE("a debug file whose checksum differs from the program's is not used") {
  Machine machine;
  std::string bytes = split_bytes("linked.debug");
  bytes += '\0';
  machine.host.write("opt/app/linked.debug", bytes);
  CHECK_FALSE(machine.finds("linked", "/opt/app/linked"));
  // Replaced by the right one, it is read again.
  machine.host.write("opt/app/linked.debug", split_bytes("linked.debug"));
  CHECK(machine.finds("linked", "/opt/app/linked"));
}

TEST_CASE("a file too large for its checksum to be read is not used") {
  Machine machine;
  machine.host.write("opt/app/linked.debug", split_bytes("linked.debug"));
  DebugFileFinder finder(machine.reader, machine.files, {.max_checksum_bytes = 1000});
  CHECK_FALSE(machine.find(finder, "linked", "/opt/app/linked").debug);
}

/// Marks all files as on a file system that may not answer, or whose owners a user may have forged.
class DoubtfulFiles final : public RootFiles {
 public:
  explicit DoubtfulFiles(RootFiles& files) : files_(files) {}
  std::vector<RootFile> open(std::int32_t pid, std::span<const std::string> paths, const FileOwner& owner) override {
    std::vector<RootFile> files = files_.open(pid, paths, owner);
    for (RootFile& file : files) {
      file.is_local = file.is_local && !far;
      file.is_foreign = file.is_foreign || foreign;
    }
    return files;
  }
  bool far = false;
  bool foreign = false;

 private:
  RootFiles& files_;
};

TEST_CASE("a file on a file system that may not answer is not read for its checksum, but used by its build-id") {
  Machine machine;
  machine.host.write("opt/app/linked.debug", split_bytes("linked.debug"));
  machine.host.write(kByBuildId, split_bytes("stripped.debug"));
  DoubtfulFiles files(machine.files);
  files.far = true;
  DebugFileFinder finder(machine.reader, files);
  const auto finds = [&](const char* victim, const char* path) {
    return static_cast<bool>(machine.find(finder, victim, path).debug);
  };
  CHECK(machine.finds("linked", "/opt/app/linked"));
  CHECK_FALSE(finds("linked", "/opt/app/linked"));
  CHECK(finds("stripped", "/usr/bin/victim"));
}

TEST_CASE("a program is not its own debug file") {
  Machine machine;
  machine.host.write(kByBuildId, split_bytes("stripped"));
  CHECK_FALSE(machine.finds("stripped", "/usr/bin/victim"));
}

TEST_CASE("a file that is not regular is not opened") {
  Machine machine;
  const std::filesystem::path path = machine.host.path() / kByBuildId;
  std::filesystem::create_directories(path.parent_path());
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  CHECK_FALSE(machine.finds("stripped", "/usr/bin/victim"));
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  CHECK_FALSE(machine.finds("stripped", "/usr/bin/victim"));
}

TEST_CASE("a file that the host lacks is looked up in a process's root") {
  Machine machine;
  machine.in_container(kByBuildId, split_bytes("stripped.debug"));
  CHECK_FALSE(machine.finds("stripped", "/usr/bin/victim"));
  CHECK(machine.finds("stripped", "/usr/bin/victim", Machine::kPid));
  // The process has ended, so only the host's files are left.
  machine.host.write(kByBuildId, split_bytes("stripped.debug"));
  CHECK(machine.finds("stripped", "/usr/bin/victim", Machine::kPid + 1));
}

TEST_CASE("the host's debug file is preferred to one in a process's root") {
  Machine machine;
  const std::string hosts = machine.host.write(kByBuildId, split_bytes("stripped.debug"));
  machine.in_container(kByBuildId, split_bytes("stripped.debug"));
  const DebugFiles files = machine.find("stripped", "/usr/bin/victim", Machine::kPid);
  struct stat found {};
  struct stat wanted {};
  REQUIRE(files.debug);
  REQUIRE(::fstat(files.debug.get(), &found) == 0);
  REQUIRE(::stat(hosts.c_str(), &wanted) == 0);
  CHECK(found.st_ino == wanted.st_ino);
}

TEST_CASE("a debug file whose owner a user may have forged is used only from the host's own folder") {
  Machine machine;
  DoubtfulFiles files(machine.files);
  files.foreign = true;
  DebugFileFinder finder(machine.reader, files);
  const auto finds = [&](const char* victim, std::int32_t pid) {
    return static_cast<bool>(machine.find(finder, victim, "/opt/app/linked", pid).debug);
  };
  machine.in_container(kByBuildId, split_bytes("stripped.debug"));
  CHECK_FALSE(finds("stripped", Machine::kPid));
  machine.host.write(kByBuildId, split_bytes("stripped.debug"));
  CHECK(finds("stripped", 0));
  machine.host.write("opt/app/linked.debug", split_bytes("linked.debug"));
  CHECK_FALSE(finds("linked", 0));
  machine.host.write("usr/lib/debug/opt/app/linked.debug", split_bytes("linked.debug"));
  CHECK(finds("linked", 0));
}

constexpr uid_t kAlice = 64101;
constexpr uid_t kBob = 64102;

TEST_CASE("a debug file is used only if it belongs to root or the program's owner") {
  if (::getuid() != 0) return;  // only root can change a file's owner
  Machine machine;
  const Fd program = open_victim(machine.host.write("program", split_bytes("stripped")).c_str());
  const ElfFacts facts = read_elf_facts(program.get()).value();
  const bool in_container = GENERATE(false, true);
  const std::string path =
      in_container ? machine.proc.write(std::string("7/root/") + kByBuildId, "") : machine.host.write(kByBuildId, "");
  const auto finds = [&](uid_t owner, uid_t debug_owner, mode_t mode) {
    std::filesystem::remove(path);
    std::ofstream(path, std::ios::binary) << split_bytes("stripped.debug");
    REQUIRE(::chmod(path.c_str(), mode) == 0);
    REQUIRE(::chown(path.c_str(), debug_owner, debug_owner) == 0);
    const FileOwner whose{owner, owner_of(program.get()).device};
    return static_cast<bool>(machine.finder.find({"/usr/bin/victim", facts, Machine::kPid, whose}).debug);
  };
  CHECK(finds(0, 0, 0644));
  CHECK_FALSE(finds(0, kAlice, 0644));
  CHECK(finds(kBob, 0, 0644));
  CHECK(finds(kBob, kBob, 0644));
  CHECK_FALSE(finds(kBob, kAlice, 0644));
  // Files of this owner may be any user's.
  CHECK(finds(65534, 0, 0644));
  CHECK_FALSE(finds(65534, 65534, 0644));
  // A file that others can write to does not count as its owner's.
  CHECK_FALSE(finds(0, 0, 0666));
  CHECK_FALSE(finds(0, 0, 0664));
  CHECK(finds(kBob, kBob, 0664));
  CHECK_FALSE(finds(kBob, kBob, 0666));
}

TEST_CASE("a link in a container can't lead out of it") {
  Machine machine;
  const std::string secret = machine.host.write("secret.debug", split_bytes("stripped.debug"));
  const std::filesystem::path path = machine.proc.path() / "7/root" / kByBuildId;
  std::filesystem::create_directories(path.parent_path());
  std::filesystem::create_symlink(secret, path);
  CHECK_FALSE(machine.finds("stripped", "/usr/bin/victim", Machine::kPid));
  // One that stays inside is followed: some distributions link the build-id to the file's other name.
  machine.in_container("usr/lib/debug/victim.debug", split_bytes("stripped.debug"));
  std::filesystem::remove(path);
  std::filesystem::create_symlink("../../victim.debug", path);
  CHECK(machine.finds("stripped", "/usr/bin/victim", Machine::kPid));
}

TEST_CASE("the file that a debug file shares pieces with must have one of these owners, too") {
  if (::getuid() != 0 || std::filesystem::file_size(split("dwz.debug")) == 0) return;  // not root, or no dwz
  Machine machine;
  machine.host.write(kByBuildId, split_bytes("dwz.debug"));
  const std::string path = machine.host.write("usr/lib/debug/.build-id/00/dwz.alternate", split_bytes("dwz.alternate"));
  CHECK(machine.find("stripped", "/usr/bin/victim").alternate);
  REQUIRE(::chown(path.c_str(), kAlice, kAlice) == 0);
  CHECK_FALSE(machine.find("stripped", "/usr/bin/victim").alternate);
}

TEST_CASE("the file that a debug file shares pieces with is found beside it, by build-id, or where dwz puts it") {
  if (std::filesystem::file_size(split("dwz.debug")) == 0) {
    WARN("SKIP: there is no dwz here");
    return;
  }
  const std::string id = read_elf_facts(open_victim(split("dwz.alternate").c_str()).get())->build_id;
  for (const std::string& place :
       {std::string("usr/lib/debug/.build-id/00/dwz.alternate"), std::string("usr/lib/debug/.dwz/dwz.alternate"),
        "usr/lib/debug/.build-id/" + id.substr(0, 2) + "/" + id.substr(2) + ".debug"}) {
    Machine machine;
    machine.host.write(kByBuildId, split_bytes("dwz.debug"));
    CHECK_FALSE(machine.find("stripped", "/usr/bin/victim").alternate);
    machine.host.write(place, split_bytes("stripped.debug"));  // another file's build-id
    CHECK_FALSE(machine.find("stripped", "/usr/bin/victim").alternate);
    machine.host.write(place, split_bytes("dwz.alternate"));
    CHECK(machine.find("stripped", "/usr/bin/victim").alternate);
  }
}

/// Has the files that a test sets, or is still looking.
class FakeRemote final : public RemoteDebugFiles {
 public:
  Answer find(const std::string& build_id) override {
    asked.push_back(build_id);
    if (pending) return {Fd(), true};
    return {bytes.empty() ? Fd() : file_with(bytes), false};
  }
  std::vector<std::string> asked;
  std::string bytes;
  bool pending = false;
};

TEST_CASE("a server is asked only for files that are not here, and its files must match too") {
  Machine machine;
  FakeRemote remote;
  DebugFileFinder finder(machine.reader, machine.files, {}, &remote);
  const auto find = [&](const char* victim) { return machine.find(finder, victim, "/usr/bin/victim"); };
  remote.pending = true;
  CHECK(find("stripped").pending);
  remote.pending = false;
  CHECK_FALSE(find("stripped").debug);
  remote.bytes = split_bytes("linked.debug");
  CHECK_FALSE(find("stripped").debug);
  remote.bytes = split_bytes("stripped.debug");
  CHECK(find("stripped").debug);
  CHECK(remote.asked == std::vector<std::string>(4, "00112233445566778899aabbccddeeff01234567"));

  remote.asked.clear();
  CHECK_FALSE(find("linked").debug);  // has no build-id for a query
  machine.host.write(kByBuildId, split_bytes("stripped.debug"));
  CHECK(find("stripped").debug);
  CHECK(remote.asked.empty());
}

}  // namespace
}  // namespace flamed::symbolizer
