// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/process/mount_info.h"

#include "test/catch.h"

namespace flamed::symbolizer {
namespace {

constexpr const char* kMounts =
    "22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n"
    "30 22 0:26 / /mnt/with\\040blank rw,nosuid shared:5 master:2 - fuse.sshfs host:/ rw,user_id=0\n"
    "31 22 0:27 / /data rw - nfs4 server:/data rw\n"
    "garbage\n"
    "32 22 0:28 / /merged rw - overlay overlay rw\n";

std::string_view type_on_the_way(std::string_view mountinfo, std::string_view path) {
  const std::optional<DoubtfulMount> mount = may_hang_on_the_way(mountinfo, path);
  return mount ? mount->type : std::string_view();
}

TEST_CASE("a device's file system is found, with and without optional fields") {
  CHECK(file_system_of(kMounts, {254, 1, 5}) == "ext4");
  CHECK(file_system_of(kMounts, {0, 26, 0}) == "fuse.sshfs");
  CHECK(file_system_of(kMounts, {0, 27, 0}) == "nfs4");
  CHECK(file_system_of(kMounts, {0, 28, 0}) == "overlay");
  CHECK(file_system_of(kMounts, {0, 2, 0}).empty());
  CHECK(file_system_of("", {0, 2, 0}).empty());
  CHECK(file_system_of("1 2 0:5", {0, 5, 0}).empty());
}

TEST_CASE("a mount's file system is found by its id") {
  constexpr std::string_view kTwo =
      "22 1 8:1 / / rw - ext4 /dev/vda1 rw\n222 22 0:45 / /a rw shared:2 - fuse.sshfs b rw\n";
  CHECK(file_system_of_mount(kTwo, 22) == "ext4");
  CHECK(file_system_of_mount(kTwo, 222) == "fuse.sshfs");
  CHECK(file_system_of_mount(kTwo, 2).empty());
  CHECK(file_system_of_mount("", 22).empty());
  CHECK(file_system_of_mount("22", 22).empty());
}

TEST_CASE("file systems that may hang on a path are known without accessing it") {
  CHECK(type_on_the_way(kMounts, "/data") == "nfs4");
  CHECK(may_hang_on_the_way(kMounts, "/data")->device == "0:27");
  CHECK(type_on_the_way(kMounts, "/data/tmp") == "nfs4");
  CHECK(type_on_the_way(kMounts, "/mnt/with blank/tmp") == "fuse.sshfs");
  CHECK(type_on_the_way(kMounts, "/database").empty());
  CHECK(type_on_the_way(kMounts, "/merged/tmp").empty());
  CHECK(type_on_the_way(kMounts, "/tmp").empty());
  CHECK(type_on_the_way("", "/tmp").empty());
}

TEST_CASE("a process's files are read even if its root may hang") {
  CHECK(type_on_the_way("22 1 0:1 / / rw - nfs4 server:/ rw\n", "/tmp").empty());
}

TEST_CASE("a mount over another does not hide file systems earlier in the path") {
  CHECK(type_on_the_way("22 1 0:1 / /net rw - nfs4 server:/ rw\n23 1 0:2 / /net/tmp rw - tmpfs tmpfs rw\n",
                        "/net/tmp") == "nfs4");
}

TEST_CASE("among several mounts in a path the innermost counts, and the last one at the same place") {
  const auto device = [](std::string_view path) {
    return may_hang_on_the_way(
               "22 1 0:1 / /net rw - nfs4 server:/ rw\n23 22 0:2 / /net/a rw - fuse f rw\n"
               "24 1 0:3 / /net rw - cifs other:/ rw\n",
               path)
        ->device;
  };
  CHECK(device("/net/a/b") == "0:2");
  CHECK(device("/net/b") == "0:3");
}

TEST_CASE("only file systems on this machine's disks and memory cannot hang") {
  for (const char* local : {"ext4", "xfs", "btrfs", "tmpfs", "overlay", "squashfs"}) CHECK_FALSE(may_hang(local));
  for (const char* other : {"fuse", "fuse.sshfs", "fuseblk", "nfs4", "cifs", "9p", "ceph", "virtiofs", ""}) {
    CAPTURE(other);
    CHECK(may_hang(other));
  }
}

}  // namespace
}  // namespace flamed::symbolizer
