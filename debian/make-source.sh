#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the source package of the last commit in FOLDER, for any Debian to build without network.
#
#   debian/make-source.sh FOLDER
#
# This is the one step with network: npm fetches what the page is built with. Added to the commit's files are the finished
# page (api/web/page) and the sources of the packages that are bundled into it (debian/missing-sources). Needs git, node,
# npm and dpkg-dev.
set -euo pipefail

here=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)
mkdir -p "${1:?usage: make-source.sh FOLDER}"
folder=$(realpath "$1")
version=$(dpkg-parsechangelog --file "$here/debian/changelog" --show-field Version)
SOURCE_DATE_EPOCH=$(git -C "$here" log -1 --format=%ct)
export SOURCE_DATE_EPOCH
readonly here folder version
readonly upstream=${version%-*}
readonly tree=$folder/flamed-$upstream

rm -rf "$folder"/flamed[-_]*
mkdir "$tree"
git -C "$here" archive HEAD | tar -x -C "$tree"

"$tree/api/web/bundle.sh" "$folder/page" --without-speedscope
cp -r "$folder/page/page" "$tree/api/web"

# Of uPlot's package what it calls a module, since that is its sources in one file, as they were written.
for package in preact @preact/signals @preact/signals-core uplot; do
  (cd "$folder/page/node_modules" && find "$package" -name LICENSE -o -name package.json -o -path '*/src/*' -type f \
    -o -name uPlot.esm.js -o -name uPlot.min.css) | while read -r file; do
    install -D -m 0644 "$folder/page/node_modules/$file" "$tree/debian/missing-sources/$file"
  done
done

tar --create --xz --file "$folder/flamed_$upstream.orig.tar.xz" --directory "$folder" --exclude "flamed-$upstream/debian" \
  --sort=name --mtime "@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner "flamed-$upstream"
(cd "$folder" && dpkg-source --build "$tree")
