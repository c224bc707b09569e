#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks the page's types, bundles it, and writes it as a C++ table.
#
#   bundle.sh OUTPUT.cc WORK_DIR DEPENDENCIES.d NODE
#
# Works on a copy in WORK_DIR, since Node looks for packages beside the files that name them. Packages are fetched only
# when the lock file has changed. DEPENDENCIES.d lists the page's files for Ninja.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
output=$(realpath -m "$1")
work=$(realpath -m "$2")
dependencies=$(realpath -m "$3")
node=$4
readonly here output work dependencies node

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
node_modules/.bin/esbuild src/main.tsx src/help/help.ts src/graph/worker.ts --bundle --minify --format=esm --target=es2022 --charset=utf8 \
  --entry-names=[name] --log-level=warning --outdir=out

# What is given on must say whose it is.
for package in preact @preact/signals @preact/signals-core uplot speedscope; do
  printf '%s\n\n' "$package"
  cat "node_modules/$package/LICENSE"
  printf '\n\n'
done >out/licences.txt
cat node_modules/speedscope/dist/release/source-code-pro.LICENSE.md >>out/licences.txt

# All of speedscope but its example and its reader of Java's recordings, which is a third of it.
mapfile -t speedscope < <(find node_modules/speedscope/dist/release -name '*.html' -o -name 'speedscope-*' -o -name '*.woff2' -o -name '*.png' -o -name '*.ico')
"$here/embed.py" "$output" --brotli "$node" src/index.html src/help/help.html src/favicon.svg out/{main,help}.{js,css} out/worker.js out/licences.txt \
  --under /speedscope/ "${speedscope[@]}"
