#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes what a build for arm64 on this x86-64 machine needs: test/arm64/sysroot.sh FOLDER PACKAGE...
#
# Unpacks the PACKAGEs of this machine's release and what they depend on, for arm64, into FOLDER/sysroot, and writes
# FOLDER/cross.ini, Meson's description of the machine. Its compiler is Debian's cross compiler, of the same release.
# Programs of the build run under qemu-user. This machine's own packages stay as they are: it gets no other architecture,
# and needs no binfmt_misc. Nothing of the tree runs while it is made, and nothing is mounted. Does nothing if the tree has
# these packages.
#
# Needs root and mmdebstrap. The packages come from wherever this machine's own apt gets its own.
set -euo pipefail

folder=$(realpath -m "${1:?usage: sysroot.sh FOLDER PACKAGE...}")
shift
here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
readonly folder here
readonly sysroot=$folder/sysroot triplet=aarch64-linux-gnu

wanted=$(printf '%s\n' "$@" "$(sha256sum <"$0")")
if [[ ! -e $folder/cross.ini || $(cat "$folder/.made" 2>/dev/null) != "$wanted" ]]; then
  # shellcheck source=/dev/null
  release=$(. /etc/os-release && echo "${VERSION_CODENAME:-sid}")
  mkdir -p "$folder"
  rm -rf --one-file-system -- "$sysroot" "$folder/.made"
  "$here/../support/apt_sources.py" "$release" >"$folder/sources.list"
  mmdebstrap --quiet --mode=root --variant=extract --architectures=arm64 --include="$(IFS=,; echo "$*")" \
    --hook-directory=/usr/share/mmdebstrap/hooks/merged-usr "$release" "$sysroot" "$folder/sources.list"

  # qemu-user takes every file from here that is here: other folders are this machine's.
  find "$sysroot" -mindepth 1 -maxdepth 1 ! -name usr ! -name 'lib*' -exec rm -rf --one-file-system {} +
  # Absolute links lead out of the tree.
  find "$sysroot" -type l -lname '/*' -print0 | while IFS= read -r -d '' link; do
    ln -sfnr "$sysroot$(readlink "$link")" "$link"
  done

  in_words() { # in_words WORD...: as a list in Meson's words
    local words
    words=$(printf ", '%s'" "$@")
    echo "[${words#, }]"
  }
  gnu=(ccache "$triplet")
  clang=(--target="$triplet" --sysroot="$sysroot")
  cat >"$folder/cross.ini" <<END
# Made by test/arm64/sysroot.sh.
[binaries]
c = $(in_words "${gnu[0]}" "${gnu[1]}-gcc" --sysroot="$sysroot")
cpp = $(in_words "${gnu[0]}" "${gnu[1]}-g++" --sysroot="$sysroot")
g++ = $(in_words "${gnu[1]}-g++" --sysroot="$sysroot")
clang = $(in_words clang "${clang[@]}")
clang++ = $(in_words clang++ "${clang[@]}")
ar = '$triplet-ar'
nm = '$triplet-nm'
objcopy = '$triplet-objcopy'
strip = '$triplet-strip'
pkgconfig = 'pkg-config'
exe_wrapper = $(in_words "$here/emulate.sh" "$sysroot")

[properties]
sys_root = '$sysroot'
pkg_config_libdir = '$sysroot/usr/lib/$triplet/pkgconfig:$sysroot/usr/share/pkgconfig'
needs_exe_wrapper = true

[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
END
  echo "$wanted" >"$folder/.made"
fi
