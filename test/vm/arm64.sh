#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Boots Debian's own arm64 kernels, with pages of 4 and of 16 KiB, and one of its source with pages of 64 KiB in an emulated
# machine, where test/vm/arm64_guest.sh loads the kernel programs, and runs the daemon and the kernel tests that depend on
# the processor.
#
#   test/vm/arm64.sh FOLDER [--programs] [KERNEL...]
#
# FOLDER has the tree with the libraries (test/arm64/sysroot.sh) and the cross build in FOLDER/build. Boots all kernels, or
# only those whose release is KERNEL or begins with it, e.g. 6.1. With --programs it only loads the kernel programs.
#
# The CPU is the newest that QEMU knows; pauth-impdef has it sign return addresses in a way that is fast to emulate.
# Everything lies in an initial root file system in memory, so no driver is needed, and no program of the trees runs while
# they are made. Root is needed to make them; nothing is mounted. VM_LIMIT_S limits one boot.
set -euo pipefail

here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
folder=$(realpath "${1:?usage: arm64.sh FOLDER [--programs] [KERNEL...]}")
shift
: "${VM_LIMIT_S:=2400}"
readonly here folder build_dir=$folder/build work_dir=$folder/vm sysroot=$folder/sysroot

# SUITE:PACKAGE of each kernel.
readonly kernels_of=(bookworm:linux-image-arm64 trixie:linux-image-arm64 trixie:linux-image-arm64-16k)
# Of this machine's release, besides the tree's libraries.
readonly packages=(bash coreutils mount procps grep sed mawk findutils iproute2 kmod curl libc-bin base-passwd)
# Debian 13 builds its programs with signed return addresses. These run below its own root there.
readonly signed_release=trixie
readonly signed_packages=(bash coreutils xz-utils perl-base gzip)

die() {
  printf 'vm/arm64: %s\n' "$*" >&2
  exit 1
}
# shellcheck source=test/vm/machine.sh
source "$here/machine.sh"

((EUID == 0)) || die "this needs root"
for tool in cpio mmdebstrap qemu-system-aarch64 python3 aarch64-linux-gnu-gcc make bc flex bison pahole; do
  command -v "$tool" >/dev/null || die "this needs $tool: apt-get install mmdebstrap cpio qemu-system-arm python3 gcc-aarch64-linux-gnu make bc flex bison dwarves"
done
[[ -x $build_dir/flamed && -x $build_dir/test/kernel/kernel_tests ]] || die "nothing is built in $build_dir: run ./dev test vm/arm64"

unpack() { # unpack SUITE TREE PACKAGE...
  local suite=$1 tree=$2
  shift 2
  "$here/../support/apt_sources.py" "$suite" >"$work_dir/$suite.list"
  rm -rf --one-file-system -- "$tree"
  mmdebstrap --quiet --mode=root --variant=extract --architectures=arm64 --include="$(IFS=,; echo "$*")" \
    --hook-directory=/usr/share/mmdebstrap/hooks/merged-usr "$suite" "$tree" "$work_dir/$suite.list"
}

# A kernel of this machine's release with pages of 64 KiB, which Debian builds none with.
make_64k_kernel() {
  local place=$work_dir/kernel make
  mkdir -p "$place/debs" "$place/out"
  (cd "$place/debs" && apt-get -q -o APT::Sandbox::User=root download "$(apt-cache depends linux-source | awk '/Depends:/ { print $2 }')")
  dpkg-deb --fsys-tarfile "$place"/debs/*.deb | tar -x -C "$place" --wildcards './usr/src/linux-source-*.tar.xz'
  mkdir "$place/source"
  tar -x -C "$place/source" --strip-components=1 -f "$place"/usr/src/linux-source-*.tar.xz
  make=(make -s -C "$place/source" "O=$place/out" ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu-)
  "${make[@]}" "KCONFIG_ALLCONFIG=$here/arm64_64k.config" alldefconfig
  "${make[@]}" "-j$(nproc)" Image
  cp "$place/out/arch/arm64/boot/Image" "$work_dir/boot/vmlinuz-$("${make[@]}" kernelrelease)"
  rm -rf --one-file-system -- "$place"
}

# Kernels, and the two trees, which are made anew when the lists above change.
make_parts() {
  local made parts suite package release
  parts="${kernels_of[*]} ${packages[*]} $signed_release ${signed_packages[*]} $(sha256sum <"$here/arm64_64k.config")"
  made=$(cat "$work_dir/.made" 2>/dev/null || true)
  [[ $made != "$parts" ]] || return 0
  rm -rf --one-file-system -- "$work_dir"
  mkdir -p "$work_dir"/{boot,modules}
  for package in "${kernels_of[@]}"; do
    suite=${package%%:*}
    unpack "$suite" "$work_dir/kernel" "${package#*:}"
    cp "$work_dir"/kernel/boot/vmlinuz-* "$work_dir/boot"
    # Without these flamed does not know who asks over TCP.
    (cd "$work_dir"/kernel/usr/lib/modules && find . -name 'inet_diag.ko*' -o -name 'tcp_diag.ko*' |
      cpio --quiet --pass-through --make-directories "$work_dir/modules")
    rm -rf --one-file-system -- "$work_dir/kernel"
  done
  make_64k_kernel
  # shellcheck source=/dev/null
  release=$(. /etc/os-release && echo "${VERSION_CODENAME:-sid}")
  unpack "$release" "$work_dir/base" "${packages[@]}"
  unpack "$signed_release" "$work_dir/signed" "${signed_packages[@]}"
  for tree in base signed; do
    rm -rf --one-file-system -- "${work_dir:?}/$tree"/{boot,var} "${work_dir:?}/$tree"/usr/share/{doc,info,locale,man}
  done
  echo "$parts" >"$work_dir/.made"
}

# The root file system: base, libraries, what was built, and Debian 13's programs. Not compressed, which takes the emulated
# machine longer than to copy it.
make_root() { # make_root FILE
  local root=$work_dir/root tests=$work_dir/root/opt/flamed-tests
  rm -rf --one-file-system -- "$root"
  cp -a "$work_dir/base" "$root"
  cp -a "$sysroot"/usr/lib/aarch64-linux-gnu/*.so.* "$root/usr/lib/aarch64-linux-gnu/"
  cp -a "$work_dir/signed" "$root/signed"
  mkdir -p "$root"/{dev,proc,sys,tmp,run,root} "$root"/signed/{dev,proc,tmp} "$tests"/{victims,compilers}
  cp "$build_dir/flamed" "$build_dir/test/kernel/kernel_tests" "$tests"
  find "$build_dir/test/compilers" -maxdepth 1 -type f -perm -u+x -name 'compiler_test_*' -exec cp -t "$tests/compilers" {} +
  aarch64-linux-gnu-strip --strip-debug "$tests"/{flamed,kernel_tests} "$tests"/compilers/*
  find "$build_dir/test/kernel/victims" -maxdepth 1 -type f -exec cp -t "$tests/victims" {} +
  cp "$here/../support/pprof.proto" "$here/../../docs/operations.md" "$here/../../systemd/flamed.service.in" "$tests"
  cp -a "$work_dir/modules" "$root/usr/lib/modules"
  ln -s mawk "$root/usr/bin/awk"
  ln -s bash "$root/usr/bin/sh"
  cp "$root/usr/share/base-passwd/passwd.master" "$root/etc/passwd"
  cp "$root/usr/share/base-passwd/group.master" "$root/etc/group"
  cp "$here/guest_support.sh" "$tests"
  install -m 0755 "$here/arm64_guest.sh" "$root/init"
  (cd "$root" && find . | cpio --quiet --create --format=newc) >"$1"
  rm -rf --one-file-system -- "$root"
}

boot_arm64() { # boot_arm64 RELEASE LOG ARGUMENTS
  local stretch
  stretch=$(stretch)
  rm -f "$2"
  emulate $((boot_limit_s * stretch)) "$2" qemu-system-aarch64 -machine virt -cpu max,pauth-impdef=on \
    -accel tcg,thread=multi -smp 2 -m 3072 -nodefaults -nographic -no-reboot \
    -kernel "$work_dir/boot/vmlinuz-$1" -initrd "$work_dir/root.cpio" \
    -append "console=ttyAMA0 loglevel=1 panic=-1 flamed.stretch=$stretch flamed.now=$(date +%s) $3" -serial "file:$2"
}

is_wanted() { # is_wanted RELEASE [KERNEL...]
  local release=$1 kernel
  shift
  (($# > 0)) || return 0
  for kernel in "$@"; do
    [[ $release != "$kernel" ]] || return 0
    [[ -e $work_dir/boot/vmlinuz-$kernel || $release != "$kernel"[.+-]* ]] || return 0
  done
  return 1
}

main() {
  local programs_only=false release log kernels=() failed=0
  if [[ ${1:-} == --programs ]]; then
    programs_only=true
    shift
  fi
  make_parts
  for release in $(cd "$work_dir/boot" && printf '%s\n' vmlinuz-* | sed 's/^vmlinuz-//' | sort -V); do
    if is_wanted "$release" "$@"; then kernels+=("$release"); fi
  done
  ((${#kernels[@]} > 0)) || die "no such kernel: $*"
  make_root "$work_dir/root.cpio"
  for release in "${kernels[@]}"; do
    echo "=== Linux $release"
    log=$work_dir/$release.log
    if $programs_only; then
      log=$work_dir/programs-$release.log
      boot_arm64 "$release" "$log" flamed.programs
    else
      boot_arm64 "$release" "$log" ''
    fi
    has_passed "$log" || failed=$((failed + 1))
  done
  rm -f "$work_dir/root.cpio"
  echo "vm/arm64: $((${#kernels[@]} - failed)) of ${#kernels[@]} kernels passed"
  ((failed == 0))
}

main "$@"
