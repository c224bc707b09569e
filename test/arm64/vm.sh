#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Boots Debian's own arm64 kernels, with pages of 4 and of 16 KiB, in an emulated machine, where test/arm64/guest.sh loads the
# kernel programs and runs the tests that depend on the processor.
#
#   test/arm64/vm.sh FOLDER [--programs] [KERNEL...]
#
# FOLDER has the tree with the libraries (sysroot.sh) and the cross build in FOLDER/build. Boots all kernels, or only those
# whose release begins with KERNEL, e.g. 6.1. With --programs it only loads the kernel programs.
#
# Its CPU is the newest that QEMU knows, which signs return addresses as fast as it can be emulated. Everything lies in an
# initial root file system in memory: no kernel module is needed, and no program of the trees runs while they are made.
# Root is needed to make them; nothing is mounted. VM_LIMIT_S limits one boot, 1800 by default.
set -euo pipefail

here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
folder=$(realpath "${1:?usage: vm.sh FOLDER [--programs] [KERNEL...]}")
shift
readonly here folder build_dir=$folder/build work_dir=$folder/vm sysroot=$folder/sysroot
readonly limit_s=${VM_LIMIT_S:-1800} programs_limit_s=600

# SUITE:PACKAGE of each kernel.
readonly kernels_of=(bookworm:linux-image-arm64 trixie:linux-image-arm64 trixie:linux-image-arm64-16k)
# Of this machine's release, besides the tree's libraries.
readonly packages=(bash coreutils mount procps grep sed mawk findutils iproute2 curl libc-bin base-passwd)
# Debian 13 builds its programs with signed return addresses. These run below its own root there.
readonly signed_release=trixie
readonly signed_packages=(bash coreutils xz-utils perl-base gzip)

die() {
  printf 'arm64 vm: %s\n' "$*" >&2
  exit 1
}

((EUID == 0)) || die "this needs root"
for tool in cpio mmdebstrap qemu-system-aarch64 python3 aarch64-linux-gnu-strip; do
  command -v "$tool" >/dev/null || die "this needs $tool: apt-get install mmdebstrap cpio qemu-system-arm python3 binutils-aarch64-linux-gnu"
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

# Kernels, and the two trees, which are made anew when the lists above change.
make_parts() {
  local made parts suite package release
  parts="${kernels_of[*]} ${packages[*]} $signed_release ${signed_packages[*]}"
  made=$(cat "$work_dir/.made" 2>/dev/null || true)
  [[ $made != "$parts" ]] || return 0
  rm -rf --one-file-system -- "$work_dir"
  mkdir -p "$work_dir/boot"
  for package in "${kernels_of[@]}"; do
    suite=${package%%:*}
    unpack "$suite" "$work_dir/kernel" "${package#*:}"
    cp "$work_dir"/kernel/boot/vmlinuz-* "$work_dir/boot"
    rm -rf --one-file-system -- "$work_dir/kernel"
  done
  # shellcheck source=/dev/null
  release=$(. /etc/os-release && echo "${VERSION_CODENAME:-sid}")
  unpack "$release" "$work_dir/base" "${packages[@]}"
  unpack "$signed_release" "$work_dir/signed" "${signed_packages[@]}"
  for tree in base signed; do
    rm -rf --one-file-system -- "${work_dir:?}/$tree"/{boot,var} "${work_dir:?}/$tree"/usr/share/{doc,info,locale,man}
  done
  echo "$parts" >"$work_dir/.made"
}

# The root file system: base, libraries, what was built, and Debian 13's programs.
make_root() { # make_root FILE
  local root=$work_dir/root tests=$work_dir/root/tests file
  rm -rf --one-file-system -- "$root"
  cp -a "$work_dir/base" "$root"
  cp -a "$sysroot"/usr/lib/aarch64-linux-gnu/*.so.* "$root/usr/lib/aarch64-linux-gnu/"
  cp -a "$work_dir/signed" "$root/signed"
  mkdir -p "$root"/{dev,proc,sys,tmp,run,root} "$root"/signed/{dev,proc,tmp} "$tests"/{victims,compilers}
  cp "$build_dir/flamed" "$build_dir/test/kernel/kernel_tests" "$tests"
  find "$build_dir/test/compilers" -maxdepth 1 -type f -perm -u+x -exec cp -t "$tests/compilers" {} +
  for file in "$tests"/flamed "$tests"/kernel_tests "$tests"/compilers/*; do aarch64-linux-gnu-strip --strip-debug "$file"; done
  find "$build_dir/test/kernel/victims" -maxdepth 1 -type f -exec cp -t "$tests/victims" {} +
  cp "$here/../support/pprof.proto" "$here/../../docs/operations.md" "$here/../../systemd/flamed.service.in" "$tests"
  cp -a "$root/usr/share/base-passwd/passwd.master" "$root/etc/passwd"
  cp -a "$root/usr/share/base-passwd/group.master" "$root/etc/group"
  install -m 0755 "$here/guest.sh" "$root/init"
  (cd "$root" && find . | cpio --quiet --create --format=newc | gzip -1) >"$1"
  rm -rf --one-file-system -- "$root"
}

# The guest's output is on its console. A kernel panic ends the machine (-no-reboot).
boot() { # boot RELEASE LOG LIMIT_S ARGUMENTS
  local status=0
  timeout --kill-after=5 "$3" qemu-system-aarch64 -machine virt -accel tcg,thread=multi -cpu max,pauth-impdef=on -smp 2 \
    -m 3072 -nodefaults -nographic -no-reboot -kernel "$work_dir/boot/vmlinuz-$1" -initrd "$work_dir/root.gz" \
    -append "console=ttyAMA0 loglevel=1 panic=-1 $4" -serial "file:$2" || status=$?
  ((status == 0)) || echo "FAIL the machine did not end by itself within $3 s (status $status)" >>"$2"
  grep -q '^END' "$2" || echo "FAIL the guest's tests did not come to their end" >>"$2"
  cat "$2"
  ! grep -q '^FAIL' "$2"
}

main() {
  local programs_only=false release kernels=() failed=0
  if [[ ${1:-} == --programs ]]; then
    programs_only=true
    shift
  fi
  make_parts
  for release in $(cd "$work_dir/boot" && printf '%s\n' vmlinuz-* | sed 's/^vmlinuz-//' | sort -V); do
    if (($# == 0)) || [[ " $* " == *" ${release%%-*} "* || " $* " == *" ${release%.*} "* || " $* " == *" $release "* ]]; then
      kernels+=("$release")
    fi
  done
  ((${#kernels[@]} > 0)) || die "no such kernel: $*"
  make_root "$work_dir/root.gz"
  for release in "${kernels[@]}"; do
    echo "=== Linux $release"
    if $programs_only; then
      boot "$release" "$work_dir/programs-$release.log" "$programs_limit_s" flamed.programs || failed=$((failed + 1))
    else
      boot "$release" "$work_dir/$release.log" "$limit_s" '' || failed=$((failed + 1))
    fi
  done
  echo "arm64 vm: $((${#kernels[@]} - failed)) of ${#kernels[@]} kernels passed"
  ((failed == 0))
}

main "$@"
