#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the C++ sources that clang-tidy has to check: outdated.py BUILD_DIR

Each is followed by the path of its stamp, both end with NUL. The largest sources come first, so that the last ones are
short. A stamp is named by the contents of all that the check depends on: the source, what it includes, how it is compiled, the
rules, and the release of clang-tidy. So a source is checked once, in whichever tree it stands. What it includes ninja
remembers from the last build; of a source that was never built nothing is known, and it is checked.

Stamps are kept in $XDG_CACHE_HOME/flamed/tidy, for 60 days after they were used last.
"""
import functools
import hashlib
import json
import os
import subprocess
import sys
import time

KEPT_SECONDS = 60 * 24 * 3600


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


def main():
    build = sys.argv[1]
    stamps = stamp_folder()
    objects = includes_by_object(build)
    release = subprocess.run(['clang-tidy', '--version'], capture_output=True, check=True).stdout
    with open(os.path.join(build, 'compile_commands.json'), encoding='utf-8') as file:
        commands = json.load(file)
    keys = {}  # by source; of one that was never built, a name that no other check has
    for command in commands:
        path = os.path.relpath(os.path.join(command['directory'], command['file']))
        if not path.endswith('.cc') or path.startswith(('..', build + os.sep)):
            continue
        if path not in keys:
            keys[path] = hashlib.sha256(release + digest_of('.clang-tidy'))
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
            todo.append((-os.path.getsize(path), path, stamp))
    for _, path, stamp in sorted(todo):
        sys.stdout.write(path + '\0' + stamp + '\0')


if __name__ == '__main__':
    main()
