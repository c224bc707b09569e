#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# In a bare tree, with a source package in /src: installs what its build needs, builds it as a user without network, and
# has lintian check what came out. Errors and warnings of lintian are failures.
set -euo pipefail
cd /src
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
apt-get install -q -y --no-install-recommends build-essential lintian
apt-get build-dep -q -y --no-install-recommends ./flamed_*.dsc
useradd --create-home builder
chown -R builder: /src

as_builder=(setpriv --reuid builder --regid builder --clear-groups env HOME=/home/builder)

echo "--- build"
"${as_builder[@]}" dpkg-source --extract flamed_*.dsc flamed
cd flamed
unshare --net "${as_builder[@]}" DEB_BUILD_OPTIONS=terse dpkg-buildpackage --build=binary --no-sign
cd ..

echo "--- lintian"
"${as_builder[@]}" lintian --version
"${as_builder[@]}" lintian --fail-on error,warning flamed_*.dsc flamed_*.changes
