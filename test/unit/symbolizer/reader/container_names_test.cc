// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/reader/container_names.h"

#include <string>

#include "test/catch.h"

namespace flamed::symbolizer {
namespace {

const std::string kId = "3f5a9c0d1e2b4f6a8c0d1e2f3a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d";
const std::string kOther(64, '0');

ContainerNames names_in(const std::string& json, ContainerFormat format) {
  const Result<ContainerNames> names = parse_container_file(json, format, kId);
  REQUIRE(names);
  return *names;
}

TEST_CASE("a container of Kubernetes is named by the annotations of containerd's CRI plugin") {
  // As containerd 1.7 writes it, shortened.
  const std::string json = R"({"ociVersion":"1.1.0","process":{"user":{"uid":0,"gid":0},"args":["nginx"],
      "env":["PATH=/bin","SECRET=annotations"]},"root":{"path":"rootfs"},"mounts":[{"destination":"/proc"}],
      "annotations":{"io.kubernetes.cri.container-name":"nginx","io.kubernetes.cri.container-type":"container",
      "io.kubernetes.cri.image-name":"docker.io/library/nginx:1","io.kubernetes.cri.sandbox-id":")" +
                           kOther + R"(","io.kubernetes.cri.sandbox-name":"web-7d9-x2x",
      "io.kubernetes.cri.sandbox-namespace":"shop","io.kubernetes.cri.sandbox-uid":"u"},
      "linux":{"namespaces":[{"type":"pid"}]}})";
  CHECK(names_in(json, ContainerFormat::kOciConfig) == ContainerNames{"nginx", "web-7d9-x2x", "shop"});
}

TEST_CASE("a container of CRI-O has the annotations of the kubelet, and one of nerdctl its own") {
  CHECK(names_in(R"({"annotations":{"io.kubernetes.container.name":"c","io.kubernetes.pod.name":"p",
                     "io.kubernetes.pod.namespace":"n"}})",
                 ContainerFormat::kOciConfig) == ContainerNames{"c", "p", "n"});
  CHECK(names_in(R"({"annotations":{"nerdctl/name":"db"}})", ContainerFormat::kOciConfig) ==
        ContainerNames{"db", "", ""});
}

TEST_CASE("a container of Docker has its name, and labels if the kubelet has started it") {
  const std::string begin = R"({"StreamConfig":{},"State":{"Running":true,"Pid":123},"ID":")" + kId +
                            R"(","Config":{"Hostname":"a","Env":["Name=secret"],"Labels":{)";
  CHECK(names_in(begin + R"("x":"y"}},"Name":"/web","Driver":"overlay2"})", ContainerFormat::kDockerConfig) ==
        ContainerNames{"web", "", ""});
  CHECK(names_in(begin + R"("io.kubernetes.container.name":"c","io.kubernetes.pod.name":"p",
                            "io.kubernetes.pod.namespace":"n"}},"Name":"/k8s_c_p_n_u_0"})",
                 ContainerFormat::kDockerConfig) == ContainerNames{"c", "p", "n"});
}

TEST_CASE("a container of Podman is looked up by its id") {
  const std::string json = R"([{"id":")" + kOther + R"(","names":["other"],"image":"i","layer":"l","metadata":"{}",
      "created":"2026-01-31T14:05:00Z","flags":{"ProcessLabel":""}},{"id":")" +
                           kId + R"(","names":["web","alias"],"big-data-names":["x"],"flags":{"names":["z"]}}])";
  CHECK(names_in(json, ContainerFormat::kContainerStorage) == ContainerNames{"web", "", ""});
  CHECK(parse_container_file(json, ContainerFormat::kContainerStorage, std::string(64, 'f')).value() ==
        ContainerNames());
}

TEST_CASE("texts elsewhere in the file are no names") {
  CHECK(names_in(R"({"process":{"annotations":{"nerdctl/name":"a"}},"env":["nerdctl/name"],"x":{"nerdctl/name":"b"}})",
                 ContainerFormat::kOciConfig) == ContainerNames());
  CHECK(names_in(R"({"Config":{"Name":"/a","Labels":{"deep":{"io.kubernetes.pod.name":"b"}}},"Names":["c"]})",
                 ContainerFormat::kDockerConfig) == ContainerNames());
}

TEST_CASE("names are safe to print, short, and have no slash") {
  const ContainerNames names =
      names_in(R"({"annotations":{"nerdctl/name":"a/../b\u001b[2J\n)" + std::string(1000, 'x') + R"("}})",
               ContainerFormat::kOciConfig);
  CHECK(names.name.size() <= kMaxContainerNameBytes);
  CHECK(names.name.find_first_of("/\n\x1b") == std::string::npos);
}

TEST_CASE("what is no such file is an error without a word of its content") {
  for (const std::string& json : {std::string("secret"), std::string(R"({"annotations":{"a":"secret)"),
                                  std::string(R"({"a":)") + std::string(100'000, '['), std::string()}) {
    for (const auto format :
         {ContainerFormat::kOciConfig, ContainerFormat::kDockerConfig, ContainerFormat::kContainerStorage}) {
      const Result<ContainerNames> names = parse_container_file(json, format, kId);
      REQUIRE_FALSE(names);
      CHECK(names.error().message().find("secret") == std::string::npos);
    }
  }
}

TEST_CASE("the kubelet's link to a log has all three names") {
  CHECK(parse_container_log_name("web-7d9-x2x_shop_nginx-" + kId + ".log", kId) ==
        ContainerNames{"nginx", "web-7d9-x2x", "shop"});
  for (const std::string& name :
       {"web_shop_nginx-" + kOther + ".log", "web_shop-" + kId + ".log", "a_b_c_d-" + kId + ".log",
        "web_shop_nginx-" + kId, "__-" + kId + ".log", "web_shop_nginx" + kId + ".log", kId + ".log", std::string()}) {
    CAPTURE(name);
    CHECK(parse_container_log_name(name, kId) == ContainerNames());
  }
  const ContainerNames hostile = parse_container_log_name("a\x1b[2J_b\n_c-" + kId + ".log", kId);
  CHECK((hostile.name + hostile.pod + hostile.pod_namespace).find_first_of("\x1b\n") == std::string::npos);
}

}  // namespace
}  // namespace flamed::symbolizer
