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
#
# All mounts are made in a mount namespace of this run and end with it. The tree is removed only from outside of that
# namespace, only if nothing is mounted below it, and never across file systems.
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

remove_tree() {
  [[ -e $tree ]] || return 0
  # Field 5 of mountinfo is the mount point.
  if awk -v tree="$tree" '$5 == tree || index($5, tree "/") == 1 { found = 1 } END { exit !found }' /proc/self/mountinfo
  then
    die "something is mounted at or below $tree: not removing it"
  fi
  rm -rf --one-file-system -- "$tree"
}

# ---- Outside: a namespace for the mounts, and cleaning up after it ----

if [[ ${1:-} != --in-namespace ]]; then
  ((EUID == 0)) || die "this needs root"
  for tool in mmdebstrap git curl python3 unshare; do
    command -v "$tool" >/dev/null || die "this needs $tool: apt-get install ${tool/unshare/util-linux}"
  done
  mkdir -p "$work_dir"
  remove_tree
  status=0
  unshare --mount --propagation private -- "$0" "$suite" --in-namespace "$@" || status=$?
  if [[ ${RELEASE_KEEP:-} == 1 ]]; then echo "$suite: the tree is left in $tree"; else remove_tree; fi
  exit "$status"
fi
shift

# ---- Inside the namespace ----

make_tree() {
  local include=()
  "$source_dir/test/support/apt_sources.py" "$suite" >"$work_dir/sources.list"
  ! grep -q 'https:' "$work_dir/sources.list" || include=(--include=ca-certificates)
  mmdebstrap --mode=root --variant=minbase "${include[@]}" "$suite" "$tree" "$work_dir/sources.list"

  # Only the network configuration is the machine's.
  cp --dereference /etc/resolv.conf /etc/hosts "$tree/etc/"
  apt-config dump | grep -E '^Acquire::(http|https|Check-[A-Za-z-]+)\b' >"$tree/etc/apt/apt.conf.d/99machine" || true
  if [[ -d /usr/local/share/ca-certificates ]]; then
    mkdir -p "$tree/usr/local/share/ca-certificates"
    cp -r /usr/local/share/ca-certificates/. "$tree/usr/local/share/ca-certificates/"
  fi
  # Services of installed packages stay down: the chroot shares this machine's processes.
  printf '#!/bin/sh\nexit 101\n' >"$tree/usr/sbin/policy-rc.d"
  chmod 755 "$tree/usr/sbin/policy-rc.d"

  mkdir -p "$tree$inside"
  git -C "$source_dir" archive HEAD | tar -x -C "$tree$inside"
}

mount_kernel() {
  # A mount, as pivot_root wants its new root.
  mount --bind "$tree" "$tree"
  # /proc is the machine's own and not that of a new pid namespace: the kernel programs see the machine's pids.
  mount --rbind /proc "$tree/proc"
  mount --rbind /sys "$tree/sys"
  mount --rbind /dev "$tree/dev"
}

in_tree() { # in_tree COMMAND...: replaces this shell
  local name environment=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
    NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt npm_config_cafile=/etc/ssl/certs/ca-certificates.crt)
  for name in CI http_proxy https_proxy no_proxy; do
    [[ -z ${!name:-} ]] || environment+=("$name=${!name}")
  done
  # The tree becomes the root of a mount namespace of its own, without the machine's root. In a chroot no process may
  # create a user namespace, or keep a mount namespace's mounts private, as tests do.
  # shellcheck disable=SC2016  # The inner shells expand these.
  exec unshare --mount --propagation private bash -ec '
    cd "$1"
    pivot_root . mnt
    umount --lazy mnt
    cd "$2"
    shift 2
    exec env -i "$@"' bash "$tree" "$inside" "${environment[@]}" "$@"
}

check_run() {
  echo "=== $suite: ./dev run"
  # A session of its own, so that the package tools and compilers that it starts end with it.
  (
    export -f in_tree
    export tree inside
    exec setsid bash -c 'in_tree "$@"' bash ./dev run --listen "$listen"
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

make_tree
mount_kernel
if (($# > 0)); then
  (in_tree "$@")
else
  check_run
  echo "=== $suite: ./dev test"
  (in_tree ./dev test)
fi
