// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/process/root_directory.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <string>
#include <thread>

#include "base/file.h"
#include "test/catch.h"
#include "test/unit/symbolizer_processes/temporary_directory.h"

namespace flamed::symbolizer {
namespace {

constexpr uid_t kAlice = 64101;
constexpr uid_t kBob = 64102;

/// A directory tree of the test.
struct Fixture {
  test::TemporaryDirectory tree;
  RootDirectory root = RootDirectory::open(tree.path().string()).value();

  [[nodiscard]] std::uint64_t device() const {
    struct stat status {};
    REQUIRE(::stat(tree.path().c_str(), &status) == 0);
    return status.st_dev;
  }
  /// "text of the file", or the error's code.
  [[nodiscard]] std::string read(const std::string& path, uid_t user = kAlice, bool own = true) const {
    RootDirectory::Reader reader{user};
    if (own) reader.own_device = device();
    const Result<Fd> file = root.open_readable(path, reader);
    if (!file) return std::to_string(file.error().code());
    return read_fd(file->get(), 1 << 20).value();
  }
  void link(const std::string& target, const std::string& name) const {
    std::filesystem::create_directories(std::filesystem::path(tree.path(name)).parent_path());
    std::filesystem::create_symlink(target, tree.path(name));
  }
  void mode(const std::string& name, mode_t mode) const { REQUIRE(::chmod(tree.path(name).c_str(), mode) == 0); }
  void give(const std::string& name, uid_t user) const { REQUIRE(::lchown(tree.path(name).c_str(), user, user) == 0); }
};

const std::string kRefused = std::to_string(EACCES);

TEST_CASE("a world-readable file is opened for every user") {
  const Fixture fixture;
  fixture.tree.write("usr/lib/debug/a", "a");
  CHECK(fixture.read("/usr/lib/debug/a") == "a");
  CHECK(fixture.read("usr//lib/./debug/a") == "a");
  CHECK(fixture.read("/usr/lib/../lib/debug/a") == "a");
  CHECK(fixture.read("/../usr/lib/debug/a") == "a");
  CHECK(fixture.read("/usr/lib/debug/b") == std::to_string(ENOENT));
  CHECK(fixture.read("/usr/lib/debug/a/b") == std::to_string(ENOTDIR));
  CHECK(fixture.read("/usr/lib/debug") != "a");
}

TEST_CASE("a file that is not world-readable is not opened") {
  const Fixture fixture;
  fixture.tree.write("usr/secret", "s");
  for (const mode_t mode : {0600U, 0640U, 0604U, 0000U}) {
    CAPTURE(mode);
    fixture.mode("usr/secret", mode);
    CHECK(fixture.read("/usr/secret") == kRefused);
  }
  fixture.mode("usr/secret", 0644);
  for (const mode_t mode : {0700U, 0750U, 0705U, 0766U}) {
    CAPTURE(mode);
    fixture.mode("usr", mode);
    CHECK(fixture.read("/usr/secret") == kRefused);
  }
  fixture.mode("usr", 0711);
  CHECK(fixture.read("/usr/secret") == "s");
}

TEST_CASE("an owner's private file is opened for the owner, only on the file system whose owners are trusted") {
  const Fixture fixture;
  fixture.tree.write("home/debug", "d");
  fixture.mode("home/debug", 0600);
  fixture.mode("home", 0700);
  const uid_t us = ::getuid();
  CHECK(fixture.read("/home/debug", us) == "d");
  CHECK(fixture.read("/home/debug", us, /*own=*/false) == kRefused);
  CHECK(fixture.read("/home/debug", us + 1) == kRefused);
  fixture.mode("home/debug", 0044);
  CHECK(fixture.read("/home/debug", us) == kRefused);
}

TEST_CASE("links are followed inside of the tree, up to a limit") {
  const Fixture fixture;
  const uid_t us = ::getuid();
  fixture.tree.write("usr/lib/debug/a", "a");
  fixture.link("../lib/debug", "usr/share/relative");
  fixture.link("/usr/lib", "absolute");
  fixture.link("/../../../../../../../../etc/hostname", "out");
  fixture.link("round", "round");
  CHECK(fixture.read("/usr/share/relative/a", us) == "a");
  CHECK(fixture.read("/absolute/debug/a", us) == "a");
  CHECK(fixture.read("/absolute/debug/../debug/a", us) == "a");
  CHECK(fixture.read("/out", us) == std::to_string(ENOENT));
  CHECK(fixture.read("/round", us) == kRefused);
  std::string deep;
  for (int i = 0; i < 70; ++i) deep += "d/";
  fixture.tree.write(deep + "a", "a");
  CHECK(fixture.read("/" + deep + "a", us) == kRefused);
}

TEST_CASE("a link that belongs neither to root nor to the reader is not followed") {
  if (::getuid() != 0) return;  // only root can change a file's owner
  const Fixture fixture;
  fixture.tree.write("usr/a", "a");
  fixture.link("usr/a", "link");
  CHECK(fixture.read("/link") == "a");
  fixture.give("link", kAlice);
  CHECK(fixture.read("/link", kAlice) == "a");
  CHECK(fixture.read("/link", kBob) == kRefused);
  CHECK(fixture.read("/link", 0) == kRefused);
  // A folder may be a link as well.
  fixture.link("usr", "folder");
  fixture.give("folder", kAlice);
  CHECK(fixture.read("/folder/a", kBob) == kRefused);
}

TEST_CASE("a link does not lead to a file that its owner may not read") {
  if (::getuid() != 0) return;  // only root can change a file's owner
  const Fixture fixture;
  fixture.tree.write("root/secret", "s");
  fixture.mode("root/secret", 0600);
  fixture.link("/root/secret", "link");
  fixture.give("link", kAlice);
  CHECK(fixture.read("/link", kAlice) == kRefused);
  fixture.mode("root/secret", 0644);
  CHECK(fixture.read("/link", kAlice) == "s");
  fixture.mode("root", 0700);
  CHECK(fixture.read("/link", kAlice) == kRefused);
}

TEST_CASE("access control lists are not consulted") {
  if (::getuid() != 0) return;
  const Fixture fixture;
  const std::string path = fixture.tree.write("usr/a", "a");
  // u::rw-,u:64102:---,g::r--,m::r--,o::r--: everybody but one.
  const unsigned char list[] = {2, 0,    0,    0,   1,   0,   6,    0, 255, 255, 255, 255, 2,   0,    0,
                                0, 0x66, 0xfa, 0,   0,   4,   0,    4, 0,   255, 255, 255, 255, 0x10, 0,
                                4, 0,    255,  255, 255, 255, 0x20, 0, 4,   0,   255, 255, 255, 255};
  if (::setxattr(path.c_str(), "system.posix_acl_access", list, sizeof list, 0) != 0) return;  // this disk has none
  CHECK(fixture.read("/usr/a") == kRefused);
}

TEST_CASE("files of kernel file systems are not opened") {
  const RootDirectory host = RootDirectory::open("/").value();
  for (const char* path :
       {"/proc/version", "/proc/self/status", "/proc/sys/kernel/hostname", "/sys/kernel/uevent_seqnum"}) {
    CAPTURE(path);
    CHECK(host.find(path).ok());
    const Result<Fd> file = host.open_readable(path, {});
    REQUIRE_FALSE(file.ok());
    CHECK(file.error().message().find("is not on a disk but shown by the kernel") != std::string::npos);
    CHECK_FALSE(reopen_regular(host.find(path).value(), "it").ok());
  }
}

/// A member of his own group and of `kStaff`.
constexpr gid_t kStaff = 64300;

/// The tree's own mount, by its id, as if it were of that type.
std::string mounts_as(const Fixture& fixture, const std::string& type) {
  struct statx place {};
  REQUIRE(::statx(AT_FDCWD, fixture.tree.path().c_str(), 0, STATX_MNT_ID, &place) == 0);
  return std::to_string(place.stx_mnt_id) + " 1 0:99 / / rw - " + type + " /dev/vda1 rw\n";
}

/// "text of the file", or why it is refused.
std::string read_as(const Fixture& fixture, const std::string& path, uid_t user = kAlice,
                    const std::string& type = "ext4") {
  const Result<Fd> file = fixture.root.open_as(path, {user, {user, kStaff}}, mounts_as(fixture, type));
  return file ? read_fd(file->get(), 1 << 20).value() : file.error().message();
}

constexpr const char* kNotRead = "its owner, group and mode do not let the user read it";
constexpr const char* kNotSearched = "owner, group and mode of a folder on its path do not let the user search it";

/// A tree of root's that all users may enter.
struct OpenFixture : Fixture {
  OpenFixture() {
    mode("", 0755);
    tree.write("src/a", "a");
    mode("src", 0755);
    mode("src/a", 0644);
  }
  void own(const std::string& name, uid_t user, gid_t group, mode_t bits) const {
    REQUIRE(::chown(tree.path(name).c_str(), user, group) == 0);
    mode(name, bits);
  }
};

TEST_CASE("owner, group and mode of a file decide whether it is opened as a user") {
  if (::getuid() != 0) return;  // only root can change a file's owner
  const OpenFixture fixture;
  struct Case {
    uid_t owner;
    gid_t group;
    mode_t mode;
    bool is_read;
  };
  for (const auto& [owner, group, mode, is_read] :
       {Case{0, 0, 0644, true}, Case{0, 0, 0640, false}, Case{0, 0, 0600, false}, Case{0, 0, 0004, true},
        Case{kAlice, 0, 0400, true}, Case{kAlice, 0, 0244, false}, Case{kAlice, kStaff, 0044, false},
        Case{0, kStaff, 0640, true}, Case{0, kStaff, 0604, false}, Case{0, kAlice, 0040, true},
        Case{kBob, kBob, 0660, false}, Case{kBob, kBob, 0664, true},
        // The kernel shows these for owners that it does not know.
        Case{65534, 0, 0404, false}, Case{0, 65534, 0444, true}, Case{0, 65534, 0404, false}}) {
    CAPTURE(owner, group, mode);
    fixture.own("src/a", owner, group, mode);
    CHECK(read_as(fixture, "/src/a") == (is_read ? "a" : kNotRead));
  }
}

TEST_CASE("a file is not opened as a user who may not search each folder on its path, the top included") {
  if (::getuid() != 0) return;
  const OpenFixture fixture;
  fixture.tree.write("src/deep/b", "b");
  for (const char* folder : {"", "src", "src/deep"}) {
    CAPTURE(folder);
    fixture.mode(folder, 0700);
    CHECK(read_as(fixture, "/src/deep/b") == kNotSearched);
    CHECK(read_as(fixture, "/src/deep/none") == kNotSearched);
    fixture.own(folder, 0, kStaff, 0710);
    CHECK(read_as(fixture, "/src/deep/b") == "b");
    fixture.own(folder, 0, kStaff, 0701);
    CHECK(read_as(fixture, "/src/deep/b") == kNotSearched);
    fixture.own(folder, kAlice, 0, 0100);
    CHECK(read_as(fixture, "/src/deep/b") == "b");
    fixture.own(folder, 0, 0, 0755);
  }
  CHECK(read_as(fixture, "/src/none") == "No such file or directory");
  CHECK(read_as(fixture, "/src/a/b") == "Not a directory");
}

TEST_CASE("a path or link that leads above the top is refused when a file is opened as a user") {
  if (::getuid() != 0) return;  // links of others than root and the user are not followed
  const OpenFixture fixture;
  const std::string out = "its path leads out of the root directory";
  fixture.link("../../etc/hostname", "src/out");
  fixture.link("../src/a", "src/within");
  fixture.link("/src/a", "src/absolute");
  fixture.link("round", "src/round");
  CHECK(read_as(fixture, "/../src/a") == out);
  CHECK(read_as(fixture, "/src/../../src/a") == out);
  CHECK(read_as(fixture, "/src/out") == out);
  CHECK(read_as(fixture, "/src/within") == "a");
  CHECK(read_as(fixture, "/src/absolute") == "a");
  CHECK(read_as(fixture, "/src/round") == "too many links on its path");
  fixture.give("src/within", kBob);
  CHECK(read_as(fixture, "/src/within") == "a link on its path belongs to another user");
  CHECK(read_as(fixture, "/src/within", kBob) == "a");
}

TEST_CASE("only regular files are opened as a user") {
  const OpenFixture fixture;
  REQUIRE(::mkfifo(fixture.tree.path("src/fifo").c_str(), 0666) == 0);
  fixture.mode("src/fifo", 0666);
  CHECK(read_as(fixture, "/src/fifo") == "it is not a regular file");
  CHECK(read_as(fixture, "/src") == "it is not a regular file");
  if (::getuid() != 0) return;
  if (::mknod(fixture.tree.path("src/device").c_str(), S_IFCHR | 0666, makedev(1, 5)) != 0) return;
  fixture.mode("src/device", 0666);
  CHECK(read_as(fixture, "/src/device") == "it is not a regular file");
}

TEST_CASE("a file on a file system that may not answer is not opened as a user") {
  const OpenFixture fixture;
  for (const char* type : {"fuse.sshfs", "nfs4", "autofs", "proc", "newfs"}) {
    CHECK(read_as(fixture, "/src/a", kAlice, type) ==
          std::string("it is not on a disk of this machine, but on ") + type);
  }
  // The process's own mounts count where they are known, and flamed's where they are not.
  const Result<Fd> hidden = fixture.root.open_as("/src/a", {kAlice}, "1 1 0:99 / / rw - nfs4 server:/ rw\n");
  CHECK((hidden || hidden.error().message() == "its file system is not known"));
  const Result<RootDirectory> host = RootDirectory::open("/");
  REQUIRE(host.ok());
  const Result<Fd> shown = host->open_as("/proc/self/status", {0}, read_file("/proc/self/mountinfo", 4U << 20).value());
  REQUIRE_FALSE(shown.ok());
  CHECK(shown.error().message() == "it is not on a disk of this machine, but on proc");
}

TEST_CASE("what has an access control list is not opened as a user") {
  if (::getuid() != 0) return;
  const OpenFixture fixture;
  // u::rwx,u:64102:---,g::r-x,m::r-x,o::r-x: everybody but one.
  const unsigned char list[] = {2, 0,    0,    0,   1,   0,   7,    0, 255, 255, 255, 255, 2,   0,    0,
                                0, 0x66, 0xfa, 0,   0,   4,   0,    5, 0,   255, 255, 255, 255, 0x10, 0,
                                5, 0,    255,  255, 255, 255, 0x20, 0, 5,   0,   255, 255, 255, 255};
  const auto set = [&](const char* name) {
    return ::setxattr(fixture.tree.path(name).c_str(), "system.posix_acl_access", list, sizeof list, 0) == 0;
  };
  if (!set("src/a")) {
    WARN("SKIP: no access control lists on this disk");
    return;
  }
  CHECK(read_as(fixture, "/src/a") == "it has an access control list");
  REQUIRE(::removexattr(fixture.tree.path("src/a").c_str(), "system.posix_acl_access") == 0);
  fixture.mode("src/a", 0644);
  CHECK(read_as(fixture, "/src/a") == "a");
  REQUIRE(set("src"));
  CHECK(read_as(fixture, "/src/a") == "a folder on its path has an access control list");
}

TEST_CASE("a file that is swapped meanwhile is never read in another one's place") {
  if (::getuid() != 0) return;
  const OpenFixture fixture;
  fixture.tree.write("secret", "s");
  fixture.mode("secret", 0600);
  fixture.tree.write("closed/a", "s");
  fixture.mode("closed", 0700);
  fixture.link("/secret", "link");
  std::atomic<bool> ends = false;
  std::thread swapper([&] {
    const auto swap = [&](const char* one, const char* other) {
      ::renameat2(AT_FDCWD, fixture.tree.path(one).c_str(), AT_FDCWD, fixture.tree.path(other).c_str(),
                  RENAME_EXCHANGE);
    };
    while (!ends) {
      for (const char* other : {"secret", "link"}) {
        swap("src/a", other);
        swap("src/a", other);
      }
      swap("src", "closed");
      swap("src", "closed");
    }
  });
  std::size_t read = 0;
  std::size_t refused = 0;
  bool is_secret = false;
  for (int i = 0; (i < 20'000 || read == 0) && !is_secret; ++i) {
    const std::string got = read_as(fixture, "/src/a");
    is_secret = got == "s";
    ++(got == "a" ? read : refused);
  }
  ends = true;
  swapper.join();
  CHECK_FALSE(is_secret);
  CHECK(refused > 0);
}

}  // namespace
}  // namespace flamed::symbolizer
