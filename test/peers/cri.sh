#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A container engine with the server that is generated from the Container Runtime Interface (k8s.io/cri-api), built from its
# Go module, and a flamed with the rights of its unit that asks it what containers are called. One engine never answers,
# the other one comes when flamed has already asked. What the engine says besides names must be nowhere, not even in
# flamed's memory.
#
#   test/peers/cri.sh BUILD_DIR
#
# Needs root, any Go, curl, setpriv, python3, and a built flamed with the kernel tests' programs.
set -euo pipefail

source_dir=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)
build_dir=$(readlink -f "${1:?usage: cri.sh BUILD_DIR}")
readonly source_dir build_dir user=64103
readonly work=$build_dir/peers
mkdir -p "$work"
# shellcheck source=test/peers/support.sh
source "$source_dir/test/peers/support.sh"
chmod 0755 "$temporary"

fetch_toolchain
(cd "$source_dir/test/peers/cri" && CGO_ENABLED=0 go build -trimpath -o "$work/cri" .)

random() { od -An -N"$1" -tx1 /dev/urandom | tr -d ' \n'; }
container=$(random 32)
sandbox=$(random 32)
stranger=$(random 32)
readonly container sandbox stranger
random 16 >"$temporary/secret" # on no command line, which flamed would keep

# Control groups as containerd makes them for the kubelet, and a program in each.
groups=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/self/mounts)/flamed-test-$$
mkdir "$groups" || fail "no control group can be made here"
readonly groups
remove_groups() {
  clean_up
  local _
  for _ in {1..50}; do
    find "$groups" -depth -type d -exec rmdir {} + 2>/dev/null && return
    sleep 0.1
  done
}
trap remove_groups EXIT
runs_in() { # runs_in ID
  local group=$groups/kubepods-burstable-pod2f6a5c4e_0b1d_4c3f.slice/cri-containerd-$1.scope
  mkdir -p "$group"
  # shellcheck disable=SC2016  # Of the inner shell.
  sh -c 'echo $$ >"$0/cgroup.procs"; exec "$1"' "$group" "$build_dir/test/kernel/victims/victim_known_chain" &
  started+=($!)
}

port=$(free_port)
readonly socket=$temporary/cri.sock silent=$temporary/silent.sock port
"$work/cri" -socket "$silent" -container "$container" -sandbox "$sandbox" -secret-file "$temporary/secret" -hangs \
  >"$work/silent.log" 2>&1 &
started+=($!)
for _ in {1..50}; do [[ -S $silent ]] || sleep 0.1; done

# The unit's capabilities, and the one that opens sockets of root's.
rights=bpf,perfmon,sys_ptrace,dac_read_search,checkpoint_restore,dac_override
rights=+${rights//,/,+}
mkdir "$temporary/history"
chown "$user:$user" "$temporary/history"
setpriv --reuid="$user" --regid="$user" --clear-groups --inh-caps="-all,$rights" --ambient-caps="-all,$rights" \
  --bounding-set="-all,$rights" --no-new-privs "$build_dir/flamed" --listen "127.0.0.1:$port" --cpu-budget off \
  --history "$temporary/history" --container-engines "cri:$silent" --container-engines "cri:$socket" \
  >"$work/flamed.log" 2>&1 &
flamed=$!
started+=("$flamed")
await "http://127.0.0.1:$port/readyz" --fail

runs_in "$container"
pod_container=$!
runs_in "$sandbox"
pod_sandbox=$!
runs_in "$stranger"
other=$!
log_has() { # log_has TEXT
  local _
  for _ in {1..200}; do
    if grep -qF -- "$1" "$work/flamed.log"; then return; fi
    sleep 0.1
  done
  fail "flamed's log does not have '$1', see $work/flamed.log"
}
log_has "cannot ask the container engine at $silent: the ELF worker took longer than 2 s to read the engine's answer"
log_has "cannot ask the container engine at $socket: open: No such file or directory"

"$work/cri" -socket "$socket" -container "$container" -sandbox "$sandbox" -secret-file "$temporary/secret" \
  >"$work/calls.log" 2>&1 &
started+=($!)
answer() { curl -s --fail "http://127.0.0.1:$port/$1"; }
is_called() { # is_called PID NAME: in JSON
  local _
  for _ in {1..100}; do
    answer "processes?pid=$1&from=now-20s" >"$work/processes"
    if grep -q "\"container_name\": *$2[,}]" "$work/processes"; then return; fi
    sleep 1
  done
  fail "process $1 is not called $2: $(cat "$work/processes")"
}
is_called "$pod_container" '"shop/web-7d9-x2x/nginx"'
is_called "$pod_sandbox" '"shop/web-7d9-x2x/\[pod\]"'
is_called "$other" null
grep -q "\"container\": *\"$stranger\"" "$work/processes" || fail "the unknown container is none: $(cat "$work/processes")"
answer 'profile?container=shop/web-7d9-x2x&from=now-20s&format=folded' | grep -q work_two || fail "a pod's profile has no stacks"
log_has "the container engine at $socket answers again"

# What was asked, and that nothing else was told.
[[ $(grep -v ^/ "$work/calls.log" | sort -u) == $'ContainerStatus verbose: false\nPodSandboxStatus verbose: false' ]] ||
  fail "the engine was asked something else, see $work/calls.log"
{
  for path in 'processes?from=now-2m' 'profile?from=now-2m' metrics healthz; do curl -s "http://127.0.0.1:$port/$path"; done
  cat "$work/flamed.log"
  find "$temporary/history" -type f -exec cat {} +
} >"$work/told"
grep -qaF 'shop/web-7d9-x2x/nginx' "$work/told" || fail "flamed has not told the names, see $work/told"
! grep -qaFf "$temporary/secret" "$work/told" || fail "flamed has told the secret, see $work/told"
python3 - "$flamed" "$temporary/secret" web-7d9-x2x <<'PYTHON'
# The memory of flamed and of its helpers has the names, and not the secret.
import os, re, sys
daemon, secret, name = sys.argv[1], open(sys.argv[2], 'rb').read(), sys.argv[3].encode()
children = [child for task in os.listdir(f'/proc/{daemon}/task')
            for child in open(f'/proc/{daemon}/task/{task}/children').read().split()]
family = [daemon] + children
knows = 0
for pid in family:
    with open(f'/proc/{pid}/maps') as maps, open(f'/proc/{pid}/mem', 'rb', 0) as memory:
        for begin, end, rights in re.findall(r'^(\w+)-(\w+) (\S+)', maps.read(), re.M):
            if not rights.startswith('rw'):
                continue
            begin, end = int(begin, 16), int(end, 16)
            try:
                memory.seek(begin)
                bytes_ = memory.read(end - begin)
            except OSError:
                continue
            knows += name in bytes_
            if secret in bytes_:
                sys.exit(f'the secret is in the memory of process {pid}')
if len(family) < 3 or not knows:
    sys.exit('the names of the pod were not found in memory: this check checks nothing')
PYTHON
echo "peers: nothing wrong"
