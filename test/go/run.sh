#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Stacks of programs that other versions of Go have built: fetches each version as the Go module that it is, builds the
# programs of the kernel tests with it, and runs these tests.
#
#   test/go/run.sh BUILD_DIR [VERSION...]    VERSION: 1.17.13, ...; without one, the last of each since 1.17
#
# Needs root, a Go of at least 1.21 in the PATH, gcc, and the built kernel tests.
set -euo pipefail

source_dir=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)
build_dir=$(readlink -f "${1:?usage: run.sh BUILD_DIR [VERSION...]}")
shift
versions=("$@")
((${#versions[@]} > 0)) ||
  versions=(1.17.13 1.18.10 1.19.13 1.20.14 1.21.13 1.22.12 1.23.12 1.24.13 1.25.7 1.26.8 1.27.3)
readonly source_dir build_dir versions
readonly victims=$source_dir/test/kernel/victims/go

# Older versions don't know variables and flags of newer ones.
export GOENV=off GOFLAGS='' GO111MODULE=off

build() { # build GO FOLDER NAME SOURCE [OPTION...]
  local go=$1 folder=$2 name=$3 source=$4
  shift 4
  "$go" build -trimpath "$@" -o "$folder/victim_$name" "$victims/$source"
}

failed=()
for version in "${versions[@]}"; do
  echo "== Go $version"
  # Without modules `go` would not change to another version, and would not say so.
  if ! root=$(GO111MODULE=on GOTOOLCHAIN=go$version go env GOROOT) || ! grep -qx "go$version" "$root/VERSION"; then
    failed+=("$version: it could not be fetched")
    continue
  fi
  folder=$build_dir/go/$version
  mkdir -p "$folder"
  (
    export GOROOT=$root GOTOOLCHAIN=local
    go=$root/bin/go
    build "$go" "$folder" go_stacks stacks.go
    build "$go" "$folder" go_stacks_stripped stacks.go -ldflags '-s -w'
    build "$go" "$folder" go_stacks_pie stacks.go -buildmode pie
    build "$go" "$folder" go_stacks_cgo stacks_cgo.go
    build "$go" "$folder" go_stacks_cgo_stripped stacks_cgo.go -ldflags '-s -w'
  ) || {
    failed+=("$version: its programs could not be built")
    continue
  }
  FLAMED_BINARY=$build_dir/flamed FLAMED_VICTIMS=$folder \
    "$source_dir/test/kernel/run.py" "$build_dir/test/kernel/kernel_tests" '[go]' || failed+=("$version: the tests failed")
done
if ((${#failed[@]} > 0)); then
  printf 'Go %s\n' "${failed[@]}"
  exit 1
fi
