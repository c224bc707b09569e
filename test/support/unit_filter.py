#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a program under the filter of system calls that a unit has, without systemd as the service manager.

    unit_filter.py UNIT PROGRAM [ARGUMENT...]

systemd-analyze says which system calls are in its groups, the kernel's headers which numbers they have.
"""

import ctypes
import errno
import os
import re
import struct
import subprocess
import sys
import sysconfig

HEADERS = [f"/usr/include/{sysconfig.get_config_var('MULTIARCH')}/asm/unistd_64.h", "/usr/include/asm-generic/unistd.h"]
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
LOAD_NUMBER, IF_EQUAL, RETURN = 0x20, 0x15, 0x06  # BPF_LD | BPF_W | BPF_ABS, BPF_JMP | BPF_JEQ | BPF_K, BPF_RET | BPF_K
ALLOW, FAIL = 0x7FFF0000, 0x00050000
OPENAT2 = 437  # on all processors


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


def read_groups():
    text = subprocess.run(["systemd-analyze", "syscall-filter", "--no-pager"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=True).stdout
    groups, names = {}, []
    for line in text.splitlines():
        word = line.split("#")[0].strip()
        if line.startswith("@"):
            names = groups[word] = []
        elif word:
            names.append(word)
    return groups


def names_in(words, groups):
    for word in words:
        if word.startswith("@"):
            yield from names_in(groups[word], groups)
        else:
            yield word


def numbers_of(names):
    header = next(path for path in HEADERS if os.path.exists(path))
    with open(header, encoding="utf-8") as file:
        known = dict(re.findall(r"^#define __NR_(\w+) (\d+)$", file.read(), re.MULTILINE))
    # execve is in the list for the service manager itself.
    return sorted({int(known[name]) for name in {*names, "execve"} if name in known})


def instruction(code, value, if_true=0, if_false=0):
    return struct.pack("HBBI", code, if_true, if_false, value)


def main():
    unit, program = sys.argv[1], sys.argv[2:]
    with open(unit, encoding="utf-8") as file:
        lines = file.read().splitlines()
    words = [word for line in lines if line.startswith("SystemCallFilter=") for word in line.split("=", 1)[1].split()]
    code = instruction(LOAD_NUMBER, 0)
    if "RestrictSUIDSGID=yes" in lines:
        # A filter can't see the mode in its argument, so systemd says that the kernel doesn't have it.
        code += instruction(IF_EQUAL, OPENAT2, 0, 1) + instruction(RETURN, FAIL | errno.ENOSYS)
    for number in numbers_of(names_in(words, read_groups())):
        code += instruction(IF_EQUAL, number, 0, 1) + instruction(RETURN, ALLOW)
    code += instruction(RETURN, FAIL | errno.EPERM)
    libc = ctypes.CDLL(None, use_errno=True)
    filter_program = Program(len(code) // 8, code)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(filter_program)):
        sys.exit("seccomp: " + os.strerror(ctypes.get_errno()))
    os.execv(program[0], program)


if __name__ == "__main__":
    main()
