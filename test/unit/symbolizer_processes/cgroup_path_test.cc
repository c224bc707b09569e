// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/process/cgroup_path.h"

#include <string>

#include "test/catch.h"

namespace flamed::symbolizer {
namespace {

const std::string kId = "3f5a9c0d1e2b4a6f8c7d9e0f1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d";
const std::string kOther = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

TEST_CASE("a cgroup's path names the unit and the container") {
  struct Case {
    std::string path;
    std::string unit;
    std::string container;
  };
  const std::string pod = "pod8f3c1c5e-0b7e-4a53-9a6e-0d0f3d6f7c11";
  const Case cases[] = {
      // systemd
      {"/", "", ""},
      {"/init.scope", "init.scope", ""},
      {"/system.slice/nginx.service", "nginx.service", ""},
      {"/system.slice/system-getty.slice/getty@tty1.service", "getty@tty1.service", ""},
      {"/system.slice/system-postgresql.slice/postgresql@15-main.service", "postgresql@15-main.service", ""},
      {"/system.slice/dbus.socket", "dbus.socket", ""},
      {"/system.slice/systemd-udevd.service/udev", "systemd-udevd.service", ""},
      {"/user.slice/user-1000.slice/session-3.scope", "session-3.scope", ""},
      {"/user.slice/user-1000.slice/user@1000.service/init.scope", "user@1000.service", ""},
      {"/user.slice/user-1000.slice/user@1000.service/app.slice/app-firefox-1234.scope", "app-firefox-1234.scope", ""},
      {"/user.slice/user-1000.slice/user@1000.service/session.slice/pipewire.service", "pipewire.service", ""},
      {"/user.slice/user-1000.slice/user@1000.service/app.slice/app-gnome\\x2dterminal.slice/vte-spawn-1.scope",
       "vte-spawn-1.scope", ""},
      {"/system.slice/run-r4a6b7c8d9e0f4a6b7c8d9e0f1a2b3c4d.scope", "run-r4a6b7c8d9e0f4a6b7c8d9e0f1a2b3c4d.scope", ""},
      {"/user.slice", "", ""},
      // Docker, by systemd and by cgroupfs
      {"/system.slice/docker-" + kId + ".scope", "docker-" + kId + ".scope", kId},
      {"/docker/" + kId, "", kId},
      {"/docker/" + kId + "/init", "", kId},
      {"/system.slice/docker.service/docker/" + kId, "docker.service", kId},
      {"/system.slice/docker-" + kId + ".scope/init.scope", "docker-" + kId + ".scope", kId},
      {"/system.slice/docker-" + kId + ".scope/system.slice/nginx.service", "nginx.service", kId},
      {"/docker/" + kOther + "/docker/" + kId, "", kId},
      // Kubernetes: containerd, CRI-O, Docker
      {"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod8f3c1c5e.slice/cri-containerd-" + kId + ".scope",
       "cri-containerd-" + kId + ".scope", kId},
      {"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod8f3c.slice/crio-" + kId + ".scope",
       "crio-" + kId + ".scope", kId},
      {"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod8f3c.slice/crio-" + kId + ".scope/container",
       "crio-" + kId + ".scope", kId},
      {"/kubepods.slice/kubepods-pod8f3c.slice/crio-conmon-" + kId + ".scope", "crio-conmon-" + kId + ".scope", ""},
      {"/kubepods.slice/kubepods-pod8f3c.slice/docker-" + kId + ".scope", "docker-" + kId + ".scope", kId},
      {"/kubepods/burstable/" + pod + "/" + kId, "", kId},
      {"/kubepods/" + pod, "", ""},
      {"/system.slice/containerd.service/kubepods-burstable-pod8f3c.slice:cri-containerd:" + kId, "containerd.service",
       kId},
      {"/system.slice/docker-" + kOther + ".scope/kubelet.slice/kubelet-kubepods.slice/cri-containerd-" + kId +
           ".scope",
       "cri-containerd-" + kId + ".scope", kId},
      // Podman
      {"/machine.slice/libpod-" + kId + ".scope", "libpod-" + kId + ".scope", kId},
      {"/machine.slice/libpod-" + kId + ".scope/container", "libpod-" + kId + ".scope", kId},
      {"/machine.slice/libpod-conmon-" + kId + ".scope", "libpod-conmon-" + kId + ".scope", ""},
      {"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + kId + ".scope/container",
       "libpod-" + kId + ".scope", kId},
      {"/libpod_parent/libpod-" + kId, "", kId},
      // Amazon ECS
      {"/ecs/7d2f6a31b1c14c0e8a2f/" + kId, "", kId},
      // LXC, machines
      {"/lxc.payload.web", "", "web"},
      {"/lxc.payload.web/system.slice/nginx.service", "nginx.service", "web"},
      {"/lxc.payload.web/init.scope", "init.scope", "web"},
      {"/lxc.monitor.web", "", ""},
      {"/lxc/web", "", "web"},
      {"/machine.slice/machine-debian.scope", "machine-debian.scope", "debian"},
      {"/machine.slice/machine-qemu\\x2d1\\x2dvm.scope/libvirt/emulator", "machine-qemu\\x2d1\\x2dvm.scope",
       "qemu-1-vm"},
      {"/machine.slice/systemd-nspawn@build.service/payload/system.slice/cron.service", "cron.service", "build"},
      // Paths that only resemble these
      {"", "", ""},
      {"///", "", ""},
      {"/system.slice/.service", "", ""},
      {"/docker/" + kId.substr(1), "", ""},
      {"/docker/" + kId + "0", "", ""},
      {"/docker/" + std::string(64, 'G'), "", ""},
      {"/machine.slice/machine-.scope", "machine-.scope", ""},
      {"/" + std::string(300, 'a') + ".service", "", ""},
  };
  for (const Case& c : cases) {
    INFO(c.path);
    const CgroupNames names = parse_cgroup_path(c.path);
    CHECK(names.unit == c.unit);
    CHECK(names.container == c.container);
  }
}

TEST_CASE("the path comes from the unified hierarchy, or from cgroup v1 if that is in use") {
  CHECK(parse_proc_cgroup("0::/system.slice/cron.service\n").path == "/system.slice/cron.service");
  CHECK(parse_proc_cgroup("0::/system.slice/cron.service\n").unified);
  const CgroupLine hybrid = parse_proc_cgroup(
      "12:pids:/docker/x\n2:cpu,cpuacct:/\n1:name=systemd:/system.slice/cron.service\n0::/system.slice/cron.service\n");
  CHECK(hybrid.unified);
  const CgroupLine old = parse_proc_cgroup("4:memory:/docker/x\n1:name=systemd:/\n0::/\n");
  CHECK(old.path == "/docker/x");
  CHECK_FALSE(old.unified);
  CHECK(parse_proc_cgroup("3:cpuacct,cpu:/box\n").path == "/box");
  CHECK(parse_proc_cgroup("1:name=systemd:/\n0::/\n").path == "/");
  CHECK(parse_proc_cgroup("1:name=systemd:/\n0::/\n").unified);
  CHECK(parse_proc_cgroup("0::/with:colon\n").path == "/with:colon");
  CHECK(parse_proc_cgroup("0::/no newline").path == "/no newline");
  CHECK(parse_proc_cgroup("").path.empty());
  CHECK(parse_proc_cgroup("garbage\n::\n0:\n0::relative\n").path.empty());
}

TEST_CASE("a path that is relative to a cgroup namespace leads up as far as it says") {
  CHECK(levels_above("/") == 0);
  CHECK(levels_above("/system.slice") == 0);
  CHECK(levels_above("/..") == 1);
  CHECK(levels_above("/../../init.scope") == 2);
  CHECK(levels_above("/..a") == 0);
}

TEST_CASE("a path that is relative to a cgroup namespace is found in the hierarchy") {
  CHECK(path_in_hierarchy("", "/../x") == "/../x");
  CHECK(path_in_hierarchy("/kubepods/pod1/flamed", "/") == "/kubepods/pod1/flamed");
  CHECK(path_in_hierarchy("/kubepods/pod1/flamed", "/inner") == "/kubepods/pod1/flamed/inner");
  CHECK(path_in_hierarchy("/kubepods/pod1/flamed", "/..") == "/kubepods/pod1");
  CHECK(path_in_hierarchy("/kubepods/pod1/flamed", "/../../pod2/web") == "/kubepods/pod2/web");
  CHECK(path_in_hierarchy("/kubepods/pod1/flamed", "/../../../init.scope") == "/init.scope");
  CHECK(path_in_hierarchy("/kubepods/pod1/flamed", "/../../..") == "/");
  CHECK(path_in_hierarchy("/a", "/../../../b") == "/b");
}

}  // namespace
}  // namespace flamed::symbolizer
