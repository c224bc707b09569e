#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Inside the virtual machine: the service under systemd, then the kernel tests. Prints PASS and FAIL lines, and END.
set -uo pipefail
exec >/dev/ttyS1 2>&1
cd /opt/flamed-tests || exit 1
readonly url=http://127.0.0.1:9090

pass() { echo "PASS $*"; }
fail() { echo "FAIL $*"; }

check() { # check NAME COMMAND...
  local name=$1 output
  shift
  if output=$("$@" 2>&1); then
    pass "$name"
    grep '^NOTE' <<<"$output" || true
  else fail "$name: $(tail -c 600 <<<"$output" | tr '\n' ' ')"
  fi
}

within() { # within SECONDS COMMAND...
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < deadline)) || return 1
    sleep 0.2
  done
}

main_pid() { systemctl show --property MainPID --value flamed; }
taken() { curl -sf "$url/metrics" | awk '$1 == "flamed_samples_taken_total" { print $2 }'; }
answers() { curl -sf -o /dev/null "$url/readyz"; }
samples_flow() {
  local before after
  before=$(taken) && sleep 2 && after=$(taken) && ((after > before))
}

service_starts() { systemctl start flamed && systemctl is-active flamed && within 30 answers && samples_flow; }

known_chain_is_seen() {
  ./victims/victim_known_chain >/dev/null &
  local victim=$! stacks
  sleep 10
  stacks=$(curl -sf "$url/profile?pid=$victim&format=folded")
  kill $victim
  echo "$stacks"
  grep -q ';main;outer;middle;work_one [0-9]' <<<"$stacks" && grep -q ';main;outer;middle;work_two [0-9]' <<<"$stacks"
}

tables_in_force() { curl -sf "$url/healthz" | grep -q 'walked by unwind tables'; }

worker_is_shut_in() {
  local health pid status
  health=$(curl -sf "$url/healthz")
  grep -q 'system calls filtered' <<<"$health" && ! grep -q '; but' <<<"$health" || return 1
  pid=$(grep -o 'reads the files (pid [0-9]*' <<<"$health" | grep -o '[0-9]*$')
  status=$(cat "/proc/$pid/status")
  ! grep -E '^Cap(Prm|Eff|Bnd|Amb)' <<<"$status" | grep -qv 0000000000000000 && ! grep -qE '^Uid:.0' <<<"$status"
}

exposure() {
  local score
  score=$(systemd-analyze security --no-pager flamed | tail -n 1)
  echo "NOTE $score"
}

another_answers() { # another_answers PID: a daemon that isn't PID
  local now
  now=$(main_pid)
  [[ $now != "$1" && $now != 0 ]] && answers
}

killed_comes_back() {
  local before start=$SECONDS
  before=$(main_pid)
  kill -KILL "$before"
  within 30 another_answers "$before" || return 1
  samples_flow || return 1
  echo "NOTE back $((SECONDS - start)) s after SIGKILL, 2 s of them for counting samples"
}

# A stopped daemon feeds no watchdog: systemd ends it and starts another.
hung_comes_back() {
  local before start=$SECONDS
  before=$(main_pid)
  kill -STOP "$before"
  within 90 another_answers "$before" || return 1
  samples_flow || return 1
  echo "NOTE back $((SECONDS - start)) s after it hung"
}

journal_is_clean() {
  local bad
  # What was done to it above is systemd's to tell, and it is told at "warning" and above.
  bad=$(journalctl --no-pager --output cat --unit flamed --priority warning _COMM=flamed)
  [[ -z $bad ]] || {
    echo "$bad"
    return 1
  }
}

ends_at_stop() { systemctl stop flamed && [[ $(systemctl show --property Result --value flamed) == success ]]; }

kernel_tests() {
  # Without what measures whole minutes of churn: in an emulated machine that measures the emulation.
  FLAMED_BINARY=$(command -v flamed || echo /usr/local/bin/flamed) FLAMED_VICTIMS=$PWD/victims \
    ./kernel_tests "~thousands of execs*" "~libraries that are loaded*" "~two thousand threads*" "~the rows of every ELF*" \
    "~every sample of two busy*" "~a thousand processes*"
}

echo "NOTE $(uname -srv), perf_event_paranoid $(cat /proc/sys/kernel/perf_event_paranoid)"
check "the service starts, answers and samples" service_starts
check "user stacks are walked by unwind tables" tables_in_force
check "a known call chain is seen whole" known_chain_is_seen
check "the ELF worker has given up user, capabilities, root directory and system calls" worker_is_shut_in
exposure
check "a killed daemon comes back" killed_comes_back
check "a hung daemon is ended by the watchdog and comes back" hung_comes_back
check "its journal holds no warning" journal_is_clean
check "the service ends at once when it is stopped" ends_at_stop
if output=$(kernel_tests 2>&1); then
  pass "kernel tests: $(tail -n 2 <<<"$output" | tr '\n' ' ')"
else
  tail -n 100 <<<"$output"
  fail "kernel tests: $(tail -n 3 <<<"$output" | tr '\n' ' ')"
fi
echo END
