#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that go tool pprof reads flamed's profiles correctly. $1 writes a profile.
set -eu
if ! command -v go >/dev/null; then
  echo "SKIP: go tool pprof is not there"
  exit 77
fi
profile=$(mktemp)
trap 'rm -f "$profile"' EXIT
"$1" >"$profile"
raw=$(go tool pprof -raw "$profile")
expect() {
  if ! printf '%s\n' "$raw" | grep -qE -- "$1"; then
    printf 'not found: %s\nin:\n%s\n' "$1" "$raw"
    exit 1
  fi
}
expect '^PeriodType: cpu nanoseconds$'
expect '^Period: 10000000$'
expect '^samples/count cpu/nanoseconds\[dflt\]$'
expect '^ +5 +50000000: '
expect '^ +3 +30000000: '
expect '^ +2 +20000000: '
expect '^ +1 +10000000: '
expect 'process:\[worker\]'
expect 'thread:\[pool; 1\]'
expect 'unit:\[worker.service\]'
expect 'pid:\[10\]'
expect '0x200 M=[0-9]+ step src/step.h:9.*s=0'
expect ' work src/work.cc:7'
expect 'worker 0a1b \[FN\]\[FL\]\[LN\]\[IN\]'
total=$(go tool pprof -top -sample_index=samples "$profile" | grep -o 'Total samples = [0-9]*' || true)
[ "$total" = "Total samples = 11" ] || { echo "wrong total: $total"; exit 1; }
