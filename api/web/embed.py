#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the page's files into a C++ table (api/assets.h): compressed, and named by a hash of their content.

    embed.py OUTPUT.cc FILE...

index.html becomes "/". Every other file becomes /assets/NAME.HASH.EXT, and the places that name it follow: "./NAME" in
modules, "NAME" in attributes of index.html. A browser may then keep those files for ever.
"""
import gzip
import hashlib
import pathlib
import re
import sys

CONTENT_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class Assets:
    def __init__(self, files):
        self.files = {file.name: file for file in files}
        self.done = {}  # name -> (path in URLs, content)
        self.under_way = []

    def path_of(self, name):
        """Where a file is served. What it names is settled first, since that is part of its content."""
        if name not in self.done:
            if name in self.under_way:
                sys.exit("embed.py: files name each other in a circle: " + " > ".join(self.under_way + [name]))
            self.under_way.append(name)
            content = self.rewritten(self.files[name])
            self.under_way.pop()
            stem, dot, extension = name.rpartition(".")
            digest = hashlib.sha256(content).hexdigest()[:12]
            path = "/" if name == "index.html" else f"/assets/{stem}.{digest}{dot}{extension}"
            self.done[name] = (path, content)
        return self.done[name][0]

    def rewritten(self, file):
        text = file.read_text(encoding="utf-8")
        if file.suffix == ".js":
            text = re.sub(r'"\./([\w.-]+)"', lambda match: f'"{self.resolve(file, match[1])}"', text)
        elif file.suffix == ".html":
            text = re.sub(r'(href|src)="([\w.-]+)"', lambda match: f'{match[1]}="{self.resolve(file, match[2])}"', text)
        return text.encode("utf-8")

    def resolve(self, file, name):
        if name not in self.files:
            sys.exit(f"embed.py: {file} names {name}, which is not in the list of files")
        return self.path_of(name)


def write_table(assets, output):
    lines = ["// Made by api/web/embed.py.", '#include "api/assets.h"', "", "#include <array>", "", "namespace flamed::api {", "namespace {", ""]
    rows = []
    for number, name in enumerate(sorted(assets.done)):
        path, content = assets.done[name]
        packed = gzip.compress(content, 9, mtime=0)
        lines.append(f"constexpr std::array<unsigned char, {len(packed)}> kFile{number}{{")
        for start in range(0, len(packed), 24):
            lines.append(",".join(str(byte) for byte in packed[start:start + 24]) + ",")
        lines.append("};")
        rows.append(f'    {{"{path}", "{CONTENT_TYPES[pathlib.Path(name).suffix]}", kFile{number}}},')
    lines += ["", f"constexpr std::array<Asset, {len(rows)}> kAssets{{{{", *rows, "}};", "", "}  // namespace", "",
              "std::span<const Asset> assets() { return kAssets; }", "", "}  // namespace flamed::api", ""]
    pathlib.Path(output).write_text("\n".join(lines), encoding="ascii")


def main():
    assets = Assets([pathlib.Path(argument) for argument in sys.argv[2:]])
    for name in sorted(assets.files):
        assets.path_of(name)
    write_table(assets, sys.argv[1])


main()
