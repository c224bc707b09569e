#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a kernel test program, or says why it can't run here (77: Meson's code for a skipped test).
if [ "$(id -u)" -ne 0 ]; then
  echo "SKIP: needs root"
  exit 77
fi
if [ ! -r /sys/kernel/btf/vmlinux ]; then
  echo "SKIP: this kernel has no BTF (/sys/kernel/btf/vmlinux)"
  exit 77
fi
exec "$@"
