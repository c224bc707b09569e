#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds RPMs from a source package, without network and with Debian's rpmbuild and libraries, and installs, checks and
# removes them in a folder. Their build requirements have Fedora's names, so they are not checked, and no scriptlet runs.
#
#   test/package/rpm.sh FOLDER    FOLDER: where debian/make-source.sh made the source package
#
# Needs root, for a namespace without network, and rpm. The packages are left in FOLDER/rpm.
set -euo pipefail

source=$(realpath "${1:?usage: rpm.sh FOLDER}")
readonly source made=$source/rpm root=$source/rpm/root

die() {
  printf 'package/rpm: %s\n' "$*" >&2
  exit 1
}
((EUID == 0)) || die "this needs root"
spec=$(echo "$source"/flamed-*/rpm/flamed.spec)
[[ -f $spec ]] || die "there is no source package in $source: run ./dev package first"

rm -rf --one-file-system "$made"
mkdir -p "$made"
unshare --net -- rpmbuild -ba --nodeps --define "_topdir $made" --define "_sourcedir $source" "$spec"
mapfile -t packages < <(find "$made/RPMS" -name 'flamed-0*.rpm' -o -name 'flamed-push-0*.rpm' | sort)
((${#packages[@]} == 2)) || die "built were: ${packages[*]}"

# Nothing is installed that the Debian packages don't have, but licenses and documents.
rpm -qpl "${packages[@]}" | grep -v -e '^/usr/share/\(doc\|licenses\)/' -e '^/usr/lib/\.build-id' | sed 's/\.gz$//' |
  sort >"$made/files"
diff - "$made/files" <<'END' || die "these are other files"
/etc/flamed
/etc/flamed/flamed.json
/usr/bin/flamed
/usr/bin/flamed-push
/usr/bin/flamed-top
/usr/lib/sysctl.d/10-flamed.conf
/usr/lib/systemd/system/flamed-push.service
/usr/lib/systemd/system/flamed.service
/usr/lib/sysusers.d/flamed-push.conf
/usr/lib/sysusers.d/flamed.conf
/usr/share/man/man1/flamed-top.1
/usr/share/man/man5/flamed.json.5
/usr/share/man/man8/flamed-push.8
/usr/share/man/man8/flamed.8
END

in_root() { rpm --root "$root" --define '_dbpath /var/lib/rpm' "$@"; }
mkdir -p "$root/var/lib/rpm"
in_root --initdb
in_root --nodeps --noscripts -i "${packages[@]}"
in_root --nodeps --verify flamed flamed-push || die "what is installed differs from the packages"
for program in flamed flamed-push flamed-top; do
  "$root/usr/bin/$program" --version || die "$program does not start"
done
echo '{ "retention": "1h" }' >"$root/etc/flamed/flamed.json"
in_root --nodeps --noscripts -e flamed flamed-push
[[ -e $root/etc/flamed/flamed.json.rpmsave ]] || die "an edited configuration was not kept"
left=$(find "$root/etc" "$root/usr" -type f -path '*flamed*' ! -name flamed.json.rpmsave)
[[ -z $left ]] || die "left after the removal: $left"
echo "package/rpm: built, installed and removed"
