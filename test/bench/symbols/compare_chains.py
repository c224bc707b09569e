#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares flamed's source chains with llvm-symbolizer's, address by address.

    compare_chains.py SOURCE_CHAINS [--count N] [--show N] FILE[,DEBUG_FILE]...

For N addresses drawn from the functions of each file: the functions of the chain from the inside out, each with file and
line. A difference is put into one of these classes; "other" is what nobody has explained:

  symbol     the outermost function alone: llvm-symbolizer takes its name from the symbol table where that has the
             address, and where debug information knows nothing the file from there, too, without a line. flamed looks
             into the symbol table after this, and elsewhere
  directory  llvm-symbolizer 14 puts a relative compilation directory before directory 0 of a version 5 table, which is
             that very directory (DWARF 5, 6.2.4)
"""
import argparse
import bisect
import collections
import os
import random
import re
import subprocess


def functions_of(path):
    """[(address, size)] and {address: set of names}, from the symbol table."""
    out = subprocess.run(['nm', '--defined-only', '-S', path], capture_output=True, text=True, check=False).stdout
    spans, names = set(), collections.defaultdict(set)
    for line in out.splitlines():
        parts = line.split(None, 3)
        if len(parts) == 4 and parts[2] in 'tTwWi' and re.fullmatch(r'[0-9a-f]+', parts[1]) and int(parts[1], 16):
            spans.add((int(parts[0], 16), int(parts[1], 16)))
            names[int(parts[0], 16)].add(parts[3].split('@')[0])
    return sorted(spans), names


def addresses_of(path, count):
    """Drawn from all functions alike, the same ones each time."""
    spans, _ = functions_of(path)
    generator = random.Random(1)
    addresses = []
    for _ in range(count if spans else 0):
        start, size = generator.choice(spans)
        addresses.append(start + generator.randrange(size))
    return addresses


def blocks(text):
    """One list of (function, file, line) for each address, innermost first."""
    for block in text.rstrip('\n').split('\n\n'):
        lines = block.split('\n')
        chain = []
        for name, place in zip(lines[0::2], lines[1::2]):
            match = re.fullmatch(r'(.*?):(\d+)(:\d+)?', place)
            chain.append((name, match.group(1), int(match.group(2))))
        yield chain


def run(command, stdin):
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=True).stdout


def without_doubled_directories(chain):
    return [(name, re.sub(r'^([^/].*/)\1', r'\1', file), line) for name, file, line in chain]


def classify(ours, theirs, names):
    """`names`: of the symbols at the address."""
    if ours == theirs:
        return 'equal'
    once = without_doubled_directories(theirs)
    if once != theirs:
        return 'directory' if classify(ours, once, names) in ('equal', 'symbol') else 'other'
    if len(ours) != len(theirs) or ours[:-1] != theirs[:-1] or theirs[-1][0].split('@')[0] not in names:
        return 'other'
    is_place_known = ours[-1][1:] != ('??', 0)
    return 'symbol' if ours[-1][1:] == theirs[-1][1:] or (not is_place_known and theirs[-1][2] == 0) else 'other'


def compare(tool, target, count, show):
    module, _, debug = target.partition(',')
    spans, names = functions_of(debug or module)
    addresses = addresses_of(debug or module, count)
    stdin = ''.join('0x%x\n' % address for address in addresses)
    ours = list(blocks(run([tool, module] + ([debug] if debug else []), stdin)))
    theirs = list(blocks(run(['llvm-symbolizer', '--inlines', '--no-demangle', '--functions=linkage',
                              '--obj=' + (debug or module)], stdin)))
    counts = collections.Counter()
    shown = 0
    if not len(ours) == len(theirs) == len(addresses):
        raise SystemExit('%s: %d addresses, %d and %d answers' % (target, len(addresses), len(ours), len(theirs)))
    starts = [span[0] for span in spans]
    for address, us, them in zip(addresses, ours, theirs):
        at = bisect.bisect_right(starts, address)
        kind = classify(us, them, set().union(*(names[start] for start in starts[max(0, at - 8):at])))
        counts[kind] += 1
        if kind == 'other' and shown < show:
            shown += 1
            print('  0x%x\n    flamed %s\n    llvm   %s' % (address, us, them))
    inlined = sum(len(chain) > 1 for chain in theirs)
    print('%-40s %6d addresses, %6d with inlined functions: %6d equal, %5d symbol, %5d directory, %4d other' % (
        os.path.basename(module), len(addresses), inlined, counts['equal'], counts['symbol'], counts['directory'], counts['other']))
    return counts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('tool')
    parser.add_argument('--count', type=int, default=10000)
    parser.add_argument('--show', type=int, default=5)
    parser.add_argument('targets', nargs='+')
    options = parser.parse_args()
    total = collections.Counter()
    for target in options.targets:
        total += compare(options.tool, target, options.count, options.show)
    print(dict(total))


if __name__ == '__main__':
    main()
