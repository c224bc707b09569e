#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what Ninja has to build for tests, a target a line: targets.py BUILD_DIR SUITE[/TEST]...

An unknown test is an error that lists those there are.
"""
import json
import os
import subprocess
import sys


def introspect(build, what):
    told = subprocess.run(['meson', 'introspect', '--' + what, build], capture_output=True, text=True, check=True)
    return json.loads(told.stdout)


def main():
    build, parts = os.path.abspath(sys.argv[1]), sys.argv[2:]
    files = {target['id']: target['filename'] for target in introspect(build, 'targets')}
    tests = {}  # by suite
    for test in introspect(build, 'tests'):
        for suite in test['suite']:
            tests.setdefault(suite.rsplit(':', 1)[-1], []).append(test)
    built = {path for paths in files.values() for path in paths}
    wanted = set()
    for part in parts:
        suite, _, name = part.partition('/')
        chosen = [test for test in tests.get(suite, []) if name in ('', test['name'])]
        if name and not chosen:
            known = ', '.join(test['name'] for test in tests.get(suite, []))
            sys.exit(f'no such test: {part} (in {suite}: {known})')
        for test in chosen:
            wanted.update(path for identity in test['depends'] for path in files.get(identity, []))
            wanted.update(built.intersection(test['cmd']))
    for path in sorted(wanted):
        print(os.path.relpath(path, build))


if __name__ == '__main__':
    main()
