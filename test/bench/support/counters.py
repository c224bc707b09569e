# SPDX-License-Identifier: Apache-2.0
"""Counters: the rounds of a load's programs, in a file that they and the benchmark map."""

import mmap
import struct

BYTES = 64  # for each counter: a cache line, with the number at its start


class Counters:
    def __init__(self, path, count):
        with open(path, "wb") as file:
            file.truncate(max(count * BYTES, mmap.PAGESIZE))
        self.map(path, count)

    @classmethod
    def of_others(cls, path, count):
        """Counters in an existing file."""
        self = cls.__new__(cls)
        self.map(path, count)
        return self

    def map(self, path, count):
        self.path, self.count = path, count
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 0)

    def values(self):
        return [struct.unpack_from("<Q", self.memory, i * BYTES)[0] for i in range(self.count)]

    def add(self, index, more=1):
        at = index * BYTES
        struct.pack_into("<Q", self.memory, at, struct.unpack_from("<Q", self.memory, at)[0] + more)
