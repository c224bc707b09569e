#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints apt's sources of a Debian suite, on the mirrors of this machine's own release: apt_sources.py SUITE...

Of each of this machine's sources that has its own release, one line for each SUITE (bookworm, trixie-backports, sid)
and, for a release, one for its security and its other updates. Sources of others than Debian are left out.
"""
import glob
import re
import sys


def own_release():
    with open('/etc/os-release', encoding='utf-8') as file:
        for line in file:
            name, _, value = line.strip().partition('=')
            if name == 'VERSION_CODENAME':
                return value.strip('"')
    return 'sid'


def stanzas(text):
    """The fields of each deb822 source (*.sources), as lists of words."""
    for paragraph in re.split(r'\n\s*\n', text):
        fields = {}
        last = None
        for line in paragraph.splitlines():
            if line.startswith('#'):
                continue
            if line[:1].isspace() and last:
                fields[last] += line.split()
            elif ':' in line:
                last, _, value = line.partition(':')
                fields[last] = value.split()
        if fields.get('Enabled') != ['no'] and 'deb' in fields.get('Types', []):
            yield fields.get('URIs', []), fields.get('Suites', []), fields.get('Signed-By', [])


def lines(text):
    """The same for one-line sources (*.list)."""
    for line in text.splitlines():
        found = re.match(r'deb\s+(?:\[([^]]*)\]\s+)?(\S+)\s+(\S+)', line)
        if found:
            options = dict(word.split('=', 1) for word in (found.group(1) or '').split() if '=' in word)
            yield [found.group(2)], [found.group(3)], [options['signed-by']] if 'signed-by' in options else []


def own_sources():
    """(URI, suite, keyring or '') of all."""
    found = []
    for path in ['/etc/apt/sources.list', *sorted(glob.glob('/etc/apt/sources.list.d/*'))]:
        try:
            with open(path, encoding='utf-8') as file:
                text = file.read()
        except OSError:
            continue
        read = stanzas if path.endswith('.sources') else lines
        for uris, suites, keys in read(text):
            found += [(uri, suite, keys[0] if keys else '') for uri in uris for suite in suites]
    return found


def main():
    own = own_release()
    names = {own}
    if own not in {suite for _, suite, _ in own_sources()}:
        names |= {'sid', 'unstable'}  # their base-files name the next release, or none
    wanted = []
    for suite in sys.argv[1:]:
        is_release = suite not in ('sid', 'unstable') and '-' not in suite
        for uri, of, key in own_sources():
            if of in names:
                wanted.append((uri, suite, key))
                if is_release:
                    wanted.append((uri, suite + '-updates', key))
            elif of == own + '-security' and is_release:
                wanted.append((uri, suite + '-security', key))
    if not wanted:
        sys.exit("this machine's apt has no sources of Debian " + own)
    for uri, suite, key in dict.fromkeys(wanted):
        # A mirror's copy of sid may be older than a week, and its Release is valid only for that long.
        options = ['check-valid-until=no'] if suite in ('sid', 'unstable') else []
        if key.startswith('/'):
            options.append('signed-by=' + key)
        print('deb', *(['[' + ' '.join(options) + ']'] if options else []), uri, suite, 'main')


if __name__ == '__main__':
    main()
