#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs inside of the virtual machine's tree: puts the newest available cloud kernel of one suite into /boot.
#
#   install_kernel.sh SOURCES_LIST   of that suite alone
#
# linux-image-cloud-amd64 has the same name in every suite and names the newest kernel of its series; some suites have
# later series besides. It is looked up and not fetched: the lists of an unsupported release name packages that are no
# longer in the archive, such as this one. So older kernels are tried next.
set -eu

sources=$1

alone() { # alone COMMAND ARGUMENT...: apt, with this suite only
  command=$1
  shift
  "$command" -o Dir::Etc::sourcelist="$sources" -o Dir::Etc::sourceparts=- -o Acquire::Retries=3 "$@"
}

# Only files: scripts of a later release's package need tools of that release.
unpack() { # unpack RELEASE
  for package in /var/cache/apt/archives/linux-*-"$1"_*.deb; do
    dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink -C /
  done
  # They keep these beside the modules.
  for part in vmlinuz config; do
    [ -e "/boot/$part-$1" ] || cp "/lib/modules/$1/$part" "/boot/$part-$1"
  done
  depmod "$1"
  update-initramfs -c -k "$1"
}

alone apt-get update -q || true # it printed what is missing, and the rest may be enough
newest=$(alone apt-cache depends linux-image-cloud-amd64 | sed -n 's/^ *Depends: \(linux-image-[0-9]\)/\1/p')
for kernel in $(alone apt-cache search --names-only '^linux-image-[0-9]+[.][0-9]+[.][0-9].*-cloud-amd64$' | cut -d ' ' -f 1 |
  sort -rV | awk -v newest="$newest" '$0 == newest { from_here = 1 } from_here'); do
  if alone apt-get install -q -y --no-install-recommends --download-only "$kernel"; then
    unpack "${kernel#linux-image-}"
    exit
  fi
  echo "vm: $kernel can't be fetched (see above): trying the one before it" >&2
done
echo "vm: no kernel can be fetched, from the one that linux-image-cloud-amd64 names (${newest:-none}) back: see $sources" >&2
exit 1
