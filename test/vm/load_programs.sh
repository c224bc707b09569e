#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The init of a virtual machine without a system: loads the kernel programs of each compiler. Prints PASS and FAIL lines,
# and END.
set -uo pipefail
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
exec >/dev/ttyS1 2>&1
for test in /tests/*; do
  if output=$("$test" 'the kernel takes*' 2>&1); then
    echo "PASS the kernel takes the programs of ${test##*/}"
  else
    echo "$output"
    echo "FAIL the kernel refuses a program of ${test##*/}"
  fi
done
echo END
echo o >/proc/sysrq-trigger
read -rt 60 <>/dev/ttyS1 # until the power is off
