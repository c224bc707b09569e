#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Boots this machine's Debian release with Docker, Podman and containerd in an emulated machine without network, and asks
# flamed there what their containers are called, see test/vm/containers_guest.sh.
#
#   test/vm/containers.sh BUILD_DIR
#
# Root is needed to make the tree; nothing is mounted. The tree with the packages is kept in BUILD_DIR/vm-containers;
# VM_KEEP=1 keeps the disk, too.
set -euo pipefail

here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
build_dir=$(realpath "${1:?usage: containers.sh BUILD_DIR}")
# shellcheck source=/dev/null
suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-sid}")
readonly here build_dir suite work_dir=$build_dir/vm-containers

die() {
  printf 'vm/containers: %s\n' "$*" >&2
  exit 1
}
# shellcheck source=test/vm/machine.sh
source "$here/machine.sh"

((EUID == 0)) || die "this needs root"
for tool in mmdebstrap unshare qemu-system-x86_64 mke2fs python3; do
  command -v "$tool" >/dev/null || die "this needs $tool: apt-get install mmdebstrap qemu-system-x86 e2fsprogs python3"
done
[[ -x $build_dir/flamed ]] || die "nothing is built in $build_dir: run ./dev build first"

mkdir -p "$work_dir"
packages=systemd,systemd-sysv,dbus,udev,kmod,initramfs-tools,zstd,curl,procps,linux-image-cloud-amd64
packages+=,docker.io,containerd,podman,apparmor,busybox-static,$(libraries_of "$build_dir/flamed" | paste -sd,)
base=$work_dir/base-$(echo "$suite $packages" | sha256sum | cut -c1-12).tar
if [[ ! -e $base ]]; then
  rm -f "$work_dir"/base-*.tar
  "$here/../support/apt_sources.py" "$suite" >"$work_dir/sources.list"
  # mmdebstrap mounts /proc, /sys and /dev into the tree, in a mount namespace of its own, so that a later removal here
  # can't reach them. Only the tar file leaves it.
  # shellcheck disable=SC2016  # mmdebstrap's shell expands these.
  unshare --mount --propagation private -- mmdebstrap --mode=root --variant=minbase --include="$packages" \
    --customize-hook='rm -rf "$1"/var/cache/apt/archives/*.deb "$1"/var/lib/apt/lists/*' \
    "$suite" "$work_dir/new.tar" "$work_dir/sources.list"
  mv "$work_dir/new.tar" "$base"
fi

readonly tree=$work_dir/tree
rm -rf --one-file-system "$tree"
mkdir -p "$tree"
tar -C "$tree" -xf "$base"
DESTDIR=$tree meson install -C "$build_dir" --no-rebuild --quiet
chroot "$tree" systemd-sysusers
mkdir -p "$tree/opt/flamed-tests"
cp "$here/guest_support.sh" "$tree/opt/flamed-tests"
install -m 0755 "$here/containers_guest.sh" "$tree/opt/flamed-tests/guest.sh"
cp "$tree"/boot/vmlinuz-* "$work_dir/vmlinuz"
cp "$tree"/boot/initrd.img-* "$work_dir/initrd"
make_disk_of "$tree" "$work_dir/disk"
rm -rf --one-file-system "$tree"

rm -f "$work_dir/log" "$work_dir/log.console"
boot "$work_dir/disk" "$work_dir/vmlinuz" "$work_dir/initrd" "$work_dir/log"
[[ ${VM_KEEP:-} == 1 ]] || rm -f "$work_dir/disk"
has_passed "$work_dir/log"
