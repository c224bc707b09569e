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

need_root_and_tools
package=$(echo "$made"/flamed_*.deb)
readonly package
[[ -e $package ]] || die "no package in $made: run ./dev test package/$suite first"

mkdir -p "$work_dir"

# What flamed's package needs is there before it: the machine has no network. Of alternatives the first.
dependencies=$(dpkg-deb --field "$package" Pre-Depends Depends | sed 's/^[A-Za-z-]*: //; s/([^)]*)//g; s/|[^,]*//g; s/ //g' | paste -sd,)
make_bootable_tree "$suite" "$dependencies" "$work_dir" "$work_dir/tree"

readonly tests=$work_dir/tree/opt/flamed-tests
mkdir -p "$tests"
cp "$here/guest_support.sh" "$tests"
install -m 0755 "$here/packages_guest.sh" "$tests/guest.sh"
cp "$package" "$tests/new.deb"
# The same package with a lower version.
rm -rf --one-file-system "$work_dir/old"
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

rm -f "$work_dir/log" "$work_dir/log.console"
boot "$work_dir/disk" "$work_dir/vmlinuz" "$work_dir/initrd" "$work_dir/log"
[[ ${VM_KEEP:-} == 1 ]] || rm -f "$work_dir/disk"
has_passed "$work_dir/log"
