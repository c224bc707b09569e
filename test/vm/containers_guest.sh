#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Inside the virtual machine: containers of Docker, Podman and containerd, each from a local tar, and what flamed calls
# them.
set -uo pipefail
# shellcheck source=test/vm/guest_support.sh
source /opt/flamed-tests/guest_support.sh
readonly burn='while :; do :; done' secret=kept-by-nobody-9c41f0d2
readonly task=5c1d6e0f9a8b7c2d3e4f5a6b7c8d9e0f1a2b3c4d5e6f708192a3b4c5d6e7f809
readonly inner=a0b1c2d3e4f5061728394a5b6c7d8e9fa0b1c2d3e4f5061728394a5b6c7d8e9f

not() { ! "$@"; }
# has_samples NAME: of processes whose container is called so, in the last seconds
has_samples() { [[ -n $(curl -sf "$url/profile?container=$1&from=now-20s&format=folded") ]]; }
is_called() { # is_called PID NAME
  curl -sf "$url/processes?pid=$1&from=now-20s" >answer && grep -q "\"container_name\": *\"$2\"" answer
}
has_container() { # has_container PID ID: without a name
  curl -sf "$url/processes?pid=$1&from=now-20s" >answer && grep -q "\"container\": *\"$2\"" answer &&
    grep -q '"container_name": *null' answer
}
is_named() { # is_named PID NAME: by its name, and in the table of processes
  within 60 has_samples "$2" && within 20 is_called "$1" "$2" && return
  curl -s "$url/processes?pid=$1&from=now-20s"
  cat "/proc/$1/cgroup"
  return 1
}

# An image with a shell alone. The engines import it from the tar file; no registry is asked.
make_images() {
  mkdir -p image/bin && cp /bin/busybox image/bin/sh && tar -C image -cf image.tar . &&
    printf 'TOKEN=%s\n' "$secret" >environment
}

docker_starts() {
  mkdir -p /etc/docker
  printf '%s\n' '{ "iptables": false, "bridge": "none" }' >/etc/docker/daemon.json
  # The package tried to start it while the machine booted, without this configuration.
  systemctl reset-failed docker.service docker.socket
  systemctl restart containerd docker && within 60 docker info >/dev/null &&
    docker import image.tar shell:local >/dev/null
}
docker_runs() { # docker_runs NAME
  docker run --detach --network none --env-file environment --name "$1" shell:local sh -c "$burn"
}
docker_pid() { docker inspect --format '{{.State.Pid}}' "$1"; }

podman_runs() { # podman_runs NAME
  podman import --quiet image.tar shell:local >/dev/null &&
    podman run --detach --network none --env-file environment --name "$1" localhost/shell:local sh -c "$burn"
}

# As the kubelet has containerd start it. Not with the secret on a command line, which everybody may see.
containerd_runs() {
  docker save shell:local >saved.tar && ctr image import saved.tar >/dev/null &&
    ctr run --detach --env-file environment --runc-systemd-cgroup \
      --cgroup "system.slice:cri-containerd:$task" --annotation io.kubernetes.cri.container-name=pay \
      --annotation io.kubernetes.cri.sandbox-name=shop-0 --annotation io.kubernetes.cri.sandbox-namespace=prod \
      docker.io/library/shell:local "$task" sh -c "$burn"
}
containerd_pid() { ctr task list | awk -v id="$task" '$1 == id { print $2 }'; }

echo "NOTE $(uname -r), $(docker --version), $(podman --version), $(containerd --version | cut -d' ' -f1,3)"
# Emulated, a budget would let nothing be named in time.
mkdir -p /etc/systemd/system/flamed.service.d
printf '%s\n' '[Service]' ExecStart= 'ExecStart=/usr/local/bin/flamed --cpu-budget off' >/etc/systemd/system/flamed.service.d/test.conf
systemctl daemon-reload
check "the service starts" service_starts
check "there is an image" make_images

echo "--- Docker"
check "Docker starts" docker_starts
check "Docker runs a container" docker_runs shop-web
web=$(docker_pid shop-web)
check "it is called as Docker calls it" is_named "$web" shop-web
check "Docker runs it again" docker restart --time 1 shop-web
again=$(docker_pid shop-web)
check "it is another process" test "${web:?}" != "${again:?}"
check "it is called the same" is_named "$again" shop-web
check "it has the secret" grep -qa "$secret" "/proc/$again/environ"
check "it gets another name" docker rename shop-web shop-new
check "and is called as it was when it was met" is_called "$again" shop-web
# A control group within it, as an engine in the container makes for its own.
group=/sys/fs/cgroup$(cut -d: -f3 "/proc/$again/cgroup" | tail -n 1)
check "a container within it can be made" mkdir "$group/docker-$inner.scope"
docker run --detach --network none --name other --cgroup-parent system.slice shell:local sh -c "$burn" >/dev/null
other=$(docker_pid other)
check "it has a process" eval "echo $other >'$group/docker-$inner.scope/cgroup.procs'"
check "that one is not called as the outer one" within 60 has_container "$other" "$inner"
kill -9 "$other"

echo "--- Podman"
check "Podman runs a container" podman_runs shop-store
store=$(podman inspect --format '{{.State.Pid}}' shop-store)
check "it is called as Podman calls it" is_named "$store" shop-store

echo "--- containerd"
check "containerd runs a container" containerd_runs
pay=$(containerd_pid)
check "it is called as the kubelet calls it" is_named "$pay" prod/shop-0/pay
check "it ends" ctr task kill --signal KILL "$task"
check "its name is still known" within 5 has_samples prod/shop-0/pay
ctr task delete "$task" >/dev/null 2>&1
ctr container delete "$task"

echo "--- hostile names"
mkdir -p /var/log/containers
hostile=$'/var/log/containers/a\e[31mb_n\ns_c\x07d-'$task.log
check "a link to a log has control characters" ln -s /dev/null "$hostile"
systemctl restart flamed
within 30 answers
check "the container runs again" containerd_runs
pay=$(containerd_pid)
name_of() { curl -sf "$url/processes?pid=$1&from=now-20s" | grep -o '"container_name": *"[^"]*"'; }
is_of_link() { [[ $(name_of "$pay") == *n*s/a*b/c*d* ]]; }
check "it is called as the link says" within 60 is_of_link
name_of "$pay" >answer
echo "NOTE $(cat -v answer)"
check "without its control characters" not grep -qP '[\x00-\x09\x0b-\x1f]|\\u00(0[0-9a-f]|1[0-9a-f])|\\[bfnrt]' answer
ctr task kill --signal KILL "$task"

echo "--- engines whose files flamed does not see"
engines=()
for engine in docker:/run/docker.sock cri:/run/containerd/containerd.sock docker:/run/podman/podman.sock; do
  engines+=(--container-engines "$engine")
done
restarts_with() { # restarts_with LINE...: of the unit
  printf '%s\n' '[Service]' ExecStart= "ExecStart=/usr/local/bin/flamed --cpu-budget off ${engines[*]}" \
    'InaccessiblePaths=-/var/lib/docker -/var/lib/containers -/run/containers/storage' "$@" \
    >/etc/systemd/system/flamed.service.d/test.conf
  systemctl daemon-reload && systemctl restart flamed && within 30 answers
}
log_has() { # log_has TEXT: since the last start
  journalctl --no-pager --quiet --unit flamed "_SYSTEMD_INVOCATION_ID=$(systemctl show --property InvocationID --value flamed)" |
    grep -qF -- "$1"
}
# Not by podman.socket: emulated, it takes longer to start than an engine has to answer.
podman_serves() {
  systemd-run --quiet --unit podman-service podman system service --time 0 unix:///run/podman/podman.sock &&
    within 60 curl -sf -o answer --unix-socket /run/podman/podman.sock http://localhost/_ping
}
check "Podman has a socket" podman_serves
check "containers get other names" eval "docker rename shop-new shop-api && podman rename shop-store shop-kept"
check "flamed starts with engines and no further right" restarts_with
check "it may not ask" within 60 log_has "cannot ask the container engine at /run/docker.sock: flamed may not"
check "so there is no name" has_container "$again" "$(docker inspect --format '{{.Id}}' shop-api)"
check "flamed starts with the right" restarts_with AmbientCapabilities=CAP_DAC_OVERRIDE CapabilityBoundingSet=CAP_DAC_OVERRIDE
check "Docker says what its container is called" is_named "$again" shop-api
check "Podman says what its container is called" is_named "$store" shop-kept
check "each engine could be asked, containerd by its CRI" not log_has "cannot ask"

echo "--- after all have ended"
docker rm --force shop-api other >/dev/null
podman rm --force --time 1 shop-kept >/dev/null 2>&1
past() { curl -sf "$url/profile?container=$1&from=now-30m&format=folded"; }
check "Podman's container is known by its name" test -n "$(past shop-store)"
check "so it is by the one that Podman has said" test -n "$(past shop-kept)"
check "so is Docker's, by the name that it had when flamed was started" test -n "$(past shop-new)"
curl -sf "$url/processes?from=now-30m" >answers
curl -sf "$url/profile?from=now-30m" >>answers
check "answers have the containers" grep -q shop-new answers
check "and no secret" not grep -q "$secret" answers
systemctl stop flamed
journalctl --no-pager --quiet --unit flamed >log
check "there is a log" test -s log
check "the log has no secret" not grep -q "$secret" log
echo END
