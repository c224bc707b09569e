#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a kernel test program, or says why it can't run here (77: Meson's code for a skipped test). A test that leaves
processes behind fails, and they are killed: they would take CPU time from the tests after it."""
import ctypes
import os
import signal
import subprocess
import sys
import time

PR_SET_CHILD_SUBREAPER = 36
GRACE_SECONDS = 10  # flamed's helpers end once they see that a killed daemon is gone


def reap():
    """False: there are no children."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass
    except ChildProcessError:
        return False
    return True


def children():
    with open(f'/proc/self/task/{os.getpid()}/children', encoding='ascii') as file:
        return [int(pid) for pid in file.read().split()]


def command_of(pid):
    with open(f'/proc/{pid}/cmdline', encoding='utf-8', errors='replace') as file:
        return file.read().replace('\0', ' ').strip()


def main():
    if os.geteuid() != 0:
        print('SKIP: needs root')
        return 77
    if not os.access('/sys/kernel/btf/vmlinux', os.R_OK):
        print('SKIP: this kernel has no BTF (/sys/kernel/btf/vmlinux)')
        return 77
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        sys.exit('cannot become the parent of orphans: ' + os.strerror(ctypes.get_errno()))
    status = subprocess.run(sys.argv[1:], check=False).returncode
    deadline = time.monotonic() + GRACE_SECONDS
    while reap():
        if time.monotonic() < deadline:
            time.sleep(0.1)
            continue
        for pid in children():
            print(f'the test has left a process: {pid} {command_of(pid)}')
            os.kill(pid, signal.SIGKILL)
        status = status or 1
        deadline = time.monotonic() + 1
    return status if status >= 0 else 128 - status


if __name__ == '__main__':
    sys.exit(main())
