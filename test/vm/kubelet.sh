#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds a kubelet from its Go module, and boots Debian with it and containerd in an emulated machine without network and
# without a cluster. It starts the pod of container/daemonset.yaml and another one from files, see
# test/vm/kubelet_guest.sh.
#
#   test/vm/kubelet.sh BUILD_DIR
#
# Needs root, any Go, and the package that is in BUILD_DIR/package. The kubelet and trees are kept in BUILD_DIR/vm-image;
# VM_KEEP=1 keeps the disk, too. Ends with 77 if the kubelet can't be had.
set -euo pipefail

here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
build_dir=$(realpath "${1:?usage: kubelet.sh BUILD_DIR}")
readonly here build_dir work=$build_dir/peers # where Go's toolchain is kept

die() {
  printf 'vm/kubelet: %s\n' "$*" >&2
  exit 1
}
# shellcheck source=test/vm/machine.sh
source "$here/machine.sh"
# shellcheck source=test/vm/image_support.sh
source "$here/image_support.sh"
# shellcheck source=test/peers/support.sh
source "$here/../peers/support.sh"

check_tools
readonly victim=$build_dir/test/kernel/victims/victim_known_chain kubelet=$work_dir/kubelet
[[ -x $victim ]] || die "nothing is built in $build_dir: run ./dev build first"
mkdir -p "$work"

# The version is what the kubelet says it is; it decides which features it has.
version=$(sed -n 's|^\tk8s.io/kubernetes \(v[0-9.]*\).*|\1|p' "$here/kubelet/go.mod")
build_kubelet() {
  fetch_toolchain &&
    (cd "$here/kubelet" && CGO_ENABLED=0 go build -trimpath -mod=readonly -o "$kubelet" \
      -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$version" k8s.io/kubernetes/cmd/kubelet)
}
if ! build_kubelet >"$work_dir/kubelet.log" 2>&1; then
  tail -n 5 "$work_dir/kubelet.log"
  echo "SKIP: the kubelet could not be built: $(tail -n 1 "$work_dir/kubelet.log")"
  exit 77
fi
image=$(make_image)

readonly tree=$work_dir/pods
make_engines_tree "$tree"
readonly tests=$tree/opt/flamed-tests
mkdir -p "$tests/manifests"
cp "$here/guest_support.sh" "$kubelet" "$tests"
install -m 0755 "$here/kubelet_guest.sh" "$tests/guest.sh"
"$here/image.py" pod >"$tests/manifests/flamed.yaml"
cp "$here/kubelet/burn.yaml" "$tests/manifests"
cp "$here/kubelet/config.yaml" "$here/kubelet/containerd.toml" "$tests"

files_of() { # files_of FOLDER FILE NAME: a tar of it, as NAME, and of its libraries
  rm -rf "$1"
  mkdir -p "$1"
  # shellcheck disable=SC2046  # One word for each file.
  cp --parents --dereference $(ldd "$2" 2>/dev/null | grep -o '/[^ ]*so[^ ]*' || echo "$2") "$1"
  cp "$2" "$1/$3"
  tar -C "$1" -cf "$1.tar" .
}
"$here/image.py" oci flamed "$image" "$tests/flamed.tar"
files_of "$temporary/burn" "$victim" burn
"$here/image.py" oci burn "$temporary/burn.tar" "$tests/burn.tar" /burn
# Holds a pod's namespaces.
files_of "$temporary/pause" "$tree/bin/busybox" sleep
"$here/image.py" oci pause "$temporary/pause.tar" "$tests/pause.tar" /sleep infinity
run_in_machine pods
