#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that rooms include only what docs/architecture.md lets them: includes.py

A room is a folder with C++ sources. Its row in the table of rooms names the rooms that it may include; `store/*` stands for
all within `store`. No circles: neither among the rooms, nor among the modules of the page or its folders. Prints what is
wrong, a line each, and exits with 1.
"""
import fnmatch
import os
import re
import sys

TABLE = 'docs/architecture.md'
ROW = re.compile(r'^\| `([\w/]+?)/?` \|.*\|\s*([^|]*?)\s*\|$')
PAGE = 'api/web/src'


def sources(below, *endings):
    for folder, folders, names in os.walk(below):
        # Neither build directories nor what npm brings.
        folders[:] = sorted(name for name in folders if name not in ('test', 'pch', 'node_modules') and name[0] != '.'
                            and not os.path.exists(os.path.join(folder, name, 'meson-private')))
        for name in sorted(names):
            if name.endswith(endings):
                yield os.path.relpath(os.path.join(folder, name))


def text_of(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def rules():
    """By room: the patterns of what it may include."""
    begin = text_of(TABLE).split('| room | contents | may include |', 1)[1]
    table = begin.split('\n\n', 1)[0]
    return {row[1]: re.findall(r'`([\w/*]+?)/?`', row[2]) for row in map(ROW.match, table.splitlines()) if row}


def circle_in(targets):
    """The nodes of a circle, or none. `targets`: by node, where its arrows lead."""
    finished, path = set(), []

    def walk(node):
        if node in path:
            return path[path.index(node):] + [node]
        if node in finished:
            return None
        path.append(node)
        for target in sorted(targets.get(node, ())):
            if found := walk(target):
                return found
        path.pop()
        finished.add(node)
        return None

    return next(filter(None, map(walk, sorted(targets))), None)


def check_rooms():
    allowed, used = rules(), {}
    for path in sources('.', '.cc', '.h', '.c'):
        room = os.path.dirname(path)
        if room not in allowed:
            yield f'{path}: {TABLE} has no row for `{room}`'
            continue
        for included in re.findall(r'^#include "([^"]+)"', text_of(path), re.MULTILINE):
            target = os.path.dirname(included) or room
            if target == room:
                continue
            used.setdefault(room, set()).add(target)
            if not any(fnmatch.fnmatch(target, pattern) for pattern in allowed[room]):
                yield f'{path}: includes {included}, and {TABLE} does not let `{room}` include `{target}`'
    for room in allowed:
        if not os.path.isdir(room):
            yield f'{TABLE}: there is no `{room}`'
    if circle := circle_in(used):
        yield 'rooms include each other in a circle: ' + ' -> '.join(circle)


def check_page():
    modules = {os.path.splitext(path)[0]: path for path in sources(PAGE, '.ts', '.tsx')}
    targets, folders = {}, {}
    for module, path in modules.items():
        for name in re.findall(r'^\s*(?:import|export)\b[^;]*?from "(\.[^"]+)"', text_of(path), re.MULTILINE):
            target = os.path.normpath(os.path.join(os.path.dirname(module), name))
            if target in modules:
                targets.setdefault(module, set()).add(target)
                folder, other = os.path.dirname(module), os.path.dirname(target)
                # The outermost has both what all others use and what puts them together.
                if folder != other and PAGE not in (folder, other):
                    folders.setdefault(folder, set()).add(other)
    if circle := circle_in(targets):
        yield 'modules of the page import each other in a circle: ' + ' -> '.join(circle)
    if circle := circle_in(folders):
        yield 'folders of the page import each other in a circle: ' + ' -> '.join(circle)


def main():
    wrong = [*check_rooms(), *check_page()]
    print('\n'.join(wrong), end='\n' if wrong else '')
    sys.exit(bool(wrong))


if __name__ == '__main__':
    main()
