#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Boots a Debian release with its own kernel and systemd in an emulated machine without network, and installs, updates,
# removes and purges flamed's package there, see test/vm/packages_guest.sh.
#
#   test/vm/packages.sh SUITE FOLDER BUILD_DIR
#
# FOLDER has the packages of test/package/run.sh for SUITE, in a folder of that name. Where SUITE is this machine's own
# release, the machine also changes from `meson install` of BUILD_DIR to the package. Root is needed to make the tree;
# nothing is mounted. VM_KEEP=1 keeps the disk.
set -euo pipefail

here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
suite=${1:?usage: packages.sh SUITE FOLDER BUILD_DIR}
made=$(realpath "${2:?usage: packages.sh SUITE FOLDER BUILD_DIR}")/$suite
build_dir=$(realpath "${3:?usage: packages.sh SUITE FOLDER BUILD_DIR}")
readonly here suite made build_dir work_dir=$made/vm

die() {
  printf '%s: %s\n' "$suite" "$*" >&2
  exit 1
}
# shellcheck source=test/vm/machine.sh
source "$here/machine.sh"

((EUID == 0)) || die "this needs root"
for tool in mmdebstrap unshare qemu-system-x86_64 mke2fs python3; do
  command -v "$tool" >/dev/null || die "this needs $tool: apt-get install mmdebstrap qemu-system-x86 e2fsprogs python3"
done
package=$(echo "$made"/flamed_*.deb)
readonly package
[[ -e $package ]] || die "no package in $made: run ./dev test package/$suite first"

rm -rf --one-file-system "$work_dir"
mkdir -p "$work_dir/tree"

# What flamed's package needs is there before it: the machine has no network. Of alternatives the first.
dependencies=$(dpkg-deb --field "$package" Pre-Depends Depends | sed 's/^[A-Za-z-]*: //; s/([^)]*)//g; s/|[^,]*//g; s/ //g' | paste -sd,)
"$here/../support/apt_sources.py" "$suite" >"$work_dir/sources.list"
# mmdebstrap mounts /proc, /sys and /dev into the tree, in a mount namespace of its own, so that a later removal here
# can't reach them. Only the tar file leaves it.
unshare --mount --propagation private -- mmdebstrap --mode=root --variant=minbase \
  --include="systemd,systemd-sysv,dbus,udev,kmod,initramfs-tools,zstd,curl,procps,linux-image-cloud-amd64,$dependencies" \
  "$suite" "$work_dir/base.tar" "$work_dir/sources.list"
tar -C "$work_dir/tree" -xf "$work_dir/base.tar"
rm "$work_dir/base.tar"

readonly tests=$work_dir/tree/opt/flamed-tests
mkdir -p "$tests"
cp "$here/guest_support.sh" "$tests"
install -m 0755 "$here/packages_guest.sh" "$tests/guest.sh"
cp "$package" "$tests/new.deb"
# The same package with a lower version.
dpkg-deb --raw-extract "$package" "$work_dir/old"
sed -i 's/^Version: .*/&~before/' "$work_dir/old/DEBIAN/control"
dpkg-deb --root-owner-group --build "$work_dir/old" "$tests/old.deb" >/dev/null
rm -rf --one-file-system "$work_dir/old"
# shellcheck source=/dev/null
if [[ $suite == "$(. /etc/os-release && echo "${VERSION_CODENAME:-sid}")" ]]; then
  DESTDIR=$tests/installed meson install -C "$build_dir" --no-rebuild --quiet
fi
cp "$work_dir"/tree/boot/vmlinuz-* "$work_dir/vmlinuz"
cp "$work_dir"/tree/boot/initrd.img-* "$work_dir/initrd"
make_disk_of "$work_dir/tree" "$work_dir/disk"
rm -rf --one-file-system "$work_dir/tree"

boot "$work_dir/disk" "$work_dir/vmlinuz" "$work_dir/initrd" "$work_dir/log"
[[ ${VM_KEEP:-} == 1 ]] || rm -f "$work_dir/disk"
has_passed "$work_dir/log"
