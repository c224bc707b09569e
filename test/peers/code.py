#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""perf and flamed on one program at the same time, by instruction and by line: code.py BUILD_DIR [c++|rust|go...]

Of each program, compiled from test/peers/code: every address in user space at which perf has found it, and every one in
answers of flamed's /instructions, must be the start of an instruction of objdump. Every address with samples there must have
the file and the line that llvm-symbolizer has; they may differ outside of the ten functions with the most samples, where
debug information says two things of one address. Shares of instructions and of lines must be those of perf within three
standard deviations, but for as many as chance has; their sums in each function are the function's own samples. Needs root, perf, objdump, llvm-symbolizer, the
compilers, and a built flamed.
"""
import collections
import http.client
import json
import math
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS = 30
HZ = 999
TOP = 10  # functions in which no line may differ
DEVIATIONS = 3
BUILD = {
    'c++': ['g++', '-O2', '-g', '-o', '{out}', 'load.cc'],
    'rust': ['rustc', '-O', '-g', '-o', '{out}', 'load.rs'],
    'go': ['go', 'build', '-o', '{out}', 'load.go'],
}


# ---- flamed ----


class Flamed:
    def __init__(self, build):
        with socket.socket() as probe:
            probe.bind(('127.0.0.1', 0))
            self.port = probe.getsockname()[1]
        self.process = subprocess.Popen(
            [os.path.join(build, 'flamed'), '--listen', f'127.0.0.1:{self.port}', '--frequency', str(HZ), '--history', 'off',
             '--cpu-budget', 'off'], stderr=subprocess.DEVNULL)
        until = time.monotonic() + 60
        while time.monotonic() < until:
            try:
                if self.ask('/readyz')[0] == 200:
                    return
            except OSError:
                time.sleep(0.05)
        self.end()
        sys.exit('flamed did not become ready')

    def end(self):
        self.process.terminate()
        self.process.wait()

    def ask(self, path, **parameters):
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=60)
        connection.request('GET', path + ('?' + urllib.parse.urlencode(parameters) if parameters else ''))
        answer = connection.getresponse()
        return answer.status, answer.read()

    def get(self, path, **parameters):
        status, text = self.ask(path, **parameters)
        if status != 200:
            sys.exit(f'{path} {parameters}: {status} {text[:300]}')
        return json.loads(text)


# ---- The others ----


class Objdump:
    """Where instructions begin, as addresses of a file."""

    def __init__(self):
        self.known = {}

    def starts(self, path):
        if path not in self.known:
            text = subprocess.run(['objdump', '-d', '--no-show-raw-insn', path], capture_output=True, text=True, check=True).stdout
            self.known[path] = {int(match, 16) for match in re.findall(r'^ *([0-9a-f]+):\t', text, re.M)}
        return self.known[path]


def segments_of(path):
    text = subprocess.run(['readelf', '-lW', path], capture_output=True, text=True, check=True).stdout
    return [tuple(int(number, 16) for number in match)
            for match in re.findall(r'^ *LOAD +(0x\w+) (0x\w+) 0x\w+ (0x\w+)', text, re.M)]


def perf_addresses(data):
    """By path: the addresses of the file at which user space was sampled, counted."""
    text = subprocess.run(['perf', 'script', '-i', data, '--show-mmap-events', '-F', 'comm,pid,ip', '-G'], capture_output=True,
                          text=True, check=True).stdout
    mapped, counts, segments, unmapped = [], collections.defaultdict(collections.Counter), {}, 0
    for line in text.splitlines():
        mmap = re.search(r'PERF_RECORD_MMAP2? -?\d+/\d+: \[(0x\w+)\((0x\w+)\) @ (\w+)[^\]]*\]: r-xp (/\S+)', line)
        if mmap:
            start, size, offset = (int(mmap[i], 0) for i in (1, 2, 3))
            mapped.append((start, start + size, offset, mmap[4]))
            continue
        sample = re.match(r'.*\s([0-9a-f]+)\s*$', line)
        if not sample or 'PERF_RECORD' in line:
            continue
        ip = int(sample[1], 16)
        found = next((each for each in reversed(mapped) if each[0] <= ip < each[1]), None)
        if found is None:
            unmapped += 1
            continue
        start, _, offset, path = found
        at = ip - start + offset
        if path not in segments:
            segments[path] = segments_of(path)
        for file_offset, address, size in segments[path]:
            if file_offset <= at < file_offset + size:
                counts[path][at - file_offset + address] += 1
    return counts, unmapped


def symbolized(path, addresses):
    """By address: (file, line) of each function there, from the innermost one on."""
    lines = subprocess.run(['llvm-symbolizer', '--obj=' + path, '--output-style=JSON'],
                           input='\n'.join(hex(address) for address in addresses), capture_output=True, text=True, check=True).stdout
    found = {}
    for address, line in zip(addresses, lines.splitlines()):
        frames = json.loads(line).get('Symbol', [])
        found[address] = [(os.path.basename(frame['FileName']), frame['Line']) for frame in frames]
    return found


# ---- The comparison ----


class Comparison:
    def __init__(self, name):
        self.name = name
        self.figures = collections.Counter()
        self.wrong = []

    def expect(self, is_so, what):
        self.figures['checked'] += 1
        if not is_so:
            self.wrong.append(what)

    def shares(self, what, ours, theirs):
        """Of the places in one file: how many differ by more than chance would have it."""
        own, other = sum(ours.values()), sum(theirs.values())
        if own < 100 or other < 100:
            return
        for place in set(ours) | set(theirs):
            pooled = (ours[place] + theirs[place]) / (own + other)
            if pooled * min(own, other) < 5:
                continue  # too few for this kind of deviation
            deviation = math.sqrt(pooled * (1 - pooled) * (1 / own + 1 / other))
            distance = abs(ours[place] / own - theirs[place] / other) / deviation if deviation else 0
            self.figures[f'{what} compared'] += 1
            self.figures[f'{what} beyond'] += distance > DEVIATIONS

    def report(self):
        for what in ('instructions', 'lines'):
            compared, beyond = self.figures[f'{what} compared'], self.figures[f'{what} beyond']
            # Chance has 0.27 % beyond three deviations; a thousandth of chance for more than this.
            most = 1 + math.ceil(0.0027 * compared + 3 * math.sqrt(0.0027 * compared))
            self.expect(beyond <= most, f'{beyond} of {compared} {what} are beyond {DEVIATIONS} deviations')
            self.expect(compared > 0, f'no shares of {what} were compared')
        print(f'{self.name}: ' + ', '.join(f'{key} {value}' for key, value in sorted(self.figures.items())))
        for text in self.wrong[:40]:
            print(f'  {text}')
        return not self.wrong


def compare(language, flamed, folder):
    program = os.path.join(folder, 'load-' + language.replace('+', 'p'))
    command = [part.format(out=program) for part in BUILD[language]]
    subprocess.run(command, check=True, cwd=os.path.join(HERE, 'code'), env={**os.environ, 'GO111MODULE': 'off'})
    load = subprocess.Popen([program, '100000'], stdout=subprocess.DEVNULL, env={**os.environ, 'GOMAXPROCS': '1'})
    time.sleep(2)
    began = time.time()
    data = os.path.join(folder, 'perf.data')
    subprocess.run(['perf', 'record', '-q', '-e', 'cpu-clock:u', '-F', str(HZ), '-p', str(load.pid), '-o', data, '--', 'sleep', str(SECONDS)],
                   check=True, stdout=subprocess.DEVNULL)
    window = {'pid': load.pid, 'from': f'{began:.3f}', 'to': f'{time.time():.3f}'}
    time.sleep(1.5)
    result = Comparison(language)
    counts, unmapped = perf_addresses(data)
    result.figures['samples of perf outside of files'] = unmapped
    objdump = Objdump()
    for path, addresses in counts.items():
        for address, samples in addresses.items():
            result.figures['samples of perf'] += samples
            result.expect(address in objdump.starts(path), f'perf: {path} {address:#x} is no start of objdump')
    files = {os.path.basename(path): path for path in counts}

    # While the program runs, its files are open.
    top = flamed.get('/profile', format='top', side='user', max_nodes=1000, **window)['functions']
    functions = collections.Counter()
    for function in top:
        if function['self'] and function.get('module') in files:
            functions[function['name'], function['module']] += function['self']
    shown = collections.defaultdict(set)
    ours, our_lines = (collections.defaultdict(collections.Counter) for _ in range(2))
    for rank, ((name, module), own) in enumerate(functions.most_common()):
        path = files[module]
        about = {'function': name, 'module': module, 'side': 'user', **window}
        code = flamed.get('/instructions', **about)
        source = flamed.get('/source', **about)
        result.expect(code['self'] == source['self'] == own, f'{name}: {code["self"]} and {source["self"]} of {own} samples')
        result.expect(sum(line['self'] for line in source['lines']) == own, f'{name}: the lines are not all')
        by_line, rows = collections.Counter(), {}
        of_rows = 0
        for part in code['parts']:
            result.expect(part['reason'] is None, f'{name}: {part["reason"]}')
            for row in part['instructions']:
                address = int(row['address'], 16)
                shown[path].add(address)
                result.expect(address in objdump.starts(path), f'{name}: {address:#x} is no start of objdump')
                result.expect(row['text'] is not None, f'{name}: {address:#x} has no text: {row["bytes"]}')
                if not row['self']:
                    continue
                of_rows += row['self']
                ours[path][address] += row['self']
                result.figures['rows with samples'] += 1
                if row.get('line'):
                    rows[address] = (os.path.basename(row['file']), row['line'])
                    by_line[rows[address]] += row['self']
        result.expect(of_rows == own, f'{name}: instructions have {of_rows} of {own} samples')
        lines = collections.Counter()
        for line in source['lines']:
            if line['line'] and line['self']:
                lines[os.path.basename(line['file']), line['line']] += line['self']
        result.expect(lines == by_line, f'{name}: lines of /source and /instructions differ')
        our_lines[path].update(lines)
        for address, frames in symbolized(path, sorted(rows)).items():
            result.figures['lines of addresses'] += 1
            if rows[address] != frames[0]:
                result.figures['lines that differ'] += 1
                result.expect(rank >= TOP, f'{name}: {address:#x} is {rows[address]}, llvm-symbolizer has {frames}')
    for path, addresses in counts.items():
        for address in addresses:
            result.figures['addresses of perf'] += 1
            result.figures['addresses of perf in answers'] += address in shown[path]
        result.shares('instructions', ours[path], addresses)
        if our_lines[path]:
            their_lines = collections.Counter()
            for address, frames in symbolized(path, sorted(addresses)).items():
                if frames and frames[0][1]:
                    their_lines[frames[0]] += addresses[address]
            result.shares('lines', our_lines[path], their_lines)
    load.terminate()
    load.wait()
    return result.report()


def main():
    build = os.path.abspath(sys.argv[1])
    languages = sys.argv[2:] or [language for language, (compiler, *_) in BUILD.items() if shutil.which(compiler)]
    flamed = Flamed(build)
    try:
        with tempfile.TemporaryDirectory() as folder:
            results = [compare(language, flamed, folder) for language in languages]
    finally:
        flamed.end()
    sys.exit(0 if all(results) else 1)


main()
