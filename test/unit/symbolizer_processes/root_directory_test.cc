// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/root_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/file.h"
#include "test/catch.h"
#include "test/unit/symbolizer_processes/temporary_directory.h"

namespace flamed::symbolizer {
namespace {

constexpr uid_t kUser = 64'901;
constexpr uid_t kOther = 64'902;

struct Fixture {
  Fixture() { REQUIRE(::chmod(top.path().c_str(), 0755) == 0); }
  /// "" when it was opened, and why it was not.
  [[nodiscard]] std::string why_not(uid_t user, const std::string& path) const {
    const Result<RootDirectory> root = RootDirectory::open(top.path().string());
    REQUIRE(root.ok());
    const Result<Fd> file = root->open_regular_of(user, path);
    if (!file) return file.error().message();
    CHECK(read_fd(file->get(), 100).value() == "text");
    return "";
  }
  void own(const std::string& name, uid_t user) const {
    REQUIRE(::lchown((top.path() / name).c_str(), user, user) == 0);
  }
  void allow(const std::string& name, mode_t mode) const { REQUIRE(::chmod((top.path() / name).c_str(), mode) == 0); }
  void link(const std::string& to, const std::string& name) const {
    std::filesystem::create_symlink(to, top.path() / name);
  }
  test::TemporaryDirectory top;
};

TEST_CASE("one's own files are opened, over links and dots that do not lead out of the root") {
  const Fixture f;
  f.top.write("a/b/file", "text");
  f.link("/a/b", "absolute");
  f.link("../b/file", "a/b/relative");
  f.link("../../../../../a", "out");
  f.link("loop", "loop");
  const uid_t me = ::getuid();
  for (const char* path : {"/a/b/file", "a//b/./file", "/absolute/file", "/a/b/relative", "/out/b/file",
                           "/../../a/b/../b/file", "/a/b/../../absolute/relative"}) {
    CAPTURE(path);
    CHECK(f.why_not(me, path).empty());
  }
  CHECK(f.why_not(me, "/loop") == "/loop leads over too many links");
  CHECK(f.why_not(me, "/none").ends_with("No such file or directory"));
  CHECK(f.why_not(me, "/a/b/file/more").ends_with("Not a directory"));
  CHECK(f.why_not(me, "/a/b") == "/a/b is not a regular file");
  CHECK(f.why_not(me, "") == " is not a regular file");
  CHECK(f.why_not(me, "/").ends_with(" is not a regular file"));
}

TEST_CASE("a user gets no file that he could not read himself, and none of somebody else's") {
  if (::geteuid() != 0) return;  // files of several users are root's to make
  const Fixture f;
  f.top.write("roots/file", "text");
  f.top.write("his/file", "text");
  f.own("his", kUser);
  f.own("his/file", kUser);
  f.allow("roots", 0755);
  f.allow("his", 0700);
  f.allow("roots/file", 0644);
  f.allow("his/file", 0400);
  CHECK(f.why_not(kUser, "/roots/file").empty());
  CHECK(f.why_not(kUser, "/his/file").empty());
  CHECK(f.why_not(kOther, "/his/file") == "/his/file lies where its user may not look");
  CHECK(f.why_not(0, "/his/file") == "/his/file belongs to somebody else");
  f.allow("his", 0755);
  CHECK(f.why_not(kOther, "/his/file") == "/his/file belongs to somebody else");
  f.allow("roots/file", 0640);
  CHECK(f.why_not(kUser, "/roots/file") == "/roots/file may not be read by its user");
  CHECK(f.why_not(0, "/roots/file").empty());
  f.allow("roots/file", 0644);
  f.allow("roots", 0750);
  CHECK(f.why_not(kUser, "/roots/file") == "/roots/file lies where its user may not look");
  CHECK(f.why_not(0, "/roots/file").empty());
}

TEST_CASE("nobody is led over somebody else's link") {
  if (::geteuid() != 0) return;
  const Fixture f;
  f.top.write("file", "text");
  f.allow("file", 0644);
  f.link("file", "link");
  CHECK(f.why_not(kUser, "/link").empty());
  f.own("link", kUser);
  CHECK(f.why_not(kUser, "/link").empty());
  CHECK(f.why_not(0, "/link") == "/link leads over somebody else's link");
  CHECK(f.why_not(kOther, "/link") == "/link leads over somebody else's link");
}

TEST_CASE("what the kernel shows as files is not opened") {
  const Result<RootDirectory> root = RootDirectory::open("/");
  REQUIRE(root.ok());
  for (const char* path : {"/proc/self/status", "/sys/kernel/mm/transparent_hugepage/enabled", "/proc/version"}) {
    const Result<Fd> file = root->open_regular_of(0, path);
    REQUIRE_FALSE(file.ok());
    CHECK(file.error().message() == std::string(path) + " leads to what the kernel shows as files");
  }
}

}  // namespace
}  // namespace flamed::symbolizer
