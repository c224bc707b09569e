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

need_root_and_tools
[[ -x $build_dir/flamed ]] || die "nothing is built in $build_dir: run ./dev build first"

mkdir -p "$work_dir"
packages=docker.io,containerd,podman,apparmor,busybox-static,$(libraries_of "$build_dir/flamed" | paste -sd,)
readonly tree=$work_dir/tree
make_bootable_tree "$suite" "$packages" "$work_dir" "$tree"
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
