#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Tests of the page in a real browser.
#
#   run.sh fixture OUTPUT FIXTURE_SERVER     over fixed content
#   run.sh bench OUTPUT PAGE_BENCH_SERVER [FLAMED HISTORY_BENCH]
#                                            how fast it is: figures on stdout; with a month on disk if the last two are
#                                            given, which needs root, and three minutes to make the month in OUTPUT
#   run.sh daemon OUTPUT FLAMED VICTIM       over the real daemon, which needs root; VICTIM is test/kernel/victims/known_chain.c
#   run.sh waits OUTPUT FLAMED VICTIM        likewise, with waits on; VICTIM is test/kernel/victims/waits.c
#   run.sh tasks OUTPUT FLAMED CHECKOUT MOVE_HISTORY VICTIMS
#                                            likewise, over loads/checkout.c and other known loads, and with a past;
#                                            VICTIMS is a folder with programs of test/kernel/victims
#   run.sh picture OUTPUT FLAMED SECONDS     likewise, while picture/load.sh runs for so long: makes the pictures of docs/
#
# OUTPUT is a directory of the build: screenshots and the browser's driver (npm) go there. Exit status 77, and a line
# with SKIP, if the tests cannot run here.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
readonly here
mode=$1
# Absolute, since the tests run from another directory.
output=$(realpath "$2")
program=$(realpath "$3")
readonly mode output program
case $mode in
  bench) flamed=$(realpath "${4:-.}") history_bench=$(realpath "${5:-.}") ;;
  daemon | waits) victim_program=$(realpath "$4") ;;
  tasks) checkout_program=$(realpath "$4") move_history=$(realpath "$5") victims=$(realpath "$6") ;;
esac
readonly skipped=77
started=()
groups=()

skip() {
  echo "SKIP: $1"
  exit $skipped
}

end_started() {
  local pid group
  for pid in "${started[@]}"; do
    kill "$pid" 2>/dev/null || continue
    wait "$pid" 2>/dev/null || true
  done
  # The kernel needs a moment to release their processes.
  for group in "${groups[@]}"; do
    for _ in {1..50}; do
      rmdir "$group" 2>/dev/null && break
      sleep 0.1
    done
  done
}
trap end_started EXIT

for command in node npm curl; do
  command -v $command >/dev/null || skip "$command is not installed"
done
[[ -x ${CHROMIUM:-/usr/bin/chromium} ]] || skip "chromium is not installed"

# The tests run from a copy, since Node looks for packages in the folders above the files that name them. Several modes
# may run at the same time.
readonly packages=$output/web-tests shots=$output/screenshots
readonly place=$packages/$mode
mkdir -p "$place" "$shots"
exec 8>"$packages/.lock"
flock 8
if ! cmp -s "$here/package-lock.json" "$packages/.installed"; then
  cp "$here"/package.json "$here"/package-lock.json "$here"/.npmrc "$packages"
  npm --prefix "$packages" ci --no-progress --loglevel=error >&2
  cp "$packages/package-lock.json" "$packages/.installed"
fi
exec 8>&-
rm -f "$place"/*.mjs # a removed test must not run
cp "$here"/*.mjs "$place"
cd "$place"
export FLAMED_SHOTS=$shots FLAMED_PAGE_SOURCES=$here/../../api/web/src

wait_until_ready() { # wait_until_ready URL PID
  local deadline=$((SECONDS + 30))
  until curl --silent --fail --max-time 2 --output /dev/null "$1/readyz"; do
    kill -0 "$2" 2>/dev/null || { echo "the daemon has ended" >&2; return 1; }
    ((SECONDS < deadline)) || { echo "the daemon is not ready after 30 s" >&2; return 1; }
    sleep 0.2
  done
}

start_daemon() { # start_daemon [FLAG...]: sets url
  local port
  port=$(node -e 'const s = require("net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close(); })')
  url=http://127.0.0.1:$port
  "$program" --listen "127.0.0.1:$port" "$@" >"$place/flamed.log" 2>&1 &
  started+=("$!")
  wait_until_ready "$url" "$!" || { cat "$place/flamed.log" >&2; exit 1; }
}

# What is stored without names stays so, if the programs have ended.
wait_until_named() { # wait_until_named PID FUNCTION
  local deadline=$((SECONDS + 60))
  until curl --silent --fail "$url/profile?format=folded&pid=$1" | grep "$2" >/dev/null; do
    ((SECONDS < deadline)) || { echo "$2 is not named after 60 s" >&2; return 1; }
    sleep 0.5
  done
}

# A control group whose path says that it is a container's: sets group, to nothing if there can be none. Of the hierarchies
# without controllers, or of the only one.
make_group() { # make_group NAME
  local root parent
  for root in /sys/fs/cgroup/unified /sys/fs/cgroup; do
    parent=$root/flamed-tasks-$$
    [[ -w $root/cgroup.procs ]] || continue
    if [[ ! -d $parent ]]; then
      mkdir "$parent" 2>/dev/null || continue
      groups=("$parent")
    fi
    group=$parent/$1
    mkdir "$group"
    groups=("$group" "${groups[@]}")
    return
  done
  group=''
}

# Starts a program, in a control group unless GROUP is empty: sets child.
start_in() { # start_in GROUP COMMAND...
  local within=$1
  shift
  (
    [[ -z $within ]] || echo 0 >"$within/cgroup.procs"
    exec "$@"
  ) >/dev/null &
  child=$!
  started+=("$child")
}

end_child() { # end_child PID
  kill "$1"
  wait "$1" || true
}

case $mode in
  fixture)
    # All tests but those of the real daemon. In a fixed time zone, so that the page is the same everywhere.
    fixture_tests=()
    for file in *.test.mjs; do
      [[ $file =~ ^(live|speedscope|waits_live|tasks_live)[.] ]] || fixture_tests+=("$file")
    done
    TZ=UTC FLAMED_FIXTURE=$program node --test --test-concurrency="$(nproc)" "${fixture_tests[@]}"
    ;;
  bench)
    cp "$here/../bench/page/page_bench.mjs" "$place"
    if (($# == 5 && EUID == 0)); then
      export FLAMED_DAEMON=$flamed FLAMED_MONTH=$output/month
      if [[ ! -d $FLAMED_MONTH ]]; then
        rm -rf "$FLAMED_MONTH.new"
        "$history_bench" "$FLAMED_MONTH.new" >&2
        mv "$FLAMED_MONTH.new" "$FLAMED_MONTH"
      fi
    fi
    FLAMED_FIXTURE=$program node page_bench.mjs
    ;;
  daemon)
    ((EUID == 0)) || skip "the daemon needs root"
    "$victim_program" &
    victim=$!
    started+=("$victim")
    start_daemon
    FLAMED_URL=$url FLAMED_VICTIM_PID=$victim node --test live.test.mjs speedscope.test.mjs
    ;;
  waits)
    ((EUID == 0)) || skip "the daemon needs root"
    # Without a budget visits come often enough for a window of some seconds.
    start_daemon --waits on --cpu-budget off
    "$victim_program" mutex 600 >/dev/null &
    victim=$!
    started+=("$victim")
    FLAMED_URL=$url FLAMED_VICTIM_PID=$victim node --test waits_live.test.mjs
    ;;
  tasks)
    ((EUID == 0)) || skip "the daemon needs root"
    docker_id=3f1c9a0b7d2e4c5f8a6b1d0e9c8b7a6f5e4d3c2b1a0f9e8d7c6b5a4f3e2d1c0b
    make_group "docker-$docker_id.scope"
    docker=$group
    make_group lxc.payload.stage-7
    stage=$group
    [[ -n $stage ]] || echo "SKIP control-groups: none can be made here, so three tasks about containers are not done"
    rm -rf "$place"/history* "$place"/burst-* "$place/classes"

    # What runs all the time, and was there before.
    "$checkout_program" &
    checkout=$!
    started+=("$checkout")
    java=''
    if command -v javac >/dev/null; then
      javac -d "$place/classes" "$here/loads/Stock.java"
      start_in "$docker" java -Xmx128m -XX:+UseG1GC -cp "$place/classes" Stock
      java=$child
    else
      echo "SKIP: no JDK here (Debian: default-jdk-headless), so the tasks about Java are not done"
    fi
    options=(--waits on --cpu-budget off --history)
    start_daemon "${options[@]}" "$place/history-recorded"
    recorded_from=$(date +%s)
    sleep 40 # a minute is named and written after 35 s
    wait_until_named "$checkout" price_with_tax
    [[ -z $java ]] || wait_until_named "$java" Stock.scan
    end_child "${started[-1]}"
    unset 'started[-1]'
    # A week and more, at noon of yesterday, an hour and some minutes before.
    noon=$(date --utc --date='yesterday 12:01' +%s)
    "$move_history" "$place/history-recorded" "$place/history" $((8 * 86400)) $((7 * 86400)) $((recorded_from - noon)) 3600 360

    # What is new.
    start_daemon "${options[@]}" "$place/history"
    kill -USR1 "$checkout"
    cp "$victims/victim_known_chain" "$place/backup"
    "$place/backup" 1500 &
    backup=$!
    wait "$backup"
    start_in "$stage" "$victims/victim_known_chain" 1500
    stage_7=$child
    wait "$stage_7"
    # On two CPUs at once, and apart from the others: a column of the heat map is two seconds.
    sleep 4
    burst_from=$(date +%s%3N)
    for burst in first second; do
      "$victims/victim_burst" 0 2000 >"$place/burst-$burst" &
      started+=("$!")
    done
    until [[ -s $place/burst-first && -s $place/burst-second ]]; do sleep 0.05; done
    burst_to=$(date +%s%3N)
    for burst in first second; do
      end_child "${started[-1]}"
      unset 'started[-1]'
    done
    TZ=UTC FLAMED_URL=$url FLAMED_CHECKOUT=$checkout FLAMED_CHECKOUT_SOURCE=$here/loads/checkout.c FLAMED_STOCK=$java \
      FLAMED_STOCK_SOURCE=$here/loads/Stock.java FLAMED_BACKUP=$backup FLAMED_STAGE=${stage:+$stage_7} FLAMED_DOCKER=$docker_id \
      FLAMED_BURST="$burst_from $burst_to" FLAMED_NOON=$noon node --test tasks_live.test.mjs
    ;;
  picture)
    ((EUID == 0)) || skip "the daemon needs root"
    command -v pngquant >/dev/null || skip "pngquant is not installed"
    exec 9>/run/flamed-picture.lock # the load has a fixed place, so only one runs at a time
    flock 9
    # The pictures have as many samples, however many programs come and go besides the load.
    start_daemon --cpu-budget off --waits on
    "$here/picture/load.sh" &
    started+=("$!")
    if timeout "$4" tail --pid="$!" -f /dev/null; then
      wait "$!" || exit # it has printed the reason
      echo "the load has ended too soon" >&2
      exit 1
    fi
    FLAMED_URL=$url FLAMED_SECONDS=$4 node picture.mjs
    ;;
  *)
    echo "no such mode: $mode" >&2
    exit 2
    ;;
esac
