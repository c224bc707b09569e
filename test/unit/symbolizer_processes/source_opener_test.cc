// SPDX-License-Identifier: Apache-2.0
//
// Sources of real processes, of users of the test. Only root can start those.
#include "symbolizer/opener/source_opener.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "symbolizer/process/proc_folder.h"
#include "symbolizer/process/proc_text.h"
#include "test/catch.h"
#include "test/unit/symbolizer_processes/temporary_directory.h"

namespace flamed::symbolizer {
namespace {

constexpr std::uint32_t kAlice = 64101;
constexpr std::uint32_t kBob = 64102;
constexpr std::uint32_t kStaff = 64300;

bool set_user(uid_t user, gid_t group) {
  return ::setgroups(0, nullptr) == 0 && ::setresgid(group, group, group) == 0 && ::setresuid(user, user, user) == 0;
}

bool write_text(const char* path, const std::string& text) {
  const Fd file(::open(path, O_WRONLY | O_CLOEXEC));
  return ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

/// A process that sleeps. `prepare` is called in it, and says whether it could.
class Program {
 public:
  enum class Exec : std::uint8_t { kYes, kNo };
  explicit Program(const std::function<bool()>& prepare, Exec exec = Exec::kYes) {
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    const Fd here(ends[0]);
    Fd there(ends[1]);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const char failed = 'f';
      const char ready = 'r';
      const bool is_prepared = prepare();
      // The exec closes the pipe.
      if (is_prepared && exec == Exec::kYes) ::execl("/bin/sleep", "sleep", "1000", nullptr);
      const bool waits = is_prepared && exec == Exec::kNo;
      static_cast<void>(::write(there.get(), waits ? &ready : &failed, 1) == 1);
      for (;;) ::pause();
    }
    there.reset();
    char done{};
    const ssize_t got = ::read(here.get(), &done, 1);
    const Result<std::string> text = read_file(proc_path("/proc", pid_, "stat"), 4096);
    const std::optional<StatLine> line = text ? parse_stat(*text) : std::nullopt;
    REQUIRE(line.has_value());
    id_ = {pid_, line->start_ticks};
    is_ready_ = exec == Exec::kYes ? got == 0 : done == 'r';
  }
  ~Program() { end(); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void end() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    pid_ = -1;
  }
  [[nodiscard]] const ProcessId& id() const { return id_; }
  [[nodiscard]] bool is_ready() const { return is_ready_; }

 private:
  pid_t pid_ = -1;
  ProcessId id_;
  bool is_ready_ = false;
};

/// As with AmbientCapabilities= of a service.
bool be_capable_alice() {
  if (::prctl(PR_SET_KEEPCAPS, 1) != 0 || !set_user(kAlice, kAlice)) return false;
  constexpr std::uint32_t kOne = 1U << CAP_NET_BIND_SERVICE;
  __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> sets{{{kOne, kOne, kOne}, {0, 0, 0}}};
  return ::syscall(SYS_capset, &head, sets.data()) == 0 &&
         ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_BIND_SERVICE, 0, 0) == 0;
}

bool be_alice() { return set_user(kAlice, kAlice); }

/// A folder that everybody may enter, with a source of hers.
struct Sources {
  Sources() {
    REQUIRE(::chmod(tree.path().c_str(), 0755) == 0);
    REQUIRE(::chown(tree.write("a.c", "text").c_str(), kAlice, kAlice) == 0);
    REQUIRE(::chmod(path("a.c").c_str(), 0600) == 0);
  }
  [[nodiscard]] std::string path(const std::string& name) const { return tree.path(name); }
  test::TemporaryDirectory tree;
};

/// "text of the file", or why it is not shown.
std::string read_for(std::uint32_t viewer, const Program& program, const std::string& path) {
  REQUIRE(program.is_ready());
  const Result<SourceCopy> copied = copy_source({program.id(), path, viewer, {viewer, kStaff}}, "/proc");
  return copied ? read_fd(copied->text.get(), kMostSourceBytes).value() : copied.error().message();
}

TEST_CASE("a source is shown to the user of its process, and to root") {
  if (::getuid() != 0) return;
  const Sources sources;
  const Program program(be_alice);
  CHECK(read_for(kAlice, program, sources.path("a.c")) == "text");
  CHECK(read_for(0, program, sources.path("a.c")) == "text");
  CHECK(read_for(kBob, program, sources.path("a.c")) == "its process belongs to another user");
  CHECK(read_for(UINT32_MAX, program, sources.path("a.c")) == "its process belongs to another user");

  const Result<SourceCopy> copied = copy_source({program.id(), sources.path("a.c"), kAlice, {kAlice}}, "/proc");
  REQUIRE(copied.ok());
  struct stat status {};
  REQUIRE(::stat(sources.path("a.c").c_str(), &status) == 0);
  CHECK(copied->modified_ns == status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec);
}

TEST_CASE("a program that names /etc/shadow does not make flamed show it, not to root either") {
  if (::getuid() != 0) return;
  if (::access("/etc/shadow", F_OK) != 0) return;
  const Program program(be_alice);
  for (const std::uint32_t viewer : {kAlice, 0U}) {
    CHECK(read_for(viewer, program, "/etc/shadow") == "its owner, group and mode do not let the user read it");
    CHECK(read_for(viewer, program, "/proc/1/environ").starts_with("it is not on a disk of this machine"));
    CHECK(read_for(viewer, program, "/dev/../dev/zero") == "it is not a regular file");
  }
}

TEST_CASE("a source of more than 4 MiB is not shown") {
  if (::getuid() != 0) return;
  const Sources sources;
  const Program program(be_alice);
  sources.tree.write("b.c", std::string(kMostSourceBytes, 'b'));
  CHECK(read_for(kAlice, program, sources.path("b.c")).size() == kMostSourceBytes);
  sources.tree.write("b.c", std::string(kMostSourceBytes + 1, 'b'));
  CHECK(read_for(kAlice, program, sources.path("b.c")) == "it has more than 4 MiB");
}

TEST_CASE("a path that is not one of a file is refused") {
  if (::getuid() != 0) return;
  const Program program(be_alice);
  CHECK(read_for(kAlice, program, "a.c") == "its path is relative, and it is not known to which folder");
  CHECK(read_for(kAlice, program, "") == "its path is relative, and it is not known to which folder");
  CHECK(read_for(kAlice, program, "/" + std::string(5000, 'x')) == "its path is not one of a file");
  CHECK(read_for(kAlice, program, std::string("/etc/hostname\0.c", 16)) == "its path is not one of a file");
  CHECK(read_for(kAlice, program, "/none.c") == "No such file or directory");
}

TEST_CASE("a source of a process that has ended is not shown") {
  if (::getuid() != 0) return;
  const Sources sources;
  Program program(be_alice);
  const ProcessId other{program.id().pid, program.id().start_ticks + 1};
  CHECK(copy_source({other, sources.path("a.c"), 0}, "/proc").error().message() == "its process has ended");
  program.end();
  CHECK(copy_source({program.id(), sources.path("a.c"), 0}, "/proc").error().code() == ESRCH);
}

TEST_CASE("a user whom the kernel does not let trace a process does not see its sources") {
  if (::getuid() != 0) return;
  const Sources sources;
  const std::string path = sources.path("a.c");
  REQUIRE(::chown(sources.tree.path("a.c").c_str(), kBob, kBob) == 0);
  REQUIRE(::chmod(path.c_str(), 0644) == 0);
  const Program changed(be_alice, Program::Exec::kNo);
  CHECK(read_for(kAlice, changed, path) == "its process is not dumpable");
  CHECK(read_for(0, changed, path) == "text");
  const Program half(
      [] {
        return ::setgroups(0, nullptr) == 0 && ::setresgid(kAlice, kAlice, kAlice) == 0 &&
               ::setresuid(kAlice, kAlice, 0) == 0;
      },
      Program::Exec::kNo);
  CHECK(read_for(kAlice, half, path) == "its process belongs to another user");
  const Program grouped([] { return set_user(kAlice, kBob); });
  CHECK(read_for(kAlice, grouped, path) == "its process belongs to a group that its user's account is not in");
  const Program staff([] { return set_user(kAlice, kStaff); });
  CHECK(read_for(kAlice, staff, path) == "text");
  const Program capable(be_capable_alice);
  CHECK(read_for(kAlice, capable, path) == "its process has capabilities that its user has not");
  CHECK(read_for(0, capable, path) == "text");
}

TEST_CASE("groups of the process do not count for a user, and do for root") {
  if (::getuid() != 0) return;
  const Sources sources;
  constexpr gid_t kSecret = 64301;
  REQUIRE(::chown(sources.path("a.c").c_str(), 0, kSecret) == 0);
  REQUIRE(::chmod(sources.path("a.c").c_str(), 0640) == 0);
  const Program program([] {
    const gid_t group = kSecret;
    return ::setgroups(1, &group) == 0 && ::setresgid(kAlice, kAlice, kAlice) == 0 &&
           ::setresuid(kAlice, kAlice, kAlice) == 0;
  });
  CHECK(read_for(kAlice, program, sources.path("a.c")) == "its owner, group and mode do not let the user read it");
  CHECK(read_for(0, program, sources.path("a.c")) == "text");
}

/// Has a file system of its own over `place`, with a file a.c, in a user namespace that Alice made.
std::function<bool()> in_her_container(const std::string& place) {
  return [=] {
    if (!be_alice()) return false;
    // A process that has changed its user may not write its maps.
    ::prctl(PR_SET_DUMPABLE, 1);
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    const std::string same = std::to_string(kAlice) + " " + std::to_string(kAlice) + " 1\n";
    if (!write_text("/proc/self/setgroups", "deny") || !write_text("/proc/self/uid_map", same) ||
        !write_text("/proc/self/gid_map", same)) {
      return false;
    }
    const std::string file = place + "/a.c";
    return ::mount("tmpfs", place.c_str(), "tmpfs", 0, "mode=755") == 0 &&
           Fd(::open(file.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644)) &&
           write_text(file.c_str(), "of the container");
  };
}

/// Alice in a user namespace that root made, as with PrivateUsers= of a service.
bool be_alice_in_roots_namespace() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
  const Fd here(ends[0]);
  Fd there(ends[1]);
  const pid_t self = ::getpid();
  const pid_t writer = ::fork();
  if (writer == 0) {
    there.reset();
    char made{};
    static_cast<void>(::read(here.get(), &made, 1));
    const std::string folder = "/proc/" + std::to_string(self);
    const std::string same = std::to_string(kAlice) + " " + std::to_string(kAlice) + " 1\n";
    ::_exit(write_text((folder + "/uid_map").c_str(), same) && write_text((folder + "/gid_map").c_str(), same) ? 0 : 1);
  }
  const bool made = ::unshare(CLONE_NEWUSER) == 0;
  there.reset();
  int status = 1;
  ::waitpid(writer, &status, 0);
  return made && status == 0 && set_user(kAlice, kAlice);
}

TEST_CASE("sources are looked for in the process's own root, and shown to whoever made its user namespace") {
  if (::getuid() != 0) return;
  const Sources sources;
  const std::string place = sources.tree.path("inside");
  REQUIRE(::mkdir(place.c_str(), 0755) == 0);
  REQUIRE(::chmod(place.c_str(), 0755) == 0);
  const Program hers(in_her_container(place));
  if (!hers.is_ready()) {
    WARN("SKIP: no user namespaces here");
    return;
  }
  CHECK(read_for(kAlice, hers, place + "/a.c") == "of the container");
  CHECK(read_for(0, hers, place + "/a.c") == "of the container");
  CHECK(read_for(kBob, hers, place + "/a.c") == "its process belongs to another user");
  const Program roots(be_alice_in_roots_namespace);
  REQUIRE(roots.is_ready());
  CHECK(read_for(kAlice, roots, sources.path("a.c")) == "its process has capabilities that its user has not");
  CHECK(read_for(0, roots, sources.path("a.c")) == "text");
}

}  // namespace
}  // namespace flamed::symbolizer
