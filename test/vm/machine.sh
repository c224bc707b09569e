# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The emulated machine, for scripts that boot it and have `here`, this folder, and die().

# shellcheck disable=SC2154  # see above
readonly boot_limit_s=${VM_LIMIT_S:-1500}

# Emulated with one thread for each of the guest's CPUs. The guest's output is on its second serial line. A kernel panic
# ends the machine (-no-reboot). On a busy host some kernels panicked because their timer seemed not to work, and 6.12's
# memory allocator did because QEMU 7.2 corrupts the flags of cmpxchg16b, so neither is used.
# shellcheck disable=SC2034  # Scripts that source this use it.
readonly machine=(-accel "tcg,thread=multi" -cpu "max,-cx16" -smp 2 -m 2048 -nodefaults -nographic -no-reboot)

# The packages with the shared libraries of built programs. Searched by file name, since packages and the dynamic linker
# disagree on /lib and /usr/lib.
libraries_of() { # libraries_of PROGRAM...
  ldd "$@" | awk '$2 == "=>" { print $3 }' | sort -u | xargs -n 1 readlink -f | sed 's|.*/|*/|' |
    xargs dpkg-query --search | sed -n "\|/debug/|d; s/:$(dpkg --print-architecture): .*//p" | sort -u
}

need_root_and_tools() {
  ((EUID == 0)) || die "this needs root"
  local tool
  for tool in mmdebstrap unshare qemu-system-x86_64 mke2fs python3; do
    command -v "$tool" >/dev/null || die "this needs $tool: apt-get install mmdebstrap qemu-system-x86 e2fsprogs python3"
  done
}

# A tree of a Debian release that boots, with more packages. What they unpack to is kept in FOLDER until the list changes.
make_bootable_tree() { # make_bootable_tree SUITE PACKAGES FOLDER TREE: PACKAGES with commas
  local packages=systemd,systemd-sysv,dbus,udev,kmod,initramfs-tools,zstd,curl,procps,linux-image-cloud-amd64,$2 base
  base=$3/base-$(echo "$1 $packages" | sha256sum | cut -c1-12).tar
  if [[ ! -e $base ]]; then
    rm -f "$3"/base-*.tar
    "$here/../support/apt_sources.py" "$1" >"$3/sources.list"
    # mmdebstrap mounts /proc, /sys and /dev into the tree, in a mount namespace of its own, so that a later removal here
    # can't reach them. Only the tar file leaves it.
    # shellcheck disable=SC2016  # mmdebstrap's shell expands these.
    unshare --mount --propagation private -- mmdebstrap --mode=root --variant=minbase --include="$packages" \
      --customize-hook='rm -rf "$1"/var/cache/apt/archives/*.deb "$1"/var/lib/apt/lists/*' \
      "$1" "$3/new.tar" "$3/sources.list"
    mv "$3/new.tar" "$base"
  fi
  rm -rf --one-file-system "$4"
  mkdir -p "$4"
  tar -C "$4" -xf "$base"
}

# A disk of the tree, which runs /opt/flamed-tests/guest.sh once it is up. Sparse; 1 GiB is left for journals and the
# tests' files.
make_disk_of() { # make_disk_of TREE DISK
  local units=$1/etc/systemd/system
  mkdir -p "$units/multi-user.target.wants"
  install -m 0644 "$here/flamed-tests.service" "$units"
  ln -sf ../flamed-tests.service "$units/multi-user.target.wants/flamed-tests.service"
  echo flamed-vm >"$1/etc/hostname"
  mke2fs -q -t ext4 -d "$1" "$2" "$(($(du -sm "$1" | cut -f1) * 5 / 4 + 1024))M"
}

# The number of processes that share a CPU here stretches the guest's short time limits, and that of a whole run.
stretch() { awk -v cpus="$(nproc)" '{ print ($1 > cpus ? int($1 / cpus + 0.5) : 1) }' /proc/loadavg; }

emulate() { # emulate LIMIT_S LOG COMMAND...: until the guest ends
  local limit_s=$1 log=$2 status=0
  shift 2
  timeout --kill-after=5 "$limit_s" "$@" || status=$?
  ((status == 0)) || echo "FAIL the machine did not end by itself within $limit_s s (status $status)" >>"$log"
}

boot() { # boot DISK KERNEL INITRD LOG
  local stretch arguments
  stretch=$(stretch)
  arguments="root=/dev/vda rw console=ttyS0 loglevel=4 no_timer_check panic=-1 systemd.mask=serial-getty@ttyS0.service"
  arguments+=" flamed.stretch=$stretch"
  emulate $((boot_limit_s * stretch)) "$4" qemu-system-x86_64 "${machine[@]}" -kernel "$2" -initrd "$3" -append "$arguments" \
    -drive "file=$1,format=raw,if=virtio,cache=unsafe" -device virtio-rng-pci \
    -serial "file:$4.console" -serial "file:$4"
}

# Whether the guest came to its end, and nothing failed there. Prints what it said.
has_passed() { # has_passed LOG
  cat "$1"
  grep -q '^END' "$1" || echo "FAIL the guest's tests did not come to their end; see $1.console" | tee -a "$1"
  ! grep -q '^FAIL' "$1"
}
