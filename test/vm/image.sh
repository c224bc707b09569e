#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Boots Debian with Docker in an emulated machine without network, and runs flamed's image there with the rights of
# container/daemonset.yaml, and then without each of them, see test/vm/image_guest.sh.
#
#   test/vm/image.sh BUILD_DIR
#
# There is no registry, so the image's files are made by test/vm/make_image.sh, with the package that is in
# BUILD_DIR/package. Trees are kept in BUILD_DIR/vm-image; VM_KEEP=1 keeps the disk, too. Root is needed.
set -euo pipefail

here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
build_dir=$(realpath "${1:?usage: image.sh BUILD_DIR}")
readonly here build_dir

die() {
  printf 'vm/image: %s\n' "$*" >&2
  exit 1
}
# shellcheck source=test/vm/machine.sh
source "$here/machine.sh"
# shellcheck source=test/vm/image_support.sh
source "$here/image_support.sh"

check_tools
readonly victim=$build_dir/test/kernel/victims/victim_known_chain
[[ -x $victim ]] || die "nothing is built in $build_dir: run ./dev build first"
"$here/image.py" guide
image=$(make_image)

readonly tree=$work_dir/rights
make_engines_tree "$tree"
readonly tests=$tree/opt/flamed-tests
mkdir -p "$tests"
cp "$here/guest_support.sh" "$victim" "$tests"
cp "$image" "$tests/flamed.tar"
install -m 0755 "$here/image_guest.sh" "$tests/guest.sh"
"$here/image.py" options >"$tests/options"
"$here/image.py" changes >"$tests/changes"
# Another image, whose files are nowhere else in the machine.
mkdir -p "$tests/other"
# shellcheck disable=SC2046  # One word for each file.
cp --parents --dereference $(ldd "$victim" | grep -o '/[^ ]*so[^ ]*') "$tests/other"
cp "$victim" "$tests/other/burn"
run_in_machine rights
