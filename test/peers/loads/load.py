# SPDX-License-Identifier: Apache-2.0
"""What Python programs do, in functions of the standard library that are written in Python: load.py CPU_SECONDS"""
import difflib
import json
import re
import statistics
import string
import sys
import textwrap
import time

TEXT = ('the quick brown fox jumps over the lazy dog ' * 8).split()


def encode():
    return json.dumps([{'number': i, 'words': TEXT[i % 7 : i % 7 + 4]} for i in range(40)], indent=1)


def compare():
    return list(difflib.unified_diff(TEXT[:40], TEXT[3:45], lineterm=''))


def wrap():
    return textwrap.fill(' '.join(TEXT), 30)


def measure():
    return statistics.stdev([len(word) for word in TEXT])


def fill():
    return [string.Template('$a and ${b}').substitute(a=i, b=i + 1) for i in range(20)]


def match():
    re.purge()
    return [re.sub(f'[{word}]+', '-', 'some text') for word in ('fox', 'dog')]


# A peer that samples by the clock would find a program that waits for a CPU at its system calls.
while time.process_time() < float(sys.argv[1]):
    for _ in range(50):
        for work in (encode, compare, wrap, measure, fill, match):
            work()
