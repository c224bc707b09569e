#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Boots Debian's own kernels in a virtual machine with the built tree, under a real systemd, and runs test/vm/guest.sh there.
#
#   test/vm/run.sh BUILD_DIR [KERNEL...]   Debian's kernels since 5.10, or only those whose release begins with KERNEL, e.g. 6.1
#
# The machine is emulated (no KVM): slower by ten to twenty times, but it runs anywhere. Root is needed to make the tree;
# nothing is mounted. The packages come from wherever this machine's own apt gets its own. The tree with the packages
# is kept in BUILD_DIR/vm and made anew when the list below changes; VM_KEEP=1 keeps the disks too.
set -euo pipefail

here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
build_dir=$(realpath "${1:?usage: run.sh BUILD_DIR [KERNEL...]}")
shift
readonly here build_dir work_dir=$build_dir/vm
readonly boot_limit_s=${VM_LIMIT_S:-1500}

# The releases whose kernels are booted: 5.10, 6.1, 6.12, and the newest one of backports.
readonly kernels_of=(bullseye bookworm trixie trixie-backports)

# Besides these, flamed's shared libraries, see libraries().
readonly packages=(systemd systemd-sysv dbus udev kmod initramfs-tools zstd curl iproute2 procps python3 strace)

die() {
  printf 'vm: %s\n' "$*" >&2
  exit 1
}

((EUID == 0)) || die "this needs root"
for tool in mmdebstrap unshare qemu-system-x86_64 mke2fs python3 strip; do
  command -v "$tool" >/dev/null || die "this needs $tool: apt-get install mmdebstrap qemu-system-x86 e2fsprogs binutils python3"
done
[[ -x $build_dir/flamed && -x $build_dir/test/kernel/kernel_tests ]] || die "nothing is built in $build_dir: run ./dev test first"

# The packages with the shared libraries of the built programs. Searched by file name, since packages and the dynamic
# linker disagree on /lib and /usr/lib.
libraries() {
  ldd "$build_dir/flamed" "$build_dir/test/kernel/kernel_tests" | awk '$2 == "=>" { print $3 }' | sort -u |
    xargs -n 1 readlink -f | sed 's|.*/|*/|' | xargs dpkg-query --search |
    sed -n "\|/debug/|d; s/:$(dpkg --print-architecture): .*//p" | sort -u
}

# A tree of this machine's release, with the kernel of each Debian from 11 on and the newest of backports.
make_base() { # make_base TAR
  local release suite hooks=()
  # shellcheck source=/dev/null
  release=$(. /etc/os-release && echo "${VERSION_CODENAME:-sid}")
  for suite in "${kernels_of[@]}"; do
    "$here/../support/apt_sources.py" "$suite" >"$work_dir/$suite.list"
    # shellcheck disable=SC2016  # mmdebstrap's shell expands these.
    hooks+=(--customize-hook="copy-in $work_dir/$suite.list $here/install_kernel.sh /tmp"
      --customize-hook='chroot "$1" /tmp/install_kernel.sh /tmp/'"$suite"'.list'
      --customize-hook='rm "$1/tmp/install_kernel.sh" "$1/tmp/'"$suite"'.list"')
  done
  "$here/../support/apt_sources.py" "$release" >"$work_dir/sources.list"
  # mmdebstrap mounts /proc, /sys and /dev into the tree, in a mount namespace of its own, so that a later removal here
  # can't reach them. Only the tar file leaves it.
  # shellcheck disable=SC2016  # mmdebstrap's shell expands these.
  unshare --mount --propagation private -- mmdebstrap --mode=root --variant=minbase \
    --include="$(IFS=,; echo "${packages[*]}")" --include="$(libraries | paste -sd,)" "${hooks[@]}" \
    --customize-hook='rm -rf "$1"/var/cache/apt/archives/*.deb "$1"/var/lib/apt/lists/*' \
    "$release" "$work_dir/new.tar" "$work_dir/sources.list"
  mv "$work_dir/new.tar" "$1"
}

# The disk has the base, the installed tree (`meson install`), and the tests in /opt/flamed-tests.
make_disk() { # make_disk TREE DISK
  local tests=$1/opt/flamed-tests
  DESTDIR=$1 meson install -C "$build_dir" --no-rebuild --quiet
  chroot "$1" systemd-sysusers
  mkdir -p "$tests/victims"
  cp "$build_dir/test/kernel/kernel_tests" "$here/guest.sh" "$tests/"
  find "$build_dir/test/kernel/victims" -maxdepth 1 -type f -exec cp -t "$tests/victims" {} +
  # Daemons and tests with the kernel programs of each compiler.
  mkdir -p "$tests/compilers"
  find "$build_dir/test/compilers" -maxdepth 1 -type f -perm -u+x -exec cp -t "$tests/compilers" {} +
  strip --strip-debug "$tests/compilers"/*
  install -m 0644 "$here/flamed-tests.service" "$1/etc/systemd/system/"
  ln -sf ../flamed-tests.service "$1/etc/systemd/system/multi-user.target.wants/flamed-tests.service"
  echo flamed-vm >"$1/etc/hostname"
  # Sparse; 1 GiB is left for journals and the tests' files.
  mke2fs -q -t ext4 -d "$1" "$2" "$(($(du -sm "$1" | cut -f1) * 5 / 4 + 1024))M"
}

# Emulated with one thread for each of the guest's CPUs. The guest's output is on its second serial line. A kernel panic
# ends the machine (-no-reboot). On a busy host some kernels panicked because their timer seemed not to work, and 6.12's
# memory allocator did because QEMU 7.2 corrupts the flags of cmpxchg16b, so neither is used.
boot() { # boot DISK KERNEL_RELEASE LOG
  local status=0 stretch arguments limit_s
  # The number of processes that share a CPU here stretches the guest's one short time limit, and that of the whole run.
  stretch=$(awk -v cpus="$(nproc)" '{ print ($1 > cpus ? int($1 / cpus + 0.5) : 1) }' /proc/loadavg)
  arguments="root=/dev/vda rw console=ttyS0 loglevel=4 no_timer_check panic=-1 systemd.mask=serial-getty@ttyS0.service"
  arguments+=" flamed.stretch=$stretch"
  limit_s=$((boot_limit_s * stretch))
  timeout --kill-after=5 "$limit_s" qemu-system-x86_64 \
    -accel tcg,thread=multi -cpu max,-cx16 -smp 2 -m 2048 -nodefaults -nographic -no-reboot \
    -kernel "$work_dir/boot/vmlinuz-$2" -initrd "$work_dir/boot/initrd.img-$2" \
    -append "$arguments" \
    -drive "file=$1,format=raw,if=virtio,cache=unsafe" -device virtio-rng-pci \
    -serial "file:$3.console" -serial "file:$3" || status=$?
  ((status == 0)) || echo "FAIL the machine did not end by itself within $limit_s s (status $status)" >>"$3"
}

main() {
  local base tree=$work_dir/tree release log logs=() failed=0 ran=0
  mkdir -p "$work_dir"
  base=$work_dir/base-$( (declare -f make_base; cat "$here/install_kernel.sh"; echo "${packages[*]} ${kernels_of[*]}"; libraries) |
    sha256sum | cut -c1-12).tar
  if [[ ! -e $base ]]; then
    rm -f "$work_dir"/base-*.tar
    make_base "$base"
  fi
  rm -rf --one-file-system "$tree" "${work_dir:?}/boot"
  mkdir -p "$tree"
  tar -C "$tree" -xf "$base"
  mkdir -p "$tree/etc/systemd/system/multi-user.target.wants"
  cp -r "$tree/boot" "$work_dir/boot"
  make_disk "$tree" "$work_dir/disk"
  rm -rf --one-file-system "$tree"

  for release in $(cd "$work_dir/boot" && printf '%s\n' vmlinuz-* | sed 's/^vmlinuz-//' | sort -V); do
    (($# == 0)) || [[ " $* " == *" ${release%%-*} "* || " $* " == *" ${release%.*} "* ]] || continue
    ran=$((ran + 1))
    log=$work_dir/$release.log
    logs+=("$log")
    rm -f "$log" "$log.console"
    echo "=== Linux $release"
    cp --sparse=always "$work_dir/disk" "$work_dir/disk.$release"
    boot "$work_dir/disk.$release" "$release" "$log"
    [[ ${VM_KEEP:-} == 1 ]] || rm -f "$work_dir/disk.$release"
    cat "$log"
    grep -q '^END' "$log" || echo "FAIL the guest's tests did not come to their end; see $log.console" | tee -a "$log"
    ! grep -q '^FAIL' "$log" || failed=$((failed + 1))
  done
  [[ ${VM_KEEP:-} == 1 ]] || rm -f "$work_dir/disk"
  ((ran > 0)) || die "no such kernel: $*"
  echo "=== Compilers and kernels"
  grep -h '^\(PASS\|FAIL\) compiler ' "${logs[@]}" || echo "nothing is known of any compiler"
  echo "vm: $((ran - failed)) of $ran kernels passed"
  ((failed == 0))
}

main "$@"
