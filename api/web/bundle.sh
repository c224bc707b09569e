#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks the page's types and bundles it.
#
#   bundle.sh WORK_DIR OUTPUT.cc DEPENDENCIES.d NODE    the page as a C++ table
#   bundle.sh WORK_DIR --without-speedscope             the page's files alone, in WORK_DIR/page, for a build without npm
#                                                       (-Dfinished_page)
#
# Works on a copy in WORK_DIR, since Node looks for packages beside the files that name them. Packages are fetched only
# when the lock file has changed. DEPENDENCIES.d lists the page's files for Ninja.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
work=$(realpath -m "$1")
readonly here work
has_speedscope=true
if [[ $2 == --without-speedscope ]]; then
  has_speedscope=false
else
  output=$(realpath -m "$2")
  node=$4
  {
    printf '%s:' "$2"
    find "$here/src" -printf ' %p'
    printf '\n'
  } >"$3"
fi

mkdir -p "$work"
rm -rf "$work/src" "$work/page"
cp -r "$here/src" "$here/package.json" "$here/package-lock.json" "$here/.npmrc" "$here/tsconfig.json" "$work"
cd "$work"
if ! cmp -s package-lock.json .installed; then
  npm ci --no-progress --loglevel=error
  cp package-lock.json .installed
fi
node_modules/.bin/tsc --project .
node_modules/.bin/esbuild src/main.tsx src/help/help.ts src/graph/tree/worker.ts --bundle --minify --format=esm --target=es2022 --charset=utf8 \
  --define:HAS_SPEEDSCOPE=$has_speedscope --entry-names=[name] --log-level=warning --outdir=page
cp src/index.html src/help/help.html src/favicon.svg page

packages=(preact @preact/signals @preact/signals-core uplot)
if $has_speedscope; then
  packages+=(speedscope)
  # All of it but its example and its reader of Java's recordings, which is a third of it.
  mkdir page/speedscope
  find node_modules/speedscope/dist/release \( -name '*.html' -o -name 'speedscope-*' -o -name '*.woff2' -o -name '*.png' -o -name '*.ico' \) \
    -exec cp -t page/speedscope {} +
fi
# What is given on must say whose it is.
for package in "${packages[@]}"; do
  printf '%s\n\n' "$package"
  cat "node_modules/$package/LICENSE"
  printf '\n\n'
done >page/licences.txt
if $has_speedscope; then
  cat node_modules/speedscope/dist/release/source-code-pro.LICENSE.md >>page/licences.txt
  "$here/embed.py" "$output" page --brotli "$node"
fi
