// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/process/root_directory.h"

#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>

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

}  // namespace
}  // namespace flamed::symbolizer
