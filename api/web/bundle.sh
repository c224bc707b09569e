#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks the page's types, bundles it, and writes it as a C++ table.
#
#   bundle.sh OUTPUT.cc WORK_DIR DEPENDENCIES.d
#
# Works on a copy in WORK_DIR, since Node looks for packages beside the files that name them. Packages are fetched only
# when the lock file has changed. DEPENDENCIES.d tells Ninja which files the page is made of.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
output=$(realpath -m "$1")
work=$(realpath -m "$2")
dependencies=$(realpath -m "$3")
readonly here output work dependencies

{
  printf '%s:' "$1"
  find "$here/src" -printf ' %p'
  printf '\n'
} >"$dependencies"

mkdir -p "$work"
rm -rf "$work/src" "$work/out"
cp -r "$here/src" "$here/package.json" "$here/package-lock.json" "$here/.npmrc" "$here/tsconfig.json" "$work"
cd "$work"
if ! cmp -s package-lock.json .installed; then
  npm ci --no-progress --loglevel=error
  cp package-lock.json .installed
fi
node_modules/.bin/tsc --project .
node_modules/.bin/esbuild src/main.tsx --bundle --minify --format=esm --target=es2022 --charset=utf8 \
  --legal-comments=inline --log-level=warning --outdir=out
"$here/embed.py" "$output" src/index.html src/favicon.svg out/main.js out/main.css
