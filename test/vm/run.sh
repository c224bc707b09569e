#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Boots Debian's own kernels in a virtual machine: each alone first, to load the kernel programs, and then with the built
# tree, under a real systemd, where it runs test/vm/guest.sh.
#
#   test/vm/run.sh BUILD_DIR [--programs] [KERNEL...]
#
# Boots all of Debian's kernels since 5.10, or only those whose release begins with KERNEL, e.g. 6.1. With --programs it
# only loads the kernel programs, half a minute for each kernel.
#
# The machine is emulated (no KVM): slower by ten to twenty times, but it runs anywhere. Root is needed to make the tree;
# nothing is mounted. The packages come from wherever this machine's own apt gets its own. The tree with the packages
# is kept in BUILD_DIR/vm and made anew when the list below changes; VM_KEEP=1 keeps the disks too.
set -euo pipefail

here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
build_dir=$(realpath "${1:?usage: run.sh BUILD_DIR [KERNEL...]}")
shift
readonly here build_dir work_dir=$build_dir/vm
readonly programs_limit_s=600

# The releases whose kernels are booted: 5.10, 6.1, 6.12, and the newest one of backports.
readonly kernels_of=(bullseye bookworm trixie trixie-backports)

# Besides these, flamed's shared libraries, see libraries().
readonly packages=(systemd systemd-sysv dbus udev kmod initramfs-tools zstd curl iproute2 procps python3 strace)

die() {
  printf 'vm: %s\n' "$*" >&2
  exit 1
}

((EUID == 0)) || die "this needs root"
for tool in cpio mmdebstrap unshare qemu-system-x86_64 mke2fs python3 strip; do
  command -v "$tool" >/dev/null || die "this needs $tool: apt-get install mmdebstrap cpio qemu-system-x86 e2fsprogs binutils python3"
done
[[ -x $build_dir/flamed && -x $build_dir/test/kernel/kernel_tests ]] || die "nothing is built in $build_dir: run ./dev test first"

# shellcheck source=test/vm/machine.sh
source "$here/machine.sh"

libraries() { libraries_of "$build_dir/flamed" "$build_dir/test/kernel/kernel_tests"; }

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
  cp "$build_dir/test/kernel/kernel_tests" "$here/guest.sh" "$here/guest_support.sh" "$tests/"
  find "$build_dir/test/kernel/victims" -maxdepth 1 -type f -exec cp -t "$tests/victims" {} +
  # Daemons and tests with the kernel programs of each compiler.
  mkdir -p "$tests/compilers"
  find "$build_dir/test/compilers" -maxdepth 1 -type f -perm -u+x -exec cp -t "$tests/compilers" {} +
  strip --strip-debug "$tests/compilers"/*
  make_disk_of "$1" "$2"
}

# A root in memory with nothing but the programs of test/compilers. Its kernel says at once what the verifier refuses.
make_small_root() { # make_small_root FILE
  local root=$work_dir/small tests=("$build_dir"/test/compilers/compiler_test_*) file
  rm -rf --one-file-system "$root"
  mkdir -p "$root"/{dev,proc,sys,tmp,tests}
  for file in "${tests[@]}"; do
    [[ ! -x $file || -d $file ]] || strip -o "$root/tests/${file##*compiler_test_}" "$file"
  done
  # shellcheck disable=SC2046  # One word for each file.
  cp --parents --dereference /bin/bash /bin/mount \
    $(ldd /bin/bash /bin/mount "${tests[@]}" 2>/dev/null | grep -o '/[^ ]*so[^ ]*' | sort -u) "$root"
  install -m 0755 "$here/load_programs.sh" "$root/init"
  (cd "$root" && find . | cpio --quiet --create --format=newc | gzip -1) >"$1"
  rm -rf --one-file-system "$root"
}

# Prints a line for each compiler.
load_programs() { # load_programs RELEASE LOG
  local status=0
  rm -f "$2" "$2.console"
  timeout --kill-after=5 "$programs_limit_s" qemu-system-x86_64 "${machine[@]}" \
    -kernel "$work_dir/boot/vmlinuz-$1" -initrd "$work_dir/small.gz" \
    -append "console=ttyS0 loglevel=4 no_timer_check panic=-1" -serial "file:$2.console" -serial "file:$2" || status=$?
  ((status == 0)) || echo "FAIL loading the kernel programs did not end within $programs_limit_s s (status $status)" >>"$2"
  grep -q '^END' "$2" || echo "FAIL loading the kernel programs came to no end; see $2.console" >>"$2"
  cat "$2"
  ! grep -q '^FAIL' "$2"
}

# Boots the whole tree with this kernel. Its checks are printed when it has ended.
run_guest() { # run_guest RELEASE LOG
  rm -f "$2" "$2.console"
  cp --sparse=always "$work_dir/disk" "$work_dir/disk.$1"
  boot "$work_dir/disk.$1" "$work_dir/boot/vmlinuz-$1" "$work_dir/boot/initrd.img-$1" "$2"
  [[ ${VM_KEEP:-} == 1 ]] || rm -f "$work_dir/disk.$1"
  has_passed "$2"
}

main() {
  local programs_only=false base tree=$work_dir/tree release kernels=() logs=() failed=0
  if [[ ${1:-} == --programs ]]; then
    programs_only=true
    shift
  fi
  mkdir -p "$work_dir"
  base=$work_dir/base-$( (declare -f make_base; cat "$here/install_kernel.sh"; echo "${packages[*]} ${kernels_of[*]}"; libraries) |
    sha256sum | cut -c1-12).tar
  if [[ ! -e $base ]]; then
    rm -f "$work_dir"/base-*.tar
    make_base "$base"
  fi
  rm -rf --one-file-system "${work_dir:?}/boot"
  tar -C "$work_dir" -xf "$base" ./boot
  for release in $(cd "$work_dir/boot" && printf '%s\n' vmlinuz-* | sed 's/^vmlinuz-//' | sort -V); do
    if (($# == 0)) || [[ " $* " == *" ${release%%-*} "* || " $* " == *" ${release%.*} "* ]]; then kernels+=("$release"); fi
  done
  ((${#kernels[@]} > 0)) || die "no such kernel: $*"

  make_small_root "$work_dir/small.gz"
  for release in "${kernels[@]}"; do
    echo "=== Kernel programs on Linux $release"
    load_programs "$release" "$work_dir/programs-$release.log" || failed=$((failed + 1))
  done
  if $programs_only || ((failed > 0)); then
    echo "vm: $((${#kernels[@]} - failed)) of ${#kernels[@]} kernels take all programs"
    return $((failed > 0))
  fi

  rm -rf --one-file-system "$tree"
  mkdir -p "$tree"
  tar -C "$tree" -xf "$base"
  make_disk "$tree" "$work_dir/disk"
  rm -rf --one-file-system "$tree"
  for release in "${kernels[@]}"; do
    echo "=== Linux $release"
    logs+=("$work_dir/$release.log")
    run_guest "$release" "$work_dir/$release.log" || failed=$((failed + 1))
  done
  [[ ${VM_KEEP:-} == 1 ]] || rm -f "$work_dir/disk"
  echo "=== Compilers and kernels"
  grep -h '^\(PASS\|FAIL\) compiler ' "${logs[@]}" || echo "nothing is known of any compiler"
  echo "vm: $((${#kernels[@]} - failed)) of ${#kernels[@]} kernels passed"
  ((failed == 0))
}

main "$@"
