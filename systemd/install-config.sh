#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the configuration, but never over an existing one, which may have been edited.
set -eu
source=$1
target=${DESTDIR:-}$2
if [ -e "$target" ]; then
  echo "Keeping $target"
else
  echo "Installing $source to $target"
  install -D -m 0644 "$source" "$target"
fi
