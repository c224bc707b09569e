#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares flamed's name for every function of many ELF files with those of eu-addr2line and llvm-symbolizer.

    compare.py NAME_ADDRESSES [--files N] [--list DIFFERENCES] [FILE...]

Without FILEs, N (200) of the programs and libraries of this machine: those with a .symtab first, then by size, half of
them programs; files larger than --largest are left out, since eu-addr2line takes hours for some. Each address that a
function symbol of a file or of its debug file starts at is asked of all three.
"""

import argparse
import collections
import os
import re
import shutil
import subprocess
import sys

FOLDERS = ['/usr/bin', '/usr/sbin', '/usr/lib/x86_64-linux-gnu', '/usr/lib', '/usr/libexec', '/opt', '/usr/local']
DEBUG = '/usr/lib/debug/.build-id'


def run(command, text=''):
    done = subprocess.run(command, input=text.encode(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return done.stdout.decode('utf-8', 'replace').split('\n')


def is_elf(path):
    try:
        with open(path, 'rb') as file:
            head = file.read(18)
    except OSError:
        return False
    return head[:5] == b'\x7fELF\x02' and head[16:18] in (b'\x02\x00', b'\x03\x00')


def candidates():
    seen = set()
    for folder in FOLDERS:
        for path, _, names in os.walk(folder):
            for name in names:
                real = os.path.realpath(os.path.join(path, name))
                if real in seen or not os.path.isfile(real) or not real.startswith(('/usr/', '/opt/')):
                    continue
                if '/debug/' in real or not is_elf(real):
                    continue
                seen.add(real)
                yield real


def has_symtab(path):
    return any('.symtab' in line for line in run(['readelf', '-SW', path]))


def choose(count, largest_bytes):
    files = sorted((path for path in candidates() if os.path.getsize(path) <= largest_bytes),
                   key=lambda path: (-os.path.getsize(path), path))
    chosen = [path for path in files[:600] if has_symtab(path)][:count // 3]
    for wanted in (lambda path: '/bin/' in path or '/sbin/' in path, lambda path: '.so' in path):
        rest = [path for path in files if wanted(path) and path not in chosen]
        chosen += rest[:(count - count // 3) // 2]
    return chosen[:count] + [path for path in files if path not in chosen][:max(0, count - len(chosen))]


def debug_file(path):
    for line in run(['readelf', '-nW', path]):
        found = re.search(r'Build ID: ([0-9a-f]+)', line)
        if found:
            name = f'{DEBUG}/{found[1][:2]}/{found[1][2:]}.debug'
            return name if os.path.exists(name) else None
    return None


def symbols_of(path):
    """{address: [(name, type, size)]} for the symbols in .symtab and .dynsym, and the end of each executable
    section."""
    symbols = collections.defaultdict(set)
    line = re.compile(r'^\s*\d+: ([0-9a-f]+)\s+(\w+) (\w+)\s+(\w+)\s+\w+\s+(\S+) (\S+)')
    for file in filter(None, (path, debug_file(path))):
        for text in run(['readelf', '-sW', file]):
            found = line.match(text)
            if found and found[5] not in ('UND', 'ABS', 'COM') and found[3] in ('FUNC', 'IFUNC', 'NOTYPE'):
                name = found[6].split('@')[0]
                symbols[int(found[1], 16)].add((name, found[3], int(found[2], 0)))
    return symbols


def code_of(path):
    ranges = []
    line = re.compile(r'^\s*\[\s*\d+\] (\S+)\s+\w+\s+([0-9a-f]{16}) [0-9a-f]+ ([0-9a-f]+) [0-9a-f]+\s+(\w*)')
    for text in run(['readelf', '-SW', path]):
        found = line.match(text)
        if found and 'X' in found[4]:
            ranges.append((int(found[2], 16), int(found[2], 16) + int(found[3], 16)))
    return ranges


def ask_elfutils(path, addresses):
    out = run(['eu-addr2line', '-f', '-e', path], ''.join(f'0x{a:x}\n' for a in addresses))
    # "a inlined at FILE:LINE in b": `b` is the function at the address.
    return [re.sub(r'^.* inlined at .* in (?=\S+$)', '', name).split('@')[0] for name in out[0:2 * len(addresses):2]]


def ask_llvm(path, addresses):
    command = [shutil.which('llvm-symbolizer') or 'llvm-symbolizer-14', f'--obj={path}', '--functions=linkage',
               '--no-inlines', '--no-demangle']
    out = run(command, ''.join(f'0x{a:x}\n' for a in addresses))
    return [name.split('@')[0] for name in out[0:3 * len(addresses):3]]


def explain(ours, theirs, address, symbols):
    """Why two names for one address differ."""
    here = {name for name, _, _ in symbols.get(address, ())}
    if ours == theirs:
        return 'equal'
    if ours in here and theirs in here:
        return 'other alias at the same address'
    if theirs in ('??', ''):
        return 'only flamed has a name'
    if ours == '??':
        return 'flamed has no name'
    if ours.startswith(theirs + '.') or f'{len(theirs)}{theirs}' in ours:
        return 'the other has the name in its debug information'
    sizes = {size for name, _, size in symbols.get(address, ()) if name == ours}
    if ours in here:
        return 'symbol of size 0 here, the other before it' if sizes == {0} else 'the other starts elsewhere'
    return 'another function'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('name_addresses')
    parser.add_argument('--files', type=int, default=200)
    parser.add_argument('--largest', type=float, default=24, metavar='MIB')
    parser.add_argument('--list', help='write each difference to this file')
    parser.add_argument('file', nargs='*')
    arguments = parser.parse_intermixed_args()
    for tool in ('readelf', 'eu-addr2line'):
        if shutil.which(tool) is None:
            sys.exit(f'compare.py: SKIP: no {tool} here')

    totals = {'eu-addr2line': collections.Counter(), 'llvm-symbolizer': collections.Counter()}
    both = collections.Counter()
    sources = collections.Counter()
    listed = open(arguments.list, 'w', encoding='utf-8') if arguments.list else None
    functions = files = 0
    for path in arguments.file or choose(arguments.files, int(arguments.largest * (1 << 20))):
        symbols = symbols_of(path)
        code = code_of(path)
        addresses = sorted(address for address, names in symbols.items()
                           if any(kind in ('FUNC', 'IFUNC') for _, kind, _ in names)
                           and any(start <= address < end for start, end in code))
        if not addresses:
            continue
        out = run([arguments.name_addresses, path], ''.join(f'{a:x}\n' for a in addresses))
        source, ours = out[0], out[1:len(addresses) + 1]
        if len(ours) != len(addresses):
            print(f'{path}: no answer')
            both['no answer'] += len(addresses)
            continue
        files += 1
        functions += len(addresses)
        sources[source] += 1
        theirs = {'eu-addr2line': ask_elfutils(path, addresses), 'llvm-symbolizer': ask_llvm(path, addresses)}
        for i, (address, name) in enumerate(zip(addresses, ours)):
            kinds = {}
            for tool, names in theirs.items():
                other = names[i] if i < len(names) else ''
                kinds[tool] = explain(name, other, address, symbols)
                totals[tool][kinds[tool]] += 1
                if listed and kinds[tool] != 'equal':
                    listed.write(f'{kinds[tool]}\t{tool}\t{path}\t{address:x}\t{name}\t{other}\n')
            both['equal to at least one' if 'equal' in kinds.values() else 'equal to neither'] += 1
            if 'equal' not in kinds.values() and 'other alias at the same address' not in kinds.values():
                both['equal to neither, and no alias of either'] += 1
    print(f'{functions} functions of {files} files; symbols from: ' +
          ', '.join(f'{source} {count}' for source, count in sources.most_common()))
    for tool, counts in totals.items():
        print(tool)
        for kind, count in counts.most_common():
            print(f'  {count:9}  {100 * count / functions:8.4f} %  {kind}')
    for kind, count in both.most_common():
        print(f'{count:11}  {kind}')
    return 1 if both['no answer'] else 0


if __name__ == '__main__':
    sys.exit(main())
