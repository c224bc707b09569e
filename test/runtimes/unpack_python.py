#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Unpacks the Python for Linux from the Go module go-embed-python: unpack_python.py DOWNLOAD FOLDER

DOWNLOAD has what `go mod download -json` has said. files.json lists the files; those that are marked there as compressed have ".gz" behind their names.
"""
import gzip
import json
import os
import stat
import sys


def main():
    download, folder = sys.argv[1:]
    with open(download, encoding='utf-8') as file:
        module = json.load(file)
    if 'Error' in module:
        sys.exit(module['Error'])
    data = os.path.join(module['Dir'], 'python/internal/data/linux-amd64')
    with open(os.path.join(data, 'files.json'), encoding='utf-8') as file:
        entries = json.load(file)['files']
    for entry in entries:
        path = os.path.join(folder, entry['name'])
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if 'symlink' in entry:
            os.symlink(entry['symlink'], path)
            continue
        source = os.path.join(data, entry['name'])
        if os.path.isdir(source):
            os.makedirs(path, exist_ok=True)
            continue
        with (gzip.open(source + '.gz') if entry.get('compressed') else open(source, 'rb')) as packed, open(path, 'wb') as file:
            file.write(packed.read())
            os.fchmod(file.fileno(), stat.S_IMODE(entry['perm']) | 0o400)


main()
