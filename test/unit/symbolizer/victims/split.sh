#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# split.sh OBJCOPY NM XZ DWZ PROGRAM PROGRAM_WITHOUT_BUILD_ID FOLDER: processes two programs with debug information as
# distributions do. FOLDER gets:
#   stripped, stripped.debug          the first: program without symbols, separate debug file; they share a build-id
#   linked, linked.debug              the second: the program names the debug file and its checksum
#   mini                              the first with MiniDebugInfo
#   dwz.debug, dwz.alternate          debug file whose pieces are partly in the other one; empty where there is no DWZ
set -eu
objcopy=$1 nm=$2 xz=$3 dwz=$4 program=$5 without_id=$6 folder=$7

cd "$folder"
rm -f stripped stripped.debug linked linked.debug mini dwz.debug dwz.alternate
"$objcopy" --only-keep-debug "$program" stripped.debug
"$objcopy" --strip-all "$program" stripped
"$objcopy" --only-keep-debug "$without_id" linked.debug
"$objcopy" --strip-all --add-gnu-debuglink=linked.debug "$without_id" linked

# As in GDB's manual: the functions that are not in .dynsym.
"$nm" -D "$program" --format=posix --defined-only | cut -d ' ' -f 1 | sed 's/@.*//' | sort >mini.dynamic
"$nm" "$program" --format=posix --defined-only | awk '$2 == "T" || $2 == "t" { print $1 }' | sort >mini.all
comm -13 mini.dynamic mini.all >mini.keep
"$objcopy" -S --remove-section .gdb_index --remove-section .comment --keep-symbols=mini.keep stripped.debug mini.elf
"$xz" -c mini.elf >mini.xz
"$objcopy" --add-section .gnu_debugdata=mini.xz stripped mini

cp stripped.debug dwz.debug
cp linked.debug dwz.other
if [ -n "$dwz" ] && "$dwz" -m dwz.alternate -M dwz.alternate dwz.debug dwz.other; then :; else
  : >dwz.alternate
  : >dwz.debug
fi
rm -f mini.dynamic mini.all mini.keep mini.elf mini.xz dwz.other
