#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The init of an emulated arm64 machine: loads the kernel programs, and runs the tests that depend on the processor. Prints
# PASS, FAIL and NOTE lines, and END. See vm.sh.
set -uo pipefail
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root FLAMED_EMULATED=1
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mount -t tmpfs none /tmp
mount -t tmpfs none /run
mount -t cgroup2 none /sys/fs/cgroup
exec </dev/null >/dev/ttyAMA0 2>&1
stty -F /dev/ttyAMA0 -opost
ip link set lo up
cd /tests || exit 1
readonly url=http://127.0.0.1:9090

end() {
  echo END
  sync
  echo o >/proc/sysrq-trigger
  sleep 60 # until the power is off
}

check() { # check NAME COMMAND...
  local name=$1 output
  shift
  if output=$("$@" 2>&1); then
    echo "PASS $name"
    grep '^NOTE' <<<"$output" || true
  else
    tail -n 60 <<<"$output"
    echo "FAIL $name"
  fi
}

within() { # within SECONDS COMMAND...
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < deadline)) || return 1
    sleep 0.5
  done
}

# ---- A daemon, and programs of Debian 13 ----

answers() { curl -sf -o /dev/null "$url/readyz"; }
by_tables() { curl -sf "$url/healthz" | grep -q 'walked by unwind tables'; }
folded() { curl -sf "$url/profile?pid=$1&format=folded&interpreter=show"; }
has_samples() { (($(folded "$1" | awk '{ n += $NF } END { print n + 0 }') >= 300)); } # has_samples PID

# Nearly all stacks of a program without frame pointers are whole, and begin in its first function.
stacks_are_whole() { # stacks_are_whole COMMAND...
  chroot /signed "$@" </dev/zero >/dev/null 2>&1 &
  local program=$! status=0 counts
  within 600 has_samples "$program" || status=1
  # shellcheck disable=SC2016  # awk's fields.
  counts=$(folded "$program" | awk '{ all += $NF } !/^\[truncated/ { whole += $NF } END { print all + 0, whole + 0 }')
  echo "NOTE $1 of Debian 13: ${counts#* } of ${counts% *} stacks whole"
  ((status == 0 && ${counts#* } * 100 >= ${counts% *} * 97)) || {
    folded "$program" | awk '{ print $NF, $0 }' | sort -rn | head -n 12 | cut -c 1-400
    status=1
  }
  kill "$program"
  wait "$program" 2>/dev/null
  return $status
}

# By paciasp, which stands at the begin of each function that signs its return address.
signs() { LC_ALL=C grep -q -a -P '\x3f\x23\x03\xd5' "$1"; } # signs FILE

programs_of_debian_13() {
  local program
  for program in /usr/bin/xz /usr/bin/perl /usr/bin/sha256sum /usr/bin/gzip; do
    check "$program of Debian 13 signs its return addresses" signs "/signed$program"
  done
  ./flamed --frequency 199 --cpu-budget off >/tmp/flamed.log 2>&1 &
  local daemon=$!
  check "the daemon answers" within 120 answers
  check "user stacks are walked by unwind tables" within 120 by_tables
  check "stacks of xz are whole" stacks_are_whole /usr/bin/xz -9 -c
  # shellcheck disable=SC2016  # Perl's variables.
  check "stacks of perl are whole" stacks_are_whole /usr/bin/perl -e \
    'while (1) { $n{$i++ % 1000} .= join ",", sort map { $_ * 7 % 13 } 1 .. 50; %n = () if $i % 5000 == 0 }'
  check "stacks of sha256sum are whole" stacks_are_whole /usr/bin/sha256sum
  check "stacks of gzip are whole" stacks_are_whole /usr/bin/gzip -9 -c
  curl -sf "$url/healthz" | grep -o '"name":"[a-z_]*","ok":false[^}]*' | sed 's/^/NOTE not ok: /'
  kill -TERM "$daemon"
  wait "$daemon"
  check "the daemon ends in order" grep -q ' ended: ' /tmp/flamed.log
  grep ' ended: ' /tmp/flamed.log | sed 's/^/NOTE /'
}

# ---- Kernel tests ----

kernel_tests() {
  local tests=('[#unwind_test]' 'a known call chain*' 'a program that lives in system calls*' 'a program whose file was deleted*'
    'a stack deeper than a record*' '*functions are named below*' 'SIGTERM ends the daemon*' '[#late_walk_test]'
    'the worker has no capabilities*' 'no process of the worker*' '[#verifier_test]')
  FLAMED_BINARY=$PWD/flamed FLAMED_VICTIMS=$PWD/victims FLAMED_OPERATIONS_PAGE=$PWD/operations.md \
    FLAMED_UNIT=$PWD/flamed.service.in FLAMED_PPROF_SCHEMA=$PWD/pprof.proto \
    ./kernel_tests --filenames-as-tags --durations yes "$(IFS=,; echo "${tests[*]}")"
}

echo "NOTE $(uname -srm), pages of $(getconf PAGESIZE) bytes, CPU features:$(grep -m 1 -o ' pac[ag]' /proc/cpuinfo | tr -d '\n')"
for test in compilers/compiler_test_*; do
  check "the kernel takes the programs of ${test#*compiler_test_}" "$test" 'the kernel takes*'
done
if grep -q flamed.programs /proc/cmdline; then
  end
  exit
fi
programs_of_debian_13
kernel_tests >/tmp/kernel_tests.log 2>&1
status=$?
grep -E '^[0-9.]+ s: ' /tmp/kernel_tests.log | sed 's/^/NOTE took /'
grep -A 1 'SKIP' /tmp/kernel_tests.log | sed 's/^/NOTE /'
if ((status == 0)); then
  echo "PASS kernel tests: $(tail -n 2 /tmp/kernel_tests.log | tr '\n' ' ')"
else
  tail -n 400 /tmp/kernel_tests.log
  awk '/^-+$/ { if (++rules % 2) getline name } / FAILED:$/ { print "NOTE failed: " name }' /tmp/kernel_tests.log | uniq
  echo "FAIL kernel tests: $(tail -n 3 /tmp/kernel_tests.log | tr '\n' ' ')"
fi
end
