#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Lets systemd check the unit and the sysusers file. The program needn't be installed: a copy of the unit is checked
# that starts an installed program instead.
set -eu
unit=$1
sysusers=$2
for tool in systemd-analyze systemd-sysusers; do
  command -v "$tool" >/dev/null || { echo "SKIP: no $tool here"; exit 77; }
done
name=$(basename "$unit" .service)
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
sed 's|^ExecStart=[^ ]*|ExecStart=/bin/true|' "$unit" >"$work/$name.service"
# verify prints a warning for an unknown key, but still ends with 0.
systemd-analyze verify "$work/$name.service" >"$work/said" 2>&1 || { cat "$work/said"; exit 1; }
if grep "$name.service" "$work/said"; then exit 1; fi
# Tenths of systemd's exposure level, which rises if a hardening line gets lost.
systemd-analyze security --offline=true --threshold=19 "$work/$name.service" >"$work/said" || { cat "$work/said"; exit 1; }
tail -n 1 "$work/said"

mkdir -p "$work/root/etc"
systemd-sysusers --root="$work/root" "$sysusers"
grep -q "^$name:" "$work/root/etc/passwd"
grep -q "^$name:" "$work/root/etc/group"
