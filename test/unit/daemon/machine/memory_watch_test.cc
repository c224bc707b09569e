// SPDX-License-Identifier: Apache-2.0
#include "daemon/machine/memory_watch.h"

#include <filesystem>
#include <string>

#include "test/catch.h"
#include "test/unit/symbolizer_processes/temporary_directory.h"

namespace flamed::daemon {
namespace {

constexpr std::uint64_t kMiB = 1U << 20;

/// A cgroup v2, as the kernel shows it.
struct FakeGroup {
  FakeGroup(const std::string& current, const std::string& high, const std::string& max, std::uint64_t files) {
    directory.write("memory.current", current + "\n");
    directory.write("memory.high", high + "\n");
    directory.write("memory.max", max + "\n");
    directory.write("memory.stat", "anon 1\ninactive_file " + std::to_string(files) + "\nactive_file 0\nshmem 5\n");
  }
  [[nodiscard]] std::optional<MemoryWatch::Reading> read() const {
    return MemoryWatch(directory.path().string()).read();
  }
  test::TemporaryDirectory directory;
};

std::string mib(std::uint64_t count) { return std::to_string(count * kMiB); }

TEST_CASE("the lower of the two limits counts, and the page cache does not") {
  const auto reading = FakeGroup(mib(900), mib(1000), mib(1200), 100 * kMiB).read();
  REQUIRE(reading.has_value());
  CHECK(reading->limit_bytes == 1000 * kMiB);
  CHECK(reading->used_bytes == 800 * kMiB);
  CHECK(FakeGroup(mib(900), "max", mib(1200), 0).read()->limit_bytes == 1200 * kMiB);
}

TEST_CASE("without a limit nothing is freed") {
  CHECK_FALSE(FakeGroup(mib(900), "max", "max", 0).read().has_value());
  CHECK_FALSE(MemoryWatch(std::nullopt).read().has_value());
}

TEST_CASE("a limit that is set or changed later takes effect") {
  const FakeGroup group(mib(900), "max", "max", 0);
  const MemoryWatch watch(group.directory.path().string());
  CHECK_FALSE(watch.read().has_value());
  group.directory.write("memory.high", mib(1000) + "\n");
  REQUIRE(watch.read().has_value());
  CHECK(watch.read()->limit_bytes == 1000 * kMiB);
}

TEST_CASE("cgroup v1 is read likewise") {
  test::TemporaryDirectory group;
  group.write("memory.usage_in_bytes", mib(950) + "\n");
  group.write("memory.limit_in_bytes", mib(1000) + "\n");
  group.write("memory.stat", "cache 5\ntotal_inactive_file " + mib(10) + "\ntotal_active_file " + mib(20) + "\n");
  const auto reading = MemoryWatch(group.path().string()).read();
  REQUIRE(reading.has_value());
  CHECK(reading->used_bytes == 920 * kMiB);
  group.write("memory.limit_in_bytes", "9223372036854771712\n");
  CHECK_FALSE(MemoryWatch(group.path().string()).read().has_value());
}

TEST_CASE("memory is freed before the limit is reached, and enough that it isn't reached again at once") {
  CHECK(MemoryWatch::to_give_back({900 * kMiB, 1024 * kMiB}) == 0);
  CHECK(MemoryWatch::to_give_back({960 * kMiB, 1024 * kMiB}) == 0);
  CHECK(MemoryWatch::to_give_back({961 * kMiB, 1024 * kMiB}) == 65 * kMiB);
  CHECK(MemoryWatch::to_give_back({1100 * kMiB, 1024 * kMiB}) == 204 * kMiB);
}

TEST_CASE("the cgroup is found from /proc, in both versions and in containers") {
  test::TemporaryDirectory root;
  std::filesystem::create_directories(root.path().string() + "/system.slice/flamed.service");
  std::filesystem::create_directories(root.path().string() + "/memory/daemon");
  root.write("system.slice/flamed.service/memory.current", "1\n");
  root.write("memory/daemon/memory.usage_in_bytes", "1\n");
  root.write("memory/memory.usage_in_bytes", "1\n");
  CHECK(find_memory_group("0::/system.slice/flamed.service\n", root.path().string()) ==
        root.path().string() + "/system.slice/flamed.service");
  CHECK(find_memory_group("5:cpu,cpuacct:/x\n3:memory:/daemon\n0::/\n", root.path().string()) ==
        root.path().string() + "/memory/daemon");
  CHECK(find_memory_group("3:memory:/docker/0123\n", root.path().string()) == root.path().string() + "/memory");
  CHECK_FALSE(find_memory_group("0::/elsewhere\n", root.path().string()).has_value());
  CHECK_FALSE(find_memory_group("garbage\n", root.path().string()).has_value());
}

}  // namespace
}  // namespace flamed::daemon
