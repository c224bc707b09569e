// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/names/debian_packages.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "test/catch.h"

namespace flamed::symbolizer {
namespace {

struct Lists {
  Lists() { REQUIRE(::mkdtemp(folder.data()) != nullptr); }
  ~Lists() { std::filesystem::remove_all(folder); }
  Lists(const Lists&) = delete;
  Lists& operator=(const Lists&) = delete;
  void write(const std::string& name, const std::string& content, std::int64_t changed_s) const {
    std::ofstream(folder + "/" + name) << content;
    const timespec times[2] = {{changed_s, 0}, {changed_s, 0}};
    REQUIRE(::utimensat(AT_FDCWD, folder.c_str(), times, 0) == 0);
  }
  std::string folder = "/tmp/flamed-dpkg-XXXXXX";
};

TEST_CASE("a file's package is found by the lists, with and without an architecture") {
  const Lists lists;
  lists.write("libssl3:amd64.list", "/.\n/usr/lib\n/usr/lib/libssl.so.3\n/usr/share/doc/libssl3/copyright\n", 1000);
  lists.write("dash.list", "/.\n/bin/dash", 1000);
  lists.write("dash.md5sums", "/bin/other\n", 1000);
  DebianPackages packages(lists.folder);
  CHECK(packages.owner_of("/usr/lib/libssl.so.3") == "libssl3");
  CHECK(packages.owner_of("/bin/dash") == "dash");
  CHECK(packages.owner_of("/usr/bin/dash") == "dash");
  for (const char* path : {"/usr/lib/libssl.so", "/opt/dash", "/bin/other", ""}) CHECK(packages.owner_of(path).empty());
}

TEST_CASE("the lists are read again when the folder has changed, and only then") {
  const Lists lists;
  lists.write("a.list", "/bin/a\n", 1000);
  DebianPackages packages(lists.folder);
  CHECK(packages.owner_of("/bin/b").empty());
  lists.write("b.list", "/bin/b\n", 1000);
  CHECK(packages.owner_of("/bin/b").empty());
  lists.write("b.list", "/bin/b\n", 1001);
  CHECK(packages.owner_of("/bin/b") == "b");
}

TEST_CASE("without dpkg no package is known") { CHECK(DebianPackages("/nonexistent").owner_of("/bin/sh").empty()); }

}  // namespace
}  // namespace flamed::symbolizer
