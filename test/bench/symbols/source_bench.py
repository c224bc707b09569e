#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time and peak memory for the source chains of addresses, side by side in one run.

    source_bench.py SOURCE_CHAINS [--count N] [--rounds N] [--limit SECONDS] FILE[,DEBUG_FILE]

Each round asks flamed, llvm-symbolizer and eu-addr2line for the same N addresses of the functions of FILE, each in a
process of its own; the median of the rounds counts. What takes longer than the limit is stopped and shown as such.
"warm" is the same question again through flamed's cache, within the process.
"""
import argparse
import os
import random
import re
import signal
import statistics
import subprocess
import tempfile
import time


def addresses_of(path, count):
    """Drawn from all functions of the symbol table alike, the same ones each time."""
    out = subprocess.run(['nm', '--defined-only', '-S', path], capture_output=True, text=True, check=False).stdout
    spans = set()
    for line in out.splitlines():
        parts = line.split(None, 3)
        if len(parts) == 4 and parts[2] in 'tTwWi' and re.fullmatch(r'[0-9a-f]+', parts[1]) and int(parts[1], 16):
            spans.add((int(parts[0], 16), int(parts[1], 16)))
    spans = sorted(spans)
    generator = random.Random(1)
    addresses = []
    for _ in range(count if spans else 0):
        start, size = generator.choice(spans)
        addresses.append(start + generator.randrange(size))
    return addresses


def measure(command, stdin_path, limit):
    """(seconds, CPU seconds, peak bytes, standard error); seconds is None if the limit stopped it."""
    with open(stdin_path, encoding='ascii') as stdin, tempfile.TemporaryFile('w+') as stderr:
        started = time.monotonic()
        child = subprocess.Popen(command, stdin=stdin, stdout=subprocess.DEVNULL, stderr=stderr)
        signal.signal(signal.SIGALRM, lambda *_: child.kill())
        signal.alarm(limit)
        _, status, usage = os.wait4(child.pid, 0)
        signal.alarm(0)
        child.returncode = status
        seconds = time.monotonic() - started
        stderr.seek(0)
        if status != 0 and seconds < limit:
            raise SystemExit('%s: status %d: %s' % (command[0], status, stderr.read()))
        return (seconds if status == 0 else None, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, stderr.read())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('tool')
    parser.add_argument('--count', type=int, default=10000)
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--limit', type=int, default=120)
    parser.add_argument('target')
    options = parser.parse_args()
    module, _, debug = options.target.partition(',')
    told_by = debug or module
    with tempfile.NamedTemporaryFile('w', suffix='.txt') as addresses:
        addresses.writelines('0x%x\n' % address for address in addresses_of(told_by, options.count))
        addresses.flush()
        commands = {
            'flamed': [options.tool, '--warm', module] + ([debug] if debug else []),
            'llvm-symbolizer': ['llvm-symbolizer', '--inlines', '--no-demangle', '--obj=' + told_by],
            'eu-addr2line': ['eu-addr2line', '-f', '-i', '-e', told_by],
        }
        found = {name: [] for name in commands}
        warm = []
        for _ in range(options.rounds):
            for name, command in commands.items():
                if found[name] and found[name][-1][0] is None:
                    continue  # once is enough
                found[name].append(measure(command, addresses.name, options.limit))
                times = re.search(r'cold_ns (\d+) warm_ns (\d+)', found[name][-1][3])
                if times:
                    warm.append((int(times.group(1)), int(times.group(2))))
    size = os.path.getsize(module) + (os.path.getsize(debug) if debug else 0)
    print('%s: %d MB, %d addresses, median of %d' % (os.path.basename(module), size >> 20, options.count, options.rounds))
    for name, runs in found.items():
        seconds = [run[0] for run in runs]
        print('%-16s %12s %7.2f s CPU %6d MB' % (
            name, '> %d s' % options.limit if None in seconds else '%.2f s' % statistics.median(seconds),
            statistics.median(run[1] for run in runs), statistics.median(run[2] for run in runs) / 2**20))
    cold = statistics.median(run[0] for run in warm) / 1e6
    again = statistics.median(run[1] for run in warm) / 1e6
    print('flamed within the process: cold %.1f ms, warm %.2f ms: %.0f times faster' % (cold, again, cold / again))


if __name__ == '__main__':
    main()
