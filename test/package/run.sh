#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks a source package of flamed on a Debian release: builds it in a bare tree, without root and without network, has
# lintian check it, and installs, removes and purges it in another bare tree.
#
#   test/package/run.sh SUITE FOLDER    FOLDER: where debian/make-source.sh made it; SUITE: bookworm, trixie
#
# Needs root, mmdebstrap and python3 here. The built packages are left in FOLDER/SUITE. systemd is not booted, so the
# service is not started; the installed program is, by hand. PACKAGE_KEEP=1 keeps the trees for inspection.
set -euo pipefail

here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
suite=${1:?usage: run.sh SUITE FOLDER}
source=$(realpath "${2:?usage: run.sh SUITE FOLDER}")
readonly here suite source
readonly made=$source/$suite
readonly builder=$made/build-tree host=$made/install-tree

die() {
  printf '%s: %s\n' "$suite" "$*" >&2
  exit 1
}

# shellcheck source=test/support/debian_tree.sh
source "$here/../support/debian_tree.sh"

# ---- Outside: a namespace for the mounts, and cleaning up after it ----

if [[ ${3:-} != --in-namespace ]]; then
  ((EUID == 0)) || die "this needs root"
  for tool in "${tree_tools[@]}"; do
    command -v "$tool" >/dev/null || die "this needs $tool: apt-get install ${tool/unshare/util-linux}"
  done
  mkdir -p "$made"
  remove_tree "$builder"
  remove_tree "$host"
  status=0
  unshare --mount --propagation private -- "$0" "$suite" "$source" --in-namespace || status=$?
  if [[ ${PACKAGE_KEEP:-} == 1 ]]; then
    echo "$suite: the trees are left in $made"
  else
    remove_tree "$builder"
    remove_tree "$host"
  fi
  exit "$status"
fi

# ---- Inside the namespace ----

in_bare_tree() { # in_bare_tree TREE SCRIPT FILE...: runs the script there, in /src with the files
  make_tree "$suite" "$1"
  mkdir "$1/src"
  cp "${@:2}" "$1/src"
  mount_kernel "$1"
  (in_tree "$1" /src "./${2##*/}")
}

rm -f "$made"/*.deb
in_bare_tree "$builder" "$here/build.sh" "$source"/flamed_*.dsc "$source"/flamed_*.tar.*
cp "$builder"/src/*.deb "$made"
in_bare_tree "$host" "$here/install.sh" "$made"/flamed_*.deb "$made"/flamed-push_*.deb
