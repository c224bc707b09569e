#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# flamed-push against what receives in Pyroscope, and against OpenTelemetry collectors: builds them from their Go modules,
# the collector in the last version with the old layout of samples and in the first one with the new. What arrives, and
# what the collectors hand on, must be what flamed answers about the same time, to the sample, also of the time when the
# receivers were not there yet.
#
#   test/peers/push.sh BUILD_DIR [SECONDS]   SECONDS: how long they are not there, 20 by default
#
# Needs root, any Go, curl, and a built flamed with flamed-push and the kernel tests' programs.
set -euo pipefail

source_dir=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)
build_dir=$(readlink -f "${1:?usage: push.sh BUILD_DIR [SECONDS]}")
readonly source_dir build_dir down_s=${2:-20}
readonly work=$build_dir/peers
mkdir -p "$work"
# shellcheck source=test/peers/support.sh
source "$source_dir/test/peers/support.sh"

fetch_toolchain
for layout in otlp otlp-1.9; do
  module=go.mod
  [[ $layout == otlp ]] || module=$layout.mod
  for program in receiver collector; do
    (cd "$source_dir/test/peers/$program" &&
      CGO_ENABLED=0 go build -trimpath -mod=readonly -modfile="$module" -o "$work/$program-$layout" .)
  done
done

# A copy, which no other test runs.
readonly victim=$temporary/victim_known_chain socket=$temporary/flamed.sock
cp "$build_dir/test/kernel/victims/victim_known_chain" "$victim"
port=$(free_port)
"$build_dir/flamed" --listen "127.0.0.1:$port" --listen "unix:$socket" --cpu-budget off --history off \
  >"$work/flamed.log" 2>&1 &
started+=($!)
"$victim" &
started+=($!)
await "http://127.0.0.1:$port/readyz" --fail
sleep 5 # until its stacks are walked and named

readonly push=/push.v1.PusherService/Push profiles=/v1development/profiles
pyroscope=$(free_port)
new=$(free_port)
old=$(free_port)
receiver() { # receiver NAME FORMAT PORT
  printf '{ "name": "%s", "format": "%s", "url": "http://127.0.0.1:%s", "interval": "5s", "measures": ["cpu"], "naming": "all",
    "select": { "exe": "%s" } }' "$1" "$2" "$3" "$victim"
}
printf '{ "socket": "%s", "receivers": [%s,\n%s,\n%s] }\n' "$socket" "$(receiver pyroscope pyroscope "$pyroscope")" \
  "$(receiver collector otlp "$new")" "$(receiver collector-0-147 otlp-1.9 "$old")" >"$temporary/push.json"
"$build_dir/push/flamed-push" --config "$temporary/push.json" --state "$temporary" >"$work/push.log" 2>&1 &
started+=($!)
sleep 6
first_ms=$(date +%s%3N) # what is sent from now on may not be lost
sleep "$down_s"

receivers=()
receive() { # receive LAYOUT PORT PATH
  "$work/receiver-$1" -listen "127.0.0.1:$2" -flamed "http://127.0.0.1:$port" -exe "$victim" -path "$3" -from "$first_ms" &
  receivers+=($!)
  started+=($!)
}
collect() { # collect LAYOUT PORT: a collector, and a receiver behind it
  local behind
  behind=$(free_port)
  receive "$1" "$behind" "$profiles"
  cat >"$temporary/$1.yaml" <<EOF
receivers: { otlp: { protocols: { http: { endpoint: "127.0.0.1:$2" } } } }
exporters:
  debug: { verbosity: detailed, use_internal_logger: false, output_paths: ["$work/collector-$1.out"] }
  otlp_http: { profiles_endpoint: "http://127.0.0.1:$behind$profiles", sending_queue: { num_consumers: 1 } }
service:
  telemetry: { metrics: { level: none } }
  pipelines: { profiles: { receivers: [otlp], exporters: [debug, otlp_http] } }
EOF
  rm -f "$work/collector-$1.out"
  "$work/collector-$1" --config "$temporary/$1.yaml" --feature-gates service.profilesSupport >"$work/collector-$1.log" 2>&1 &
  started+=($!)
}
receive otlp "$pyroscope" "$push"
collect otlp "$new"
collect otlp-1.9 "$old"

for receiver in "${receivers[@]}"; do
  wait "$receiver" || fail "a receiver got something else, see above, $work/push.log and $work/collector-*.log"
done
for layout in otlp otlp-1.9; do
  grep -q work_two "$work/collector-$layout.out" || fail "the collector shows no names, see $work/collector-$layout.out"
done
echo "peers: nothing wrong"
