#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Inside the virtual machine: a kubelet without a cluster starts flamed's pod and another one, which flamed then shows by
# its name.
set -uo pipefail
# shellcheck source=test/vm/guest_support.sh
source /opt/flamed-tests/guest_support.sh
readonly stack=';main;outer;middle;work_one [0-9]' api=https://127.0.0.1:10250

containerd_starts() {
  cp containerd.toml /etc/containerd/config.toml
  systemctl restart containerd && within 60 ctr version >/dev/null &&
    for name in pause burn flamed; do ctr --namespace k8s.io image import "$name.tar" || return; done
}
kubelet_starts() {
  mkdir -p pods
  systemd-run --quiet --unit kubelet --property KillMode=process /opt/flamed-tests/kubelet \
    --config /opt/flamed-tests/config.yaml && within 120 curl -skf -o /dev/null "$api/healthz"
}
starts_pods() {
  cp manifests/*.yaml pods && within 180 answers && return
  journalctl --no-pager --quiet --output cat --unit kubelet | grep -v '^I' | tail -n 20
  return 1
}
# pid_of IMAGE: of the container that runs now; a former one is kept
pid_of() {
  awk -v image="docker.io/library/$1:latest" 'NR == FNR { if ($2 == image) mine[$1]; next }
    $1 in mine && $3 == "RUNNING" { print $2 }' <(ctr --namespace k8s.io container list) <(ctr --namespace k8s.io task list)
}

processes() { curl -sf "$url/processes?pid=$(pid_of "$1")&from=now-30s"; }
is_called() { processes "$1" | grep -q "\"container_name\": *\"$2\""; }
has_stack() { curl -sf "$url/profile?container=$1&from=now-30s&format=folded" | grep -q "$stack"; }
is_in_group() { processes "$1" | grep -q '"cgroup": *"/kubepods.slice/kubepods-[a-z]*.slice/'; }
are_ready() { [[ $(curl -skf "$api/pods" | grep -o '"type":"Ready"[^}]*' | grep -c '"status":"True"') == 2 ]]; }
# An emulated machine is too slow for the budget of CPU time.
is_healthy() { curl -sf "$url/healthz" | sed 's/"cpu_budget","ok":false//' >health && ! grep -q '"ok": *false' health; }
says() { # says COMMAND...: for a check that may take some time; prints what there is if it fails
  within 90 "$@" && return
  curl -s "$url/healthz" | tail -c 300
  processes burn
  return 1
}
is_another() { [[ $(pid_of flamed) != "$1" ]] && answers; } # is_another PID
comes_back() {
  local before
  before=$(pid_of flamed)
  kill -KILL "$before" && within 180 is_another "$before"
}
# Not by functions: there was no time to write their names in the budget of an emulated machine before the kill.
has_past() { curl -sf "$url/profile?container=prod/burn-flamed-vm&from=$1&to=$2&format=folded" | grep -q burn; }
says_past() { # says_past FROM TO: likewise
  within 90 has_past "$@" && return
  curl -s "$url/healthz" | grep -o '{"name":"history"[^}]*}'
  curl -s "$url/profile?from=$1&to=$2&format=top-text" | head -n 20
  return 1
}
is_gone() { [[ -z $(pid_of flamed) ]]; }
ends() { rm pods/flamed.yaml && within 60 is_gone && ! pgrep --full '^flamed: ' >/dev/null; }

sysctl -q kernel.perf_event_paranoid=2
echo "NOTE $(uname -r), $(./kubelet --version), $(containerd --version | cut -d' ' -f1,3)"
check "containerd starts, with images" containerd_starts
check "the kubelet starts" kubelet_starts
from=$(date +%s)
check "it starts flamed's pod, which answers" starts_pods
renice --priority 19 --pid "$(pid_of burn)" >/dev/null
check "the other pod is called by its namespace, name and container" says is_called burn prod/burn-flamed-vm/work
check "its stacks have names" says has_stack prod/burn-flamed-vm
check "its control group has the node's path" says is_in_group burn
check "flamed's own pod has its name, too" says is_called flamed flamed/flamed-flamed-vm/flamed
check "everything is well" says is_healthy
check "the kubelet finds both ready" within 90 are_ready
# A minute is written when it is over.
sleep 75
to=$(date +%s)
check "killed, it is started again" comes_back
check "and has what was before" says_past "$from" "$to"
check "it ends with its pod" ends
echo END
