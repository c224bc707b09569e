#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the page's files into a C++ table (api/http/assets.h): compressed, and named by a hash of their content.

    embed.py OUTPUT.cc FOLDER [--brotli NODE] [--depfile FILE]

index.html becomes "/", another NAME.html "/NAME". Every other file becomes /assets/NAME.HASH.EXT, and the places that name
it follow: "./NAME" in modules, "NAME" in attributes of pages. A browser may then keep those files for ever.

Files in a folder of FOLDER keep their names, /NAME/FILE, since they have hashes in them already and name each other; the
index.html among them becomes /NAME/ itself.

--brotli has Node compress with Brotli beside gzip: Python's own library cannot. --depfile lists the files for Ninja.
"""
import argparse
import gzip
import hashlib
import pathlib
import re
import subprocess
import sys
from typing import NamedTuple

CONTENT_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".md": "text/plain; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".woff2": "font/woff2",
}

BROTLI = """
const zlib = require("node:zlib");
const text = require("node:fs").readFileSync(0);
process.stdout.write(zlib.brotliCompressSync(text, { params: { [zlib.constants.BROTLI_PARAM_SIZE_HINT]: text.length } }));
"""


class Asset(NamedTuple):
    path: str
    content_type: str
    content: bytes
    is_hashed: bool


class Page:
    """Files that refer to each other, each under the hash of its content after the names in it were replaced."""

    def __init__(self, files):
        self.files = {file.name: file for file in files}
        self.done = {}  # name -> Asset
        self.under_way = []

    def assets(self):
        return [self.settled(name) for name in sorted(self.files)]

    def settled(self, name):
        if name not in self.done:
            if name in self.under_way:
                sys.exit("embed.py: files name each other in a circle: " + " > ".join(self.under_way + [name]))
            self.under_way.append(name)
            content = self.rewritten(self.files[name])
            self.under_way.pop()
            stem, dot, extension = name.rpartition(".")
            if extension == "html":
                path = "/" if stem == "index" else f"/{stem}"
            else:
                path = f"/assets/{stem}.{hashlib.sha256(content).hexdigest()[:12]}{dot}{extension}"
            self.done[name] = Asset(path, content_type(name), content, extension != "html")
        return self.done[name]

    def rewritten(self, file):
        text = file.read_text(encoding="utf-8")
        if file.suffix == ".js":
            text = re.sub(r'"\./([\w.-]+)"', lambda match: f'"{self.resolve(file, match[1])}"', text)
        elif file.suffix == ".html":
            text = re.sub(r'(href|src)="([\w-]+\.[\w.-]+)"', lambda match: f'{match[1]}="{self.resolve(file, match[2])}"', text)
        return text.encode("utf-8")

    def resolve(self, file, name):
        if name not in self.files:
            sys.exit(f"embed.py: {file} names {name}, which is not beside it")
        return self.settled(name).path


def content_type(name):
    suffix = pathlib.Path(name).suffix
    if suffix not in CONTENT_TYPES:
        sys.exit(f"embed.py: no content type is known for {name}")
    return CONTENT_TYPES[suffix]


def kept(prefix, file):
    is_index = file.name == "index.html"
    return Asset(prefix + ("" if is_index else file.name), content_type(file.name), file.read_bytes(), not is_index)


def brotli(node, content):
    return subprocess.run([node, "-e", BROTLI], input=content, stdout=subprocess.PIPE, check=True).stdout


def write_table(assets, node, output):
    lines = ["// Made by api/web/embed.py.", '#include "api/http/assets.h"', "", "#include <array>", "", "namespace flamed::api {", "namespace {", ""]

    def write_bytes(name, content):
        lines.append(f"constexpr std::array<unsigned char, {len(content)}> {name}{{")
        for start in range(0, len(content), 24):
            lines.append(",".join(str(byte) for byte in content[start:start + 24]) + ",")
        lines.append("};")

    rows = []
    for number, asset in enumerate(assets):
        write_bytes(f"kGzip{number}", gzip.compress(asset.content, 9, mtime=0))
        if node:
            write_bytes(f"kBrotli{number}", brotli(node, asset.content))
        rows.append(f'    {{"{asset.path}", "{asset.content_type}", kGzip{number}, {f"kBrotli{number}" if node else "{}"}, '
                    f'{"true" if asset.is_hashed else "false"}}},')
    lines += ["", f"constexpr std::array<Asset, {len(rows)}> kAssets{{{{", *rows, "}};", "", "}  // namespace", "",
              "std::span<const Asset> assets() { return kAssets; }", "", "}  // namespace flamed::api", ""]
    pathlib.Path(output).write_text("\n".join(lines), encoding="ascii")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("output")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--brotli", metavar="NODE")
    parser.add_argument("--depfile", type=pathlib.Path)
    arguments = parser.parse_args()
    page = [file for file in arguments.folder.iterdir() if file.is_file()]
    others = sorted(arguments.folder.glob("*/*"))
    assets = Page(page).assets() + [kept(f"/{file.parent.name}/", file) for file in others]
    write_table(assets, arguments.brotli, arguments.output)
    if arguments.depfile:
        arguments.depfile.write_text(f"{arguments.output}: " + " ".join(map(str, page + others)) + "\n", encoding="utf-8")


main()
