#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the C++ sources that clang-tidy has to check again: outdated.py BUILD_DIR

Each is followed by the path of its stamp, both end with NUL. The largest sources come first, so that the last ones are
short. A source is checked again when it, a header that it includes, or the rules have changed since its stamp was made. Which
headers those are ninja remembers from the last build; of a source that was never built none are known, and it is checked.
"""
import functools
import json
import os
import subprocess
import sys


@functools.lru_cache(maxsize=None)
def changed_at(path):
    try:
        return os.stat(path).st_mtime_ns
    except FileNotFoundError:
        return 0


def includes_by_object(build):
    objects, current = {}, None
    told = subprocess.run(['ninja', '-C', build, '-t', 'deps'], capture_output=True, text=True, check=True)
    for line in told.stdout.splitlines():
        if ': #deps ' in line:
            current = objects.setdefault(line.split(': #deps ')[0], [])
        elif line.startswith(' ') and current is not None:
            current.append(line.strip())
    return objects


def main():
    build = sys.argv[1]
    stamps = os.path.join(build, 'tidy')
    os.makedirs(stamps, exist_ok=True)
    objects = includes_by_object(build)
    with open(os.path.join(build, 'compile_commands.json'), encoding='utf-8') as file:
        commands = json.load(file)
    newest = {}  # of a source and what it includes; None: not known
    for command in commands:
        path = os.path.relpath(os.path.join(command['directory'], command['file']))
        if not path.endswith('.cc') or path.startswith(('..', build + os.sep)):
            continue
        made_of = objects.get(command['output'])
        own = [path, '.clang-tidy']
        if made_of is not None:
            own += [os.path.join(build, name) for name in made_of if not name.startswith('/')]
        latest = max(changed_at(name) for name in own) if made_of is not None else None
        if path not in newest or latest is None or (newest[path] is not None and latest > newest[path]):
            newest[path] = latest
    todo = []
    for path, latest in newest.items():
        stamp = os.path.join(stamps, path.replace('/', '_') + '.passed')
        if latest is None or changed_at(stamp) <= latest:
            todo.append((-os.path.getsize(path), path, stamp))
    for _, path, stamp in sorted(todo):
        sys.stdout.write(path + '\0' + stamp + '\0')


if __name__ == '__main__':
    main()
