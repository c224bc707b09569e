#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Inside the virtual machine: flamed's image with the rights of its manifest, and then without each of them. What it can
# show are facts, words that stand below. Each right that is taken away has to cost those that are listed for it, and no
# others: so the manifest has nothing that is not needed.
set -uo pipefail
# shellcheck source=test/vm/guest_support.sh
source /opt/flamed-tests/guest_support.sh
readonly engine=docker stack=';main;outer;middle;work_one [0-9]' group=/system.slice/flamed-tests.service
readonly all=(answers health worker host container private deleted kernel group name past kept)

docker_starts() {
  mkdir -p /etc/docker
  printf '%s\n' '{ "iptables": false, "bridge": "none" }' >/etc/docker/daemon.json
  # The package tried to start it while the machine booted, without this configuration.
  systemctl reset-failed docker.service docker.socket
  systemctl restart containerd docker && within 60 docker info >/dev/null
}
make_images() {
  local changes
  mapfile -t changes <changes
  docker import "${changes[@]}" flamed.tar flamed && tar -C other -cf other.tar . &&
    docker import --change 'ENTRYPOINT ["/burn"]' other.tar other
}

# ---- What is sampled ----

# As the kubelet links the log of a container, here of Docker's.
start_other() {
  local id
  id=$(docker run --detach --network none --name other other) && mkdir -p /var/log/containers &&
    ln -s /dev/null "/var/log/containers/shop-0_prod_pay-$id.log"
}
# holds() has them by these names.
# shellcheck disable=SC2034
start_programs() {
  other=$(docker inspect --format '{{.State.Pid}}' other)
  renice --priority 19 --pid "$other" >/dev/null
  nice -n 19 ./victim_known_chain >/dev/null &
  host=$!
  install -o 1000 -m 0700 victim_known_chain private
  nice -n 19 setpriv --reuid 1000 --regid 1000 --clear-groups /opt/flamed-tests/private >/dev/null &
  private=$!
  cp victim_known_chain gone
  nice -n 19 ./gone >/dev/null &
  deleted=$!
  nice -n 19 dd if=/dev/zero of=/dev/null bs=4M 2>/dev/null &
  kernel=$!
  sleep 1
  rm gone
}

# ---- flamed ----

reach=() # how its address is reached
past_from=0 past_to=0 # some time of the first start, in seconds
ask() { "${reach[@]}" curl -sf --max-time 30 "$url/$1"; }
# Few questions, since an emulated machine takes a second for each, and only about the programs above: names of the engines'
# functions would take half a minute.
ask_all() {
  ask "profile?pid=$host,$private,$deleted,$other,$kernel&from=now-20s&format=folded" >profile
  ask "processes?from=now-20s" | sed 's/},{/},\n{/g' >processes
  ask "profile?pid=$host&from=$past_from&to=$past_to&format=folded" >past
  ask healthz >health
  ask metrics >figures
}
has_stack() { grep -q " ($1);.*$stack" profile; } # has_stack PID
is_listed() { grep "\"pid\": *$1," processes | grep -q "$2"; } # is_listed PID WHAT

holds() { # holds FACT, by the answers to ask_all
  case $1 in
    answers) curl -sf -o /dev/null "$url/readyz" ;;
    health) [[ -s health ]] && ! grep -q '"ok": *false' health ;;
    worker) grep -q 'reads the files (pid [0-9]*, user 6[01][0-9]*, [^;]*"' health ;;
    host | private | deleted) has_stack "${!1}" ;;
    container) has_stack "$other" ;;
    kernel) grep -q " ($kernel);.*;do_syscall_64;.*read_zero" profile ;;
    group) is_listed "$host" "\"cgroup\": *\"$group\"" ;;
    name) is_listed "$other" '"container_name": *"prod/shop-0/pay"' ;;
    past) grep -q "$stack" past ;;
    kept) awk '$1 == "flamed_unwind_reuses_total" { found = $2 > 0 } END { exit !found }' figures ;;
  esac
}
has_lost() { # has_lost FACT...: whether these facts don't hold, and all others do
  local fact lost=()
  ask_all
  for fact in "${all[@]}"; do holds "$fact" || lost+=("$fact"); done
  said="${lost[*]}"
  [[ $said == "$*" ]]
}

# shellcheck disable=SC2120  # check() passes some.
starts() { # starts [OPTION...]: with all options of the manifest but those of the right in `without`
  local right option options=()
  while IFS=$'\t' read -r right option; do
    [[ $right == "${without:-}" ]] || options+=("$option")
  done <options
  "$engine" run --detach --name flamed "${options[@]}" "$@" flamed --cpu-budget off
}
pid_of_flamed() { "$engine" inspect --format '{{.State.Pid}}' flamed; }
ends() {
  "$engine" stop flamed >/dev/null && "$engine" rm flamed >/dev/null
}
shows_all_but() { # shows_all_but FACT...
  local status=0
  within 120 has_lost "$@" || status=1
  # What is lost does not come a little later.
  ((status != 0)) || { sleep 5 && has_lost "$@"; } || status=1
  ((status == 0)) || { echo "not shown: $said"; tail -c 600 health; "$engine" logs flamed 2>&1 | tail -n 5; }
  return $status
}

lacks() { # lacks RIGHT FACT...
  without=$1
  starts >/dev/null && shows_all_but "${@:2}"
}
tried=()
is_worth() { # is_worth RIGHT FACT...: what is lost without it
  tried+=("$1")
  check "without $1 is lost: ${*:2}" lacks "$@"
  ends
}
is_refused() { # is_refused RIGHT STATUS TEXT: it ends with this
  without=$1
  starts >/dev/null && [[ $("$engine" wait flamed) == "$2" ]] && "$engine" logs flamed 2>&1 | grep -q "$3"
}
is_necessary() { # is_necessary RIGHT STATUS TEXT
  tried+=("$1")
  check "without $1 it ends with status $2, and says why" is_refused "$@" || "$engine" logs flamed 2>&1 | tail -n 3
  "$engine" rm --force flamed >/dev/null
}

status_of() { awk -v key="$1:" '$1 == key { print $2 }' "/proc/$(pid_of_flamed)/status"; } # status_of KEY
bits() { # bits HEX
  local value=$((16#$1)) count=0
  for (( ; value; value &= value - 1)); do ((++count)); done
  echo "$count"
}
has_only_its_rights() {
  local set wanted
  wanted=$(grep -c cap-add options)
  for set in CapEff CapPrm CapBnd; do [[ $(bits "$(status_of $set)") == "$wanted" ]] || return 1; done
  [[ $(status_of NoNewPrivs) == 1 && $(status_of Seccomp) == 2 && $(status_of Uid) == 0 ]] &&
    grep -q ' / / ro' "/proc/$(pid_of_flamed)/mountinfo"
}
ends_in_time() {
  local began
  began=$(now_ms)
  # After 10 s it kills, and the status is another one.
  docker stop flamed >/dev/null || return 1
  echo "NOTE it ended within $(($(now_ms) - began)) ms"
  [[ $(docker inspect --format '{{.State.ExitCode}}' flamed) == 0 ]] &&
    docker logs flamed 2>&1 | grep -q 'samples taken = '
}
has_no_helpers() { ! pgrep --full '^flamed: ' >/dev/null; }

sysctl -q kernel.perf_event_paranoid=2
echo "NOTE $(uname -r), $(docker --version), $(containerd --version | cut -d' ' -f1,3)"
check "Docker starts" docker_starts
check "there are images" make_images
check "another container runs" start_other
start_programs

echo "--- with the manifest's rights"
past_from=$(date +%s)
check "the image starts" starts
check "it shows everything" shows_all_but past kept
check "it has only the rights of the manifest" has_only_its_rights
past_to=$(date +%s)
check "it ends at SIGTERM" ends_in_time
check "with its helpers" within 10 has_no_helpers
check "it starts again" docker start flamed
check "it shows everything, also of before" shows_all_but
ends

echo "--- without one of them"
is_necessary BPF 5 'it lacks CAP_BPF'
is_necessary PERFMON 5 'it lacks CAP_PERFMON'
is_worth SYS_PTRACE host container private deleted group
is_worth DAC_READ_SEARCH private
is_worth CHECKPOINT_RESTORE deleted
is_worth SYSLOG health kernel
is_worth SETUID worker
is_worth SETGID worker
# Containers of the same engine have the same profile, which lets them look at each other.
is_worth appArmorProfile host private deleted group
is_worth hostPID host container private deleted group name kept
is_worth /var/lib/flamed health past
is_worth /var/cache/flamed kept
is_worth /var/log/containers name

without=hostNetwork
tried+=(hostNetwork)
check "without hostNetwork it starts" starts --network=none
reach=(nsenter --target "$(pid_of_flamed)" --net)
check "but answers nobody on the host" shows_all_but answers
reach=()
ends

check "each right of the manifest was taken away" \
  diff <(cut -f1 options | grep -v '^-$' | sort) <(printf '%s\n' "${tried[@]}" | sort)

echo "--- with all of them"
sysctl -q kernel.perf_event_paranoid=3
is_necessary nothing 6 'sysctl kernel.perf_event_paranoid=2'
echo END
