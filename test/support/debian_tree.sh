# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Trees of Debian releases, to build or install something in: functions for scripts that run as root in a mount namespace
# of their own. The packages come only from the mirrors of this machine's apt. The caller defines die().
#
# All mounts are made in the namespace of a run and end with it. A tree is removed only from outside of that namespace,
# only if nothing is mounted below it, and never across file systems.

# shellcheck disable=SC2034  # Scripts that source this check for them.
readonly tree_tools=(mmdebstrap python3 unshare)

remove_tree() { # remove_tree TREE
  [[ -e $1 ]] || return 0
  # Field 5 of mountinfo is the mount point.
  if awk -v tree="$1" '$5 == tree || index($5, tree "/") == 1 { found = 1 } END { exit !found }' /proc/self/mountinfo
  then
    die "something is mounted at or below $1: not removing it"
  fi
  rm -rf --one-file-system -- "$1"
}

make_tree() { # make_tree SUITE TREE: a minimal one, whose apt works
  local include=()
  "$(dirname "${BASH_SOURCE[0]}")/apt_sources.py" "$1" >"$2.list"
  ! grep -q 'https:' "$2.list" || include=(--include=ca-certificates)
  mmdebstrap --mode=root --variant=minbase "${include[@]}" "$1" "$2" "$2.list"

  # Only the network configuration is the machine's.
  cp --dereference /etc/resolv.conf /etc/hosts "$2/etc/"
  apt-config dump | grep -E '^Acquire::(http|https|Check-[A-Za-z-]+)\b' >"$2/etc/apt/apt.conf.d/99machine" || true
  if [[ -d /usr/local/share/ca-certificates ]]; then
    mkdir -p "$2/usr/local/share/ca-certificates"
    cp -r /usr/local/share/ca-certificates/. "$2/usr/local/share/ca-certificates/"
  fi
  # Services of installed packages stay down: the tree shares this machine's processes.
  printf '#!/bin/sh\nexit 101\n' >"$2/usr/sbin/policy-rc.d"
  chmod 755 "$2/usr/sbin/policy-rc.d"
}

mount_kernel() { # mount_kernel TREE
  # A mount, as pivot_root wants its new root.
  mount --bind "$1" "$1"
  # /proc is the machine's own and not that of a new pid namespace: the kernel programs see the machine's pids.
  mount --rbind /proc "$1/proc"
  mount --rbind /sys "$1/sys"
  mount --rbind /dev "$1/dev"
}

in_tree() { # in_tree TREE FOLDER COMMAND...: replaces this shell
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
    exec env -i "$@"' bash "$1" "$2" "${environment[@]}" "${@:3}"
}
