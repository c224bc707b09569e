#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cuts the line table of a Go program down to a few functions: inputs for tests that run where there is no Go.

usage: cut_go_tables.py [--as-1.16] PROGRAM OUTPUT FUNCTION...   (a program of fixed address: not -buildmode=pie)

--as-1.16 lays out the tables of an older program as Go 1.16 and 1.17 do.

OUTPUT is { text start, address of the function data, size of the line table: 64 bits each; line table; function data },
in little endian, as test/unit/symbolizer/go/go_recording.h reads it. Values, lines and inlining trees are those of the
program, only offsets change.
"""
import struct
import subprocess
import sys

# By magic number: relative, has files per unit, bytes of _func behind its entry, FUNCDATA_InlTree,
# bytes of inlinedCall, and where its name is.
LAYOUTS = {
    0xFFFFFFFB: (False, False, 32, 4, 20, 12),
    0xFFFFFFFA: (False, True, 36, 3, 20, 12),
    0xFFFFFFF0: (True, True, 36, 3, 20, 12),
    0xFFFFFFF1: (True, True, 40, 3, 16, 4),
}
NONE = 0xFFFFFFFF


def u32(data, at):
    return struct.unpack_from("<I", data, at)[0]


def u64(data, at):
    return struct.unpack_from("<Q", data, at)[0]


class Program:
    def __init__(self, path):
        self.data = open(path, "rb").read()
        self.sections = {}
        for line in subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True).stdout.splitlines():
            f = line.replace("[", " ").replace("]", " ").split()
            if len(f) > 5 and f[0].isdigit() and f[0] != "0":
                self.sections[f[1]] = (int(f[3], 16), int(f[4], 16), int(f[5], 16))
        start, offset, size = self.sections[".gopclntab"]
        self.table = t = self.data[offset : offset + size]
        self.relative, self.units, self.record, self.tree, self.call, self.call_name = LAYOUTS[u32(t, 0)]
        self.count = u64(t, 8)
        if not self.units:
            self.names = self.values = self.records = 0
            self.functions = 16
            self.files = u32(t, 16 + (2 * self.count + 1) * 8)
        else:
            first = 4 if self.relative else 3
            self.names, self.cu, self.files, self.values, self.functions = (u64(t, 8 * (first + i)) for i in range(5))
            self.records = self.functions
        self.text = u64(t, 24) if self.relative else 0
        self.data_address = self.sections[".rodata"][0] if not self.relative else self.function_data(start)

    def function_data(self, start):
        """moduledata.gofunc."""
        at = self.data.find(struct.pack("<QQ", start, start + self.names))
        return u64(self.data, at + 8 * (40 if self.call == 16 else 38))

    def at_address(self, address):
        for start, offset, size in self.sections.values():
            if start and start <= address < start + size:
                return offset + address - start
        raise KeyError(address)

    def string(self, at):
        return self.table[at : self.table.index(0, at)]

    def entry(self, i):
        return u32(self.table, self.functions + 8 * i) if self.relative else u64(self.table, self.functions + 16 * i)

    def values_of(self, at):
        """(bytes, values) of one table of values."""
        t, start, value, seen, first = self.table, at, -1, [], True
        while True:
            code, at = self.varint(at)
            if code == 0 and not first:
                return t[start:at], seen
            value += -((code + 1) >> 1) if code & 1 else code >> 1
            _, at = self.varint(at)
            seen.append(value)
            first = False

    def varint(self, at):
        value = shift = 0
        while True:
            byte = self.table[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value, at


def main():
    arguments = sys.argv[1:]
    as_116 = arguments[0] == "--as-1.16"
    if as_116:
        arguments.pop(0)
    program = Program(arguments[0])
    t = program.table
    magic = 0xFFFFFFFA if as_116 else u32(t, 0)
    has_units, tree_index = LAYOUTS[magic][1], LAYOUTS[magic][3]
    wanted = [name.encode() for name in arguments[2:]]
    field = 4 if program.relative else 8
    names, values, files, units, function_data = bytearray(b"\0"), bytearray(b"\0"), bytearray(b"\0"), [], bytearray()
    cut = []

    def add(table, piece):
        at = len(table)
        table += piece
        return at

    for i in range(program.count):
        record = program.records + (u32(t, program.functions + 8 * i + 4) if program.relative else u64(t, program.functions + 16 * i + 8))
        words = [u32(t, record + field + 4 * k) for k in range(program.record // 4)]
        if program.string(program.names + words[0]) not in wanted:
            continue
        table_at, table_values = program.values_of(program.values + words[4])
        lines_at, _ = program.values_of(program.values + words[5])
        file_numbers = {}
        for value in table_values:
            if value >= 0:
                at = u32(t, program.cu + 4 * (words[7] + value)) if program.units else u32(t, program.files + 4 * value)
                file_numbers[value] = program.string((program.files if program.units else 0) + at)
        unit = len(units)
        numbers = {}
        for value in range(max(file_numbers) + 1):
            units.append(add(files, file_numbers[value] + b"\0") if value in file_numbers else NONE)
            numbers[value] = units[-1]
        pc_data = record + field + program.record
        tree_values, tree = 0, None
        if words[6] > 2 and t[pc_data - 1] > program.tree:
            at = u32(t, pc_data + 8)
            after = pc_data + 4 * words[6]
            if program.relative:
                offset = u32(t, after + 4 * program.tree)
                address = None if offset == NONE else program.data_address + offset
            else:
                after = (after + 7) // 8 * 8
                address = u64(t, after + 8 * program.tree) or None
            if at and address:
                piece, indexes = program.values_of(program.values + at)
                tree_values = add(values, piece)
                start = program.at_address(address)
                calls = bytearray(program.data[start : start + (max(indexes) + 1) * program.call])
                for k in range(max(indexes) + 1):
                    where = k * program.call + program.call_name
                    name = program.string(program.names + u32(calls, where))
                    struct.pack_into("<I", calls, where, add(names, name + b"\0"))
                tree = add(function_data, calls)
        cut.append(dict(entry=program.entry(i), end=program.entry(i + 1), words=words, unit=unit, tree=tree, tree_values=tree_values,
                        name=add(names, program.string(program.names + words[0]) + b"\0"), last=t[pc_data - 4 : pc_data - 1],
                        files=add(values, table_at), lines=add(values, lines_at), numbers=numbers))

    n = len(cut)
    header_bytes = 16 if not has_units else 72 if program.relative else 64
    out = bytearray(struct.pack("<I", magic) + t[4:8] + struct.pack("<Q", n) + bytes(header_bytes - 16))
    base = name_base = value_base = 0
    if has_units:
        name_base = value_base = 0
        names_at = add(out, names)
        out += bytes(-len(out) % 4)
        units_at = add(out, b"".join(struct.pack("<I", u) for u in units))
        files_at = add(out, files)
        values_at = add(out, values)
        out += bytes(-len(out) % 8)
        base = functions_at = len(out)
        for k, offset in enumerate((names_at, units_at, files_at, values_at, functions_at)):
            struct.pack_into("<Q", out, header_bytes - 40 + 8 * k, offset)
        if program.relative:
            struct.pack_into("<Q", out, 24, program.text)
        out += bytes((2 * n + 1) * field)
    else:
        # One table of files for all: { their number and one, offsets }.
        functions_at = len(out)
        out += bytes((2 * n + 1) * 8 + 4)
        name_base = add(out, names)
        value_base = add(out, values)
        files_at = add(out, files)
        out += bytes(-len(out) % 4)
        by_number = {k: at for f in cut for k, at in f["numbers"].items() if at != NONE}
        count = max(by_number) + 1
        struct.pack_into("<I", out, functions_at + (2 * n + 1) * 8, len(out))
        out += struct.pack("<I", count)
        for number in range(1, count):
            out += struct.pack("<I", files_at + by_number.get(number, 0))
    pack = "<I" if field == 4 else "<Q"
    for i, f in enumerate(cut):
        out += bytes(-len(out) % 8)
        record = len(out)
        struct.pack_into(pack, out, functions_at + 2 * i * field, f["entry"])
        struct.pack_into(pack, out, functions_at + (2 * i + 1) * field, record - base)
        out += struct.pack(pack, f["entry"])
        words = list(f["words"])
        words[0] = f["name"] + name_base
        words[3] = 0
        words[4] = f["files"] + value_base
        words[5] = f["lines"] + value_base
        words[6] = 3
        if has_units:
            words[7:7] = [f["unit"]] if as_116 else []
            words[7] = f["unit"]
        out += b"".join(struct.pack("<I", w) for w in words[:-1]) + f["last"] + bytes([tree_index + 1])
        out += struct.pack("<III", 0, 0, f["tree_values"] + value_base if f["tree"] is not None else 0)
        if program.relative:
            out += struct.pack("<I", NONE) * tree_index + struct.pack("<I", NONE if f["tree"] is None else f["tree"])
        else:
            out += bytes(-len(out) % 8) + bytes(8 * tree_index)
            out += struct.pack("<Q", 0 if f["tree"] is None else program.data_address + f["tree"])
    struct.pack_into(pack, out, functions_at + 2 * n * field, cut[-1]["end"])
    for at in range(0, len(function_data), program.call):
        where = at + program.call_name
        struct.pack_into("<I", function_data, where, u32(function_data, where) + name_base)
    with open(arguments[1], "wb") as output:
        output.write(struct.pack("<QQQ", program.text, program.data_address, len(out)) + out + function_data)


if __name__ == "__main__":
    main()
