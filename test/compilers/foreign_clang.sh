#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes clang of another Debian release runnable here: foreign_clang.sh SUITE FOLDER
#
# Unpacks clang and the headers that the kernel programs include from SUITE (trixie) into FOLDER/tree, and writes
# FOLDER/clang, which runs that clang with those headers only. Nothing is installed or mounted. Needs root and
# mmdebstrap. Does nothing if FOLDER/clang exists.
set -euo pipefail

suite=$1
folder=$(realpath -m "$2")
here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
readonly suite folder here
[[ ! -x $folder/clang ]] || exit 0

rm -rf --one-file-system -- "$folder"
mkdir -p "$folder"
"$here/../support/apt_sources.py" "$suite" >"$folder/sources.list"
mmdebstrap --quiet --mode=root --variant=extract --include=clang,libbpf-dev,linux-libc-dev \
  "$suite" "$folder/tree" "$folder/sources.list"

multiarch=$(dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || gcc -print-multiarch)
loader=$(find "$folder/tree/" -name 'ld-linux*.so.*' -path "*$multiarch*" -print -quit)
compiler=$(readlink -f "$folder"/tree/usr/lib/llvm-*/bin/clang)
root=${compiler%/bin/*}
headers=$(echo "$root"/lib/clang/*/include)
cat >"$folder/clang.new" <<EOF
#!/bin/sh
# clang of $suite, without this machine's headers.
n=\$#
for argument; do
  case \$argument in
    -I/usr/*) ;;
    *) set -- "\$@" "\$argument" ;;
  esac
done
shift "\$n"
exec '$loader' --library-path '$folder/tree/usr/lib/$multiarch:$folder/tree/lib/$multiarch:$root/lib' '$compiler' \\
  -nostdinc -isystem '$headers' -isystem '$folder/tree/usr/include' -isystem '$folder/tree/usr/include/$multiarch' "\$@"
EOF
chmod 755 "$folder/clang.new"
"$folder/clang.new" --version
mv "$folder/clang.new" "$folder/clang"
