#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records the functions of Go's runtime that change stacks: inputs for tests that run where there is no such Go.

usage: record_go_runtime.py PROGRAM >go_runtime/1.21   (not stripped, of fixed address: not -buildmode=pie)

Writes a line for each function, as go_runtime_code_test.cc reads it, and below it what objdump and the program's debug
information say about it:

  function NAME ENTRY DEPTHS CODE     DEPTHS: DISTANCE:SIZE:BYTES,...; ENTRY and CODE in hex
  returns PLACE CALLED                a call in it: the distance of its return address, and the called function or "*"
  goroutine OFFSET                    of m.curg
"""
import re
import subprocess
import sys

from cut_go_tables import Program, u32, u64

NAMES = [b"runtime." + name for name in (
    b"systemstack", b"morestack", b"mcall", b"asmcgocall", b"cgocallback", b"nanotime1", b"walltime", b"vgetrandom1",
    b"mstart", b"goexit", b"rt0_go")] + [b"time.now"]


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def calls_in(path, entry, end):
    text = run("objdump", "-d", "-w", "--no-show-raw-insn", f"--start-address={entry}", f"--stop-address={end}", path)
    code = re.findall(r"^ +([0-9a-f]+):\t(\S+) *(.*)$", text, re.M)
    for (_, operation, operand), (after, _, _) in zip(code, code[1:]):
        if operation.startswith("call"):
            target = re.search(r"<(.*?)(\.abi0)?>", operand)
            yield int(after, 16) - entry, target[1] if target and "*" not in operand else "*"


def depths_of(program, at, size):
    """(distance, size, bytes) for each value of the table of stack depths."""
    value, distance, first = -1, 0, True
    while True:
        code, at = program.varint(at)
        if (code == 0 and not first) or distance >= size:
            return
        value += -((code + 1) >> 1) if code & 1 else code >> 1
        quanta, at = program.varint(at)
        yield distance, min(quanta, size - distance), value
        distance += quanta
        first = False


def goroutine_offset(path):
    dump = run("objdump", "--dwarf=info", path)
    m = dump[re.search(r"DW_AT_name +: runtime\.m$", dump, re.M).start():]
    curg = m[re.search(r"DW_AT_name +: curg$", m, re.M).start():]
    return int(re.search(r"DW_AT_data_member_location: (\d+)", curg)[1])


def main():
    path = sys.argv[1]
    program = Program(path)
    t = program.table
    text = int(re.search(r"^([0-9a-f]+) . runtime\.text$", run("nm", path), re.M)[1], 16) if program.relative else 0
    print("goroutine", goroutine_offset(path))
    for i in range(program.count):
        record = program.records + (u32(t, program.functions + 8 * i + 4) if program.relative
                                    else u64(t, program.functions + 16 * i + 8))
        field = 4 if program.relative else 8
        name = program.string(program.names + u32(t, record + field))
        if name not in NAMES:
            continue
        entry, end = text + program.entry(i), text + program.entry(i + 1)
        start = program.at_address(entry)
        depths = depths_of(program, program.values + u32(t, record + field + 12), end - entry)
        print("function", name.decode(), f"{entry:x}", ",".join("%d:%d:%d" % depth for depth in depths),
              program.data[start : start + end - entry].hex())
        for place, called in calls_in(path, entry, end):
            print("returns", place, called)


if __name__ == "__main__":
    main()
