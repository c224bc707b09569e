#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a program of the build for arm64 under qemu-user: emulate.sh SYSROOT PROGRAM [ARGUMENT...]
#
# Meson runs tests by it. qemu-user has this machine's kernel behind it: there is no seccomp, no Landlock, no vdso, other
# processes are this machine's, and a program of arm64 can't start another one by itself. The tests that need that are left
# out here, and say so. FLAMED_EMULATOR runs other programs of the build.
set -eu
sysroot=$1
program=$2
shift 2
emulator="qemu-aarch64-static -L $sysroot"
leave_out() { # leave_out REASON TESTS: in the words of Catch2
  echo "SKIP qemu-user: $1"
  spec=$2
}

spec=
case ${program##*/} in
  unit_base)
    leave_out 'it does not show what memory is like' '~"secret memory is in no core dump and in no child process"' ;;
  unit_symbolizer_worker)
    leave_out 'the worker can neither be started nor be shut in' \
      '~[#worker_module_reader_test]~[#kept_rows_test]~[#sandbox_test]' ;;
  unit_symbolizer_processes)
    leave_out 'helpers can neither be started nor see processes of arm64' '~[#guarded_opener_test]~[#source_opener_test]' ;;
  unit_unwinder)
    leave_out 'it has no vdso, and code of its own that signal handlers return to' \
      '~"A signal handler on a stack of its own is traced to the code that it interrupted"~"The rows of the vdso are read from memory"' ;;
esac
[ -z "$spec" ] || set -- --filenames-as-tags "$@" "$spec"
# shellcheck disable=SC2086  # Its words.
exec $emulator -E "FLAMED_EMULATOR=$emulator" "$program" "$@"
