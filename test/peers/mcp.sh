#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The real clients of the Model Context Protocol, from npm, against a running flamed: they answer questions whose answers
# are known, as root and as two users, and what must be refused is refused.
#
#   test/peers/mcp.sh BUILD_DIR
#
# Needs root, node, npm, curl, setpriv, a C compiler, and a built flamed with the kernel tests' programs.
set -euo pipefail

source_dir=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)
build_dir=$(readlink -f "${1:?usage: mcp.sh BUILD_DIR}")
readonly source_dir build_dir alice=64101 bob=64102
readonly victims=$build_dir/test/kernel/victims

readonly work=$build_dir/peers
mkdir -p "$work"
# shellcheck source=test/peers/support.sh
source "$source_dir/test/peers/support.sh"
# The users may not get to the build directory.
chmod 0755 "$temporary"

cp "$source_dir"/test/peers/mcp/{*.mjs,package.json,package-lock.json,.npmrc} "$temporary"
(cd "$temporary" && npm ci --ignore-scripts --no-progress --loglevel=error)
chmod -R a+rX "$temporary"

chain_source=$source_dir/test/kernel/victims/known_chain.c
cc -g -O1 -fno-omit-frame-pointer -fno-optimize-sibling-calls -I"$source_dir/test/kernel/victims" \
  -o "$temporary/known_chain" "$chain_source"
line=$(grep -n 'i < 100000' "$chain_source" | cut -d: -f1)
for user in alice bob; do cp "$victims/victim_known_chain" "$temporary/load-$user"; done

port=$(free_port)
readonly port base=http://127.0.0.1:$port
"$build_dir/flamed" --listen "127.0.0.1:$port" --cpu-budget off --history off >"$temporary/flamed.log" 2>&1 &
started+=($!)
await "$base/readyz" -f

chain_began=$(date +%s)
"$temporary/known_chain" &
chain=$!
"$victims/victim_slower" 200 &
slower=$!
"$victims/victim_waits" mutex 600 >"$temporary/waits.log" &
waits=$!
setpriv --reuid=$alice --regid=$alice --clear-groups "$temporary/load-alice" &
alices=$!
setpriv --reuid=$bob --regid=$bob --clear-groups "$temporary/load-bob" &
bobs=$!
started+=("$chain" "$slower" "$waits" "$alices" "$bobs")

# Stacks that are walked and named, and a second visit of the threads that wait.
sleep 5
from=$(date +%s)
sleep 15
kill -USR1 "$slower"
changed=$(date +%s)
curl -sf -o "$temporary/mark" -H 'Content-Type: application/json' -d '{"text": "deploy 1.2.3"}' "$base/marks"
sleep 16
to=$(date +%s)
holder=$(grep -lx holder /proc/"$waits"/task/*/comm | cut -d/ -f5)

cat >"$temporary/facts.json" <<JSON
{"from": $from, "changed": $changed, "to": $to,
 "chain": {"pid": $chain, "line": $line, "began": $chain_began}, "slower": {"pid": $slower},
 "waits": {"pid": $waits, "holder": $holder},
 "users": {"alice": {"uid": $alice, "pid": $alices}, "bob": {"uid": $bob, "pid": $bobs}}}
JSON
node "$temporary/tasks.mjs" "$base" "$temporary/facts.json"
