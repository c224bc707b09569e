#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the C++ sources that have changed with clang-tidy: tidy.py BUILD_DIR

Prints what it finds, and exits with 1 if there is anything.

Most of the time goes into headers that many sources include. So sources with the same compiler flags are checked in
batches: clang-tidy gets one source that includes them. If it finds something, or the sources can't be compiled together,
each half is checked by itself. Unused using-declarations are found here, since clang-tidy ignores them in included files.

What has passed is not checked again: its stamp is named by the contents of all that the check depends on, which are the
source, what it includes, how it is compiled, the rules, and the release of clang-tidy. So a source is checked once, in
whichever tree it stands. What it includes ninja remembers from the last build; of a source that was never built nothing is
known, and it is checked. Stamps are kept in $XDG_CACHE_HOME/flamed/tidy, for 60 days after they were used last.
"""
import collections
import concurrent.futures
import functools
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time

KEPT_SECONDS = 60 * 24 * 3600
MOST_IN_BATCH = 12
CLANG_TIDY = ['clang-tidy', '--quiet', '--config-file=.clang-tidy']
# What a source declares for itself alone: two sources of a batch can't have the same.
DECLARATION = re.compile(r'^(?!return|using namespace|namespace|#|//)(?:[\w:<>,&*\[\]"]+ )+[*&]*(\w+)(?: ?[({=;\[]| :|$)', re.M)
# Of a command line, what differs between sources that are compiled alike: their own names, and their target's folder.
OWN_FLAGS = re.compile(r' (?:-M[QF] |-o |-c )?\S+\.(?:p|o|o\.d|cc)(?= |$)|(?<= )-I\S+\.p(?= )')

Source = collections.namedtuple('Source', 'path stamp command')


@functools.lru_cache(maxsize=None)
def digest_of(path):
    try:
        with open(path, 'rb') as file:
            return hashlib.sha256(file.read()).digest()
    except FileNotFoundError:  # included at the last build, and gone since
        return b''


def includes_by_object(build):
    objects, current = {}, None
    told = subprocess.run(['ninja', '-C', build, '-t', 'deps'], capture_output=True, text=True, check=True)
    for line in told.stdout.splitlines():
        if ': #deps ' in line:
            current = objects.setdefault(line.split(': #deps ')[0], [])
        elif line.startswith(' ') and current is not None:
            current.append(line.strip())
    return objects


def stamp_folder():
    cache = os.environ.get('XDG_CACHE_HOME') or os.path.join(os.path.expanduser('~'), '.cache')
    folder = os.path.join(cache, 'flamed', 'tidy')
    os.makedirs(folder, exist_ok=True)
    for entry in os.scandir(folder):
        if entry.stat().st_mtime < time.time() - KEPT_SECONDS:
            os.remove(entry.path)
    return folder


def add(key, command, included, build):
    """Adds to `key` all that one compilation of a source depends on."""
    root = os.path.dirname(os.path.abspath(build))
    key.update(command['command'].replace(root, '').encode() + b'\0')
    for path in sorted(included):
        key.update(path.encode() + b'\0' + digest_of(os.path.join(build, path)))


def outdated(build):
    """Sources to be checked."""
    stamps = stamp_folder()
    objects = includes_by_object(build)
    release = subprocess.run(['clang-tidy', '--version'], capture_output=True, check=True).stdout
    with open(os.path.join(build, 'compile_commands.json'), encoding='utf-8') as file:
        commands = json.load(file)
    keys, first = {}, {}  # by source; of one that was never built, a name that no other check has
    for command in commands:
        path = os.path.relpath(os.path.join(command['directory'], command['file']))
        if not path.endswith('.cc') or path.startswith(('..', build + os.sep)):
            continue
        if path not in keys:
            keys[path] = hashlib.sha256(release + digest_of('.clang-tidy'))
            first[path] = command
        if command['output'] in objects:
            add(keys[path], command, objects[command['output']], build)
        else:
            keys[path].update(os.urandom(32))
    todo = []
    for path, key in keys.items():
        stamp = os.path.join(stamps, key.hexdigest())
        if os.path.exists(stamp):
            os.utime(stamp)
        else:
            todo.append(Source(path, stamp, first[path]))
    return todo


def batches_of(sources):
    """Sources that are compiled alike and don't declare the same names, those of one folder together."""
    groups = collections.defaultdict(list)  # of (sources, their names)
    for source in sorted(sources):
        with open(source.path, encoding='utf-8') as file:
            names = set(DECLARATION.findall(file.read()))
        group = groups[OWN_FLAGS.sub('', source.command['command'])]
        for batch, taken in group:
            if len(batch) < MOST_IN_BATCH and not names & taken:
                batch.append(source)
                taken |= names
                break
        else:
            group.append(([source], names))
    return [batch for group in groups.values() for batch, _ in group]


def findings(*arguments):
    """The output of clang-tidy if it finds something or fails; otherwise empty."""
    told = subprocess.run([*CLANG_TIDY, *arguments], capture_output=True, text=True, check=False)
    return f'{told.stdout}{told.stderr}(exit status {told.returncode})\n' if told.returncode != 0 else ''


def check(batch, build):
    """Returns what was found in these sources, and stamps those that pass."""
    if len(batch) == 1:
        found = findings('-p', build, batch[0].path)
    else:
        with tempfile.TemporaryDirectory() as folder:
            together = os.path.join(folder, 'together.cc')
            with open(together, 'w', encoding='utf-8') as file:
                file.writelines(f'#include "{os.path.abspath(source.path)}"\n' for source in batch)
            like = batch[0].command
            command = {'directory': like['directory'], 'file': together,
                       'command': like['command'].replace(like['file'], together)}
            with open(os.path.join(folder, 'compile_commands.json'), 'w', encoding='utf-8') as file:
                json.dump([command], file)
            found = findings('-p', folder, '--checks=-bugprone-suspicious-include', together)
        if found:
            half = len(batch) // 2
            return check(batch[:half], build) + check(batch[half:], build)
    for source in batch if not found else []:
        with open(source.stamp, 'wb'):
            pass
    return [f'clang-tidy: {batch[0].path}\n{found}'] if found else []


def unused_usings(path):
    with open(path, encoding='utf-8') as file:
        text = file.read()
    return [f'{path}: using {name}: it is not used' for name in re.findall(r'^using ([\w:]+);$', text, re.M)
            if len(re.findall(rf'\b{name.split("::")[-1]}\b', text)) == text.count(f'using {name};')]


def main():
    build = sys.argv[1]
    sources = outdated(build)
    batches = sorted(batches_of(sources), key=len, reverse=True)
    print(f'{len(sources)} sources to check, in {len(batches)} batches', flush=True)
    found = [line for source in sources for line in unused_usings(source.path)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for lines in pool.map(lambda batch: check(batch, build), batches):
            found += lines
    for text in found:
        print(text)
    sys.exit(1 if found else 0)


if __name__ == '__main__':
    main()
