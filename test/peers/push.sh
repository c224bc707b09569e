#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# flamed-push against what receives in Pyroscope and in the OpenTelemetry collector: builds both from their Go modules, the
# collector's in the last version with the old layout of samples and in the first one with the new. Each request must be
# what flamed answers about the same time, to the sample.
#
#   test/peers/push.sh BUILD_DIR
#
# Needs root, any Go, curl, and a built flamed with flamed-push and the kernel tests' programs.
set -euo pipefail

source_dir=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)
build_dir=$(readlink -f "${1:?usage: push.sh BUILD_DIR}")
readonly source_dir build_dir
readonly work=$build_dir/peers
mkdir -p "$work"
# shellcheck source=test/peers/support.sh
source "$source_dir/test/peers/support.sh"

fetch_toolchain
for layout in otlp otlp-1.9; do
  module=go.mod
  [[ $layout == otlp ]] || module=$layout.mod
  (cd "$source_dir/test/peers/receiver" &&
    CGO_ENABLED=0 go build -trimpath -mod=readonly -modfile="$module" -o "$work/receiver-$layout" .)
done

readonly victim=$build_dir/test/kernel/victims/victim_known_chain socket=$temporary/flamed.sock
port=$(free_port)
"$build_dir/flamed" --listen "127.0.0.1:$port" --listen "unix:$socket" --cpu-budget off --history off \
  >"$work/flamed.log" 2>&1 &
started+=($!)
"$victim" &
started+=($!)
await "http://127.0.0.1:$port/readyz" --fail
sleep 5 # until its stacks are walked and named

readonly push=/push.v1.PusherService/Push profiles=/v1development/profiles
new=$(free_port)
old=$(free_port)
receive() { # receive LAYOUT PORT PATHS
  "$work/receiver-$1" -listen "127.0.0.1:$2" -flamed "http://127.0.0.1:$port" -exe "$victim" -paths "$3" &
}
receive otlp "$new" "$push,$profiles"
receivers=($!)
receive otlp-1.9 "$old" "$profiles"
receivers+=($!)
started+=("${receivers[@]}")

receiver() { # receiver NAME FORMAT PORT
  printf '{ "name": "%s", "format": "%s", "url": "http://127.0.0.1:%s", "interval": "5s", "measures": ["cpu"], "naming": "all",
    "select": { "exe": "%s" } }' "$1" "$2" "$3" "$victim"
}
printf '{ "socket": "%s", "receivers": [%s,\n%s,\n%s] }\n' "$socket" "$(receiver pyroscope pyroscope "$new")" \
  "$(receiver collector otlp "$new")" "$(receiver collector-0-147 otlp-1.9 "$old")" >"$temporary/push.json"
"$build_dir/push/flamed-push" --config "$temporary/push.json" --state "$temporary" >"$work/push.log" 2>&1 &
started+=($!)
for receiver in "${receivers[@]}"; do
  wait "$receiver" || fail "a receiver got something else, see above and $work/push.log"
done
echo "peers: nothing wrong"
