#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The init of an emulated arm64 machine: loads the kernel programs, runs the daemon over programs of Debian 13, and the kernel
# tests that depend on the processor. Prints PASS, FAIL and NOTE lines, and END. See arm64.sh.
set -uo pipefail
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root FLAMED_EMULATED=1
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mount -t tmpfs none /tmp
mount -t tmpfs none /run
mount -t cgroup2 none /sys/fs/cgroup
ln -s /proc/self/fd /dev/fd
exec </dev/null
readonly line=/dev/ttyAMA0
stty -F "$line" -opost
# shellcheck source=test/vm/guest_support.sh
source /opt/flamed-tests/guest_support.sh
ip link set lo up
date --set "@$(grep -o 'flamed\.now=[0-9]*' /proc/cmdline | cut -d= -f2)" >/dev/null # the kernel with pages of 64 KiB has no clock
for module in inet_diag tcp_diag; do # built in, with pages of 64 KiB
  find /usr/lib/modules -path "*/$(uname -r)/*" -name "$module.ko*" -exec insmod {} +
done
export FLAMED_BINARY=$PWD/flamed FLAMED_VICTIMS=$PWD/victims FLAMED_OPERATIONS_PAGE=$PWD/operations.md \
  FLAMED_UNIT=$PWD/flamed.service.in FLAMED_PPROF_SCHEMA=$PWD/pprof.proto

end() {
  echo END
  sync
  echo o >/proc/sysrq-trigger
  sleep 60 # until the power is off
}

# ---- A daemon ----

by_tables() { curl -sf "$url/healthz" | grep -q 'walked by unwind tables'; }
has_stack() { curl -sf "$url/profile?pid=$1&format=folded" | grep -q "$2"; } # has_stack PID PART
has_samples() { (($(folded "$1" | awk '{ n += $NF } END { print n + 0 }') >= 300)); } # has_samples PID[&from=TIME]
folded() { curl -sf "$url/profile?format=folded&pid=$1"; }

known_chain_is_seen() {
  ./victims/victim_known_chain >/dev/null &
  local victim=$! status=0
  within 60 has_stack "$victim" ';main;outer;middle;work_one [0-9]' &&
    within 60 has_stack "$victim" ';main;outer;middle;work_two [0-9]' || status=1
  ((status == 0)) || curl -s "$url/profile?pid=$victim&format=folded"
  kill $victim
  return $status
}

has_wait() { curl -sf "$url/profile?pid=$1&measure=wait&format=folded" | grep -q "$2"; } # has_wait PID PART
has_exact_wait() { curl -sf "$url/off_cpu?seconds=2&format=folded&wakers=show&pid=$1" | grep -q "$2"; }

waiting_stacks_are_seen() {
  ./victims/victim_waits mutex 600 >/dev/null &
  local victim=$! status=0
  within 120 has_wait "$victim" ';want;.*;\[lock\] [0-9]' && within 60 has_exact_wait "$victim" ';want;.*;\[lock\]' &&
    within 60 has_exact_wait "$victim" ';\[woken by ' || status=1
  ((status == 0)) || curl -sf "$url/profile?pid=$victim&measure=wait&format=folded" "$url/off_cpu?seconds=2&format=folded&pid=$victim"
  kill $victim
  return $status
}

# By paciasp, which stands at the begin of each function that signs its return address.
signs() { LC_ALL=C grep -q -a -P '\x3f\x23\x03\xd5' "$1"; } # signs FILE

# Nearly all stacks of a program without frame pointers are whole.
stacks_are_whole() { # stacks_are_whole COMMAND...
  chroot /signed "$@" </dev/zero >/dev/null 2>&1 &
  local program=$! status=0 all whole later
  within 300 has_samples "$program" || status=1
  # Its rows stand by now. Building them takes longer here than its first samples wait for them.
  later="$program&from=$(date +%s%3N)"
  within 300 has_samples "$later" || status=1
  # shellcheck disable=SC2016  # awk's fields.
  read -r all whole < <(folded "$later" | awk '{ all += $NF } !/^\[(truncated|guessed)/ { whole += $NF } END { print all + 0, whole + 0 }')
  echo "NOTE $1 of Debian 13: $whole of $all stacks whole"
  ((status == 0 && whole * 100 >= all * 97)) || {
    folded "$later" | grep -E '^\[(truncated|guessed)' | awk '{ print $NF, $0 }' | sort -rn | head -n 8 | cut -c 1-400
    status=1
  }
  kill "$program"
  wait "$program" 2>/dev/null
  return $status
}

daemon() {
  local program daemon
  for program in /usr/bin/xz /usr/bin/perl /usr/bin/sha256sum /usr/bin/gzip; do
    check "$program of Debian 13 signs its return addresses" signs "/signed$program"
  done
  ./flamed --frequency 199 --cpu-budget off >/tmp/flamed.log 2>&1 &
  daemon=$!
  check "the daemon answers" within 120 answers || cat /tmp/flamed.log
  check "samples flow" samples_flow
  check "user stacks are walked by unwind tables" within 120 by_tables
  check "a known call chain is seen whole" known_chain_is_seen
  check "stacks of threads that wait for a mutex are seen, visited and exactly" waiting_stacks_are_seen
  check "stacks of xz are whole" stacks_are_whole /usr/bin/xz -9 -c
  # shellcheck disable=SC2016  # Perl's variables.
  check "stacks of perl are whole" stacks_are_whole /usr/bin/perl -e \
    'while (1) { $n{$i++ % 1000} .= join ",", sort map { $_ * 7 % 13 } 1 .. 50; %n = () if $i % 5000 == 0 }'
  check "stacks of sha256sum are whole" stacks_are_whole /usr/bin/sha256sum
  check "stacks of gzip are whole" stacks_are_whole /usr/bin/gzip -9 -c
  curl -sf "$url/healthz" | grep -o '"name": *"[a-z_]*", *"ok": *false[^}]*' | sed 's/^/NOTE not ok: /'
  kill -TERM "$daemon"
  wait "$daemon"
  check "the daemon ends in order" grep ' ended: ' /tmp/flamed.log
  grep ' ended: ' /tmp/flamed.log | sed 's/^.* ended: /NOTE ended: /'
}

# ---- Kernel tests ----

kernel_tests() { # kernel_tests SECONDS TEST[,TEST...]: of a host without other load
  local log=/tmp/kernel_tests.log
  if timeout "$(($1 * ${stretch:-1}))" ./kernel_tests --filenames-as-tags --durations yes "$2" >"$log" 2>&1; then
    pass "kernel tests $2: $(grep -v '^ *$' "$log" | tail -n 1)"
  else
    tail -n 400 "$log" | cut -c 1-400
    fail "kernel tests $2: $(grep -v '^ *$' "$log" | tail -n 2 | tr '\n' ' ')"
  fi
  grep -E '^[0-9.]+ s: ' "$log" | sed 's/^/NOTE took /'
  grep -h 'SKIP' "$log" | sed 's/^ */NOTE /'
}

echo "NOTE $(uname -srm), pages of $(getconf PAGESIZE) bytes, CPU features:$(grep -m 1 -o ' pac[ag]' /proc/cpuinfo | tr -d '\n')"
for test in compilers/compiler_test_*; do
  check "the kernel takes the programs of ${test#*compiler_test_}" "$test" 'the kernel takes*'
done
if grep -q flamed.programs /proc/cmdline; then
  end
  exit
fi
daemon
kernel_tests 600 '[#unwind_test]'
kernel_tests 300 'a known call chain*,a program that lives in system calls*,a program whose file was deleted*,a stack deeper than a record*,SIGTERM ends the daemon*'
kernel_tests 300 '[#late_walk_test]'
kernel_tests 300 '[#names_test]'
kernel_tests 200 'selections add up to the whole,the next seconds are available as folded stacks*'
kernel_tests 100 'the worker has no capabilities*,no process of the worker*'
kernel_tests 100 '[#verifier_test]'
end
