#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the files of flamed's image, where there is no registry: a minimal tree of SUITE in place of the base image, and in
# it the steps of container/Dockerfile, with PACKAGE. Root is needed.
#
#   test/vm/make_image.sh SUITE PACKAGE TAR
set -euo pipefail

here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
suite=${1:?usage: make_image.sh SUITE PACKAGE TAR}
package=$(realpath "${2:?usage: make_image.sh SUITE PACKAGE TAR}")
tar=$(realpath -m "${3:?usage: make_image.sh SUITE PACKAGE TAR}")
readonly here suite package tar tree=${tar%.tar}

die() {
  printf 'image of %s: %s\n' "$suite" "$*" >&2
  exit 1
}
# shellcheck source=test/support/debian_tree.sh
source "$here/../support/debian_tree.sh"

if [[ ${4:-} != --in-namespace ]]; then
  remove_tree "$tree"
  status=0
  unshare --mount --propagation private -- "$0" "$suite" "$package" "$tar" --in-namespace || status=$?
  remove_tree "$tree"
  exit "$status"
fi

make_tree "$suite" "$tree"
mkdir "$tree/packages"
cp "$package" "$tree/packages"
mount_kernel "$tree"
"$here/image.py" steps | while IFS= read -r step; do
  echo "image: $step"
  (in_tree "$tree" / env DEBIAN_FRONTEND=noninteractive sh -ec "$step" </dev/null)
done
# Not what is mounted there, nor what Debian's slim image leaves out.
tar -C "$tree" --one-file-system --exclude './var/cache/apt/*' --exclude './usr/share/doc/*' --exclude './usr/share/man/*' \
  --exclude './usr/share/locale/*' -cf "$tar.new" .
mv "$tar.new" "$tar"
