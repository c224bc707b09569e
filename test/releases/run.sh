#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks that a bare Debian is enough: makes a minimal tree of a release, puts the last commit into it, and runs `./dev
# run` and `./dev test` there, which install, build and run everything on the running kernel.
#
#   test/releases/run.sh SUITE               ./dev run until it answers, then ./dev test; SUITE: bookworm, trixie, sid
#   test/releases/run.sh SUITE COMMAND...    that command instead, in the copied tree, e.g. ./dev build
#
# Needs root, mmdebstrap, git, curl and python3 here, and none of flamed's dependencies. The packages come only from the
# mirrors of this machine's apt. RELEASE_KEEP=1 keeps the tree for inspection.
set -euo pipefail

source_dir=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)
suite=${1:?usage: run.sh SUITE [COMMAND...]}
shift
work_dir=$source_dir/build/releases/$suite
readonly source_dir suite work_dir
readonly tree=$work_dir/tree
readonly inside=/src/flamed # the copied sources, as seen in the chroot
readonly listen=127.0.0.1:19090 # not flamed's own default: one may be running on this machine
readonly answer_within_s=1800   # `./dev run` from nothing: packages and a whole build

die() {
  printf '%s: %s\n' "$suite" "$*" >&2
  exit 1
}

# shellcheck source=test/support/debian_tree.sh
source "$source_dir/test/support/debian_tree.sh"

# ---- Outside: a namespace for the mounts, and cleaning up after it ----

if [[ ${1:-} != --in-namespace ]]; then
  ((EUID == 0)) || die "this needs root"
  for tool in "${tree_tools[@]}" git curl; do
    command -v "$tool" >/dev/null || die "this needs $tool: apt-get install ${tool/unshare/util-linux}"
  done
  mkdir -p "$work_dir"
  remove_tree "$tree"
  status=0
  unshare --mount --propagation private -- "$0" "$suite" --in-namespace "$@" || status=$?
  if [[ ${RELEASE_KEEP:-} == 1 ]]; then echo "$suite: the tree is left in $tree"; else remove_tree "$tree"; fi
  exit "$status"
fi
shift

# ---- Inside the namespace ----

check_run() {
  echo "=== $suite: ./dev run"
  # A session of its own, so that the package tools and compilers that it starts end with it.
  (
    export -f in_tree
    exec setsid bash -c 'in_tree "$@"' bash "$tree" "$inside" ./dev run --listen "$listen"
  ) </dev/null &
  local waited=0
  session=$!
  trap 'kill -- "-$session" 2>/dev/null || true' EXIT
  until curl -sf -o "$work_dir/version" "http://$listen/version"; do
    kill -0 "$session" 2>/dev/null || die "./dev run ended before it answered"
    ((waited < answer_within_s)) || die "./dev run did not answer within $answer_within_s s"
    sleep 1
    waited=$((waited + 1))
  done
  echo "$suite: answered after $waited s: $(<"$work_dir/version")"
  sleep 2 # samples to answer with
  curl -sf -o "$work_dir/folded" "http://$listen/profile?format=folded"
  sed -n 1,3p "$work_dir/folded"
  kill -TERM "$session"
  wait "$session" || die "flamed ended with status $? at SIGTERM"
  trap - EXIT
}

make_tree "$suite" "$tree"
mkdir -p "$tree$inside"
git -C "$source_dir" archive HEAD | tar -x -C "$tree$inside"
mount_kernel "$tree"
if (($# > 0)); then
  (in_tree "$tree" "$inside" "$@")
else
  check_run
  echo "=== $suite: ./dev test"
  (in_tree "$tree" "$inside" ./dev test)
fi
