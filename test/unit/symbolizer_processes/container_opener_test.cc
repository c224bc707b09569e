// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/opener/container_opener.h"

#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "base/file.h"
#include "test/catch.h"
#include "test/unit/symbolizer_processes/temporary_directory.h"

namespace flamed::symbolizer {
namespace {

const std::string kId(64, 'a');

std::string text_of(const ContainerFiles::File& file) { return read_fd(file.file.get(), 1 << 20).value(); }

TEST_CASE("a container's log tells its names, and no file is opened then") {
  const test::TemporaryDirectory host;
  host.write("var/log/containers/p_n_c-" + kId + ".log", "");
  host.write("var/lib/docker/containers/" + kId + "/config.v2.json", "{}");
  const ContainerFiles found = find_container_files(kId, host.path().string());
  CHECK(found.log_name == "p_n_c-" + kId + ".log");
  CHECK(found.files.empty());
}

TEST_CASE("the files of each runtime are found") {
  const test::TemporaryDirectory host;
  host.write("var/log/containers/p_n_c-" + std::string(64, 'b') + ".log", "");
  host.write("var/lib/docker/containers/" + kId + "/config.v2.json", "docker");
  host.write("run/containerd/io.containerd.runtime.v2.task/k8s.io/" + kId + "/config.json", "containerd");
  host.write("var/lib/containers/storage/overlay-containers/containers.json", "podman");
  const ContainerFiles found = find_container_files(kId, host.path().string());
  CHECK(found.log_name.empty());
  REQUIRE(found.files.size() == 3);
  CHECK(found.files[0].format == ContainerFormat::kDockerConfig);
  CHECK(text_of(found.files[0]) == "docker");
  CHECK(found.files[1].format == ContainerFormat::kOciConfig);
  CHECK(text_of(found.files[1]) == "containerd");
  CHECK(found.files[2].format == ContainerFormat::kContainerStorage);
  CHECK(text_of(found.files[2]) == "podman");
}

TEST_CASE("links, folders and files that everybody may write are not opened") {
  const test::TemporaryDirectory host;
  const std::string open = host.write("var/lib/docker/containers/" + kId + "/config.v2.json", "docker");
  REQUIRE(::chmod(open.c_str(), 0666) == 0);
  const std::string target = host.write("secret", "secret");
  const std::string tasks = host.path().string() + "/run/containerd/io.containerd.runtime.v2.task/";
  std::filesystem::create_directories(tasks + "default/" + kId);
  std::filesystem::create_symlink(target, tasks + "default/" + kId + "/config.json");
  std::filesystem::create_directories(tasks + "moby/" + kId + "/config.json");
  CHECK(find_container_files(kId, host.path().string()).files.empty());
}

TEST_CASE("what is no id finds nothing") {
  const test::TemporaryDirectory host;
  host.write("var/lib/docker/containers/config.v2.json", "docker");
  for (const char* id : {"", ".", "..", "web", "../../etc"}) {
    CHECK(find_container_files(id, host.path().string()).files.empty());
  }
}

}  // namespace
}  // namespace flamed::symbolizer
