# SPDX-License-Identifier: Apache-2.0
"""Counters: how often the programs of a load got round, in a file that they and we have mapped."""

import mmap
import struct

BYTES = 64  # of each counter: a cache line, the number at its start


class Counters:
    def __init__(self, path, count):
        with open(path, "wb") as file:
            file.truncate(max(count * BYTES, mmap.PAGESIZE))
        self.map(path, count)

    @classmethod
    def of_others(cls, path, count):
        """Of a file that is there already."""
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
