#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A load for the picture in the README: a small web shop and other programs on one machine, each in a control group that
# is named like those of systemd's services. Runs until it is ended, and then ends all that it started. Needs root.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
# Programs run here, so that no function's name has a path of the user who makes the picture.
readonly here place=/run/shop
shop=''

die() {
  echo "load.sh: $1" >&2
  exit 1
}

end_all() {
  local pids
  { # where the shell would name each that was killed
    while mapfile -t pids < <(cat "$slice"/*/cgroup.procs) && ((${#pids[@]} > 0)); do
      kill -KILL "${pids[@]}" || true
      sleep 0.1
    done
  } 2>/dev/null
  find "$slice" -depth -type d -exec rmdir {} +
  rm -rf $place "/tmp/perf-$shop.map"
}

service() { # service NAME COMMAND...: in the background
  local group=$slice/$1.service
  shift
  mkdir "$group"
  (echo 0 >"$group/cgroup.procs" && "$@") &
}

# All have $place in their command lines, by which the picture's list of processes is filtered.
serve() { exec node --perf-basic-prof $place/shop.js >$place/port; }
visit() { exec /usr/bin/python3 $place/visitors.py "$1"; }
report() {
  while sleep 17; do sqlite3 -init $place/report.sql :memory: "" >/dev/null 2>&1; done
}
back_up() {
  tar -cf $place/backup.tar -C /usr include
  truncate --size=16M $place/backup.tar
  while sleep 35; do xz -6 --stdout $place/backup.tar >/dev/null; done
}
build() {
  local source
  while sleep 60; do
    for source in "$place"/base/*.cc; do g++ -std=c++20 -O2 -I$place -c "$source" -o "$source.o"; done
  done
}

for command in node /usr/bin/python3 sqlite3 tar xz g++; do
  command -v $command >/dev/null || die "$command is not installed"
done
((EUID == 0)) || die "needs root, for control groups"
hierarchy=''
for path in /sys/fs/cgroup /sys/fs/cgroup/unified; do
  [[ ! -w $path/cgroup.procs ]] || hierarchy=$path
done
if [[ -z $hierarchy ]]; then
  echo "SKIP control-groups: there are none of version 2 that can be written, at /sys/fs/cgroup or /sys/fs/cgroup/unified"
  exit 77
fi
readonly slice=$hierarchy/shop.slice
for path in $place "$slice"; do
  [[ ! -e $path ]] || die "$path is there already: does another picture's load run? If not, remove it"
done
mkdir $place "$slice"
trap end_all EXIT
trap 'exit 0' TERM INT

cp "$here"/* $place
cp -r "$here/../../../base" $place
cd $place # V8 writes a log to where it runs

service shop serve
shop=$!
until [[ -s port ]]; do
  kill -0 $shop || die "the shop has ended"
  sleep 0.1
done
service visitors visit "$(<port)"
service report report
service backup back_up
service build build
wait
