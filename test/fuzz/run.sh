#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds fuzzers with ASan and UBSan and searches for inputs that break them, one after the other.
# Usage: run.sh BUILD SECONDS [NAME...]     SECONDS for each; all fuzzers unless NAMEs are given
#
# New inputs that reach new code stay in BUILD/fuzz/NAME, and the next search begins with them. An input that breaks a
# fuzzer is left as BUILD/fuzz/NAME-crash-... (or -timeout-..., -oom-...): fix it, then put it into corpus/NAME.
set -euo pipefail

build=$1
seconds=$2
shift 2
here=$(dirname "$(readlink -f "$0")")
names=("$@")
if ((${#names[@]} == 0)); then
  for source in "$here"/*_fuzz.cc; do
    name=$(basename "$source")
    names+=("${name%_fuzz.cc}")
  done
fi
if ! command -v clang++ >/dev/null && ! command -v clang++-14 >/dev/null; then
  echo "no clang++ here, which has libFuzzer" >&2
  exit 1
fi

mkdir -p "$build/fuzz"
ninja -C "$build" "${names[@]/#/test/fuzz/fuzz_}"
failed=()
for name in "${names[@]}"; do
  echo "fuzzing $name for $seconds s"
  mkdir -p "$build/fuzz/$name"
  # The limits are for the fuzzer: an input may take 10 s and 1 GiB, far above what any parser may need.
  "$build/test/fuzz/fuzz_$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -max_len=20000 \
    -print_final_stats=1 -verbosity=0 -artifact_prefix="$build/fuzz/$name-" \
    "$build/fuzz/$name" "$here/corpus/$name" || failed+=("$name")
done
if ((${#failed[@]} > 0)); then
  echo "broken: ${failed[*]}; see $build/fuzz" >&2
  exit 1
fi
echo "${#names[@]} fuzzers, $seconds s each: nothing found"
