#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures what flamed costs and prints the report; with --write also puts it into docs/overhead.md. Needs root and a
# built tree. With "page" alone: how fast the page is, in a browser. The figures are only as quiet as the machine: run nothing beside it.
set -euo pipefail
cd "$(dirname "$0")/../.."

build=${FLAMED_BUILD:-build}
out=$build/bench
seconds=20
repetitions=5
unwind_repetitions=7
mixed_seconds=20
clients_seconds=60
question_minutes=1440
write=
only_page=false
while (($# > 0)); do
  case $1 in
    --write) write=docs/overhead.md ;;
    page) only_page=true ;;
    --quick) seconds=3 repetitions=3 unwind_repetitions=3 mixed_seconds=5 clients_seconds=5 question_minutes=130 ;;
    *)
      echo "usage: ./dev bench [--quick] [--write] | page" >&2
      exit 2
      ;;
  esac
  shift
done

mkdir -p "$out"
if $only_page; then
  # Waits for the day to be made, then asks for some minutes. The load average beside the figures says how quiet it was.
  echo "page: a synthetic day, then a browser ..." >&2
  test/web/run.sh bench "$build/test/web" "$build/test/bench/page/page_bench_server" >"$out/page.json"
  printf 'load average %s\n\n' "$(cut -d ' ' -f 1 /proc/loadavg)"
  python3 test/bench/page/report.py "$out/page.json"
  exit
fi
export FLAMED_BINARY=$build/flamed FLAMED_VICTIMS=$build/test/kernel/victims FLAMED_BENCHES=$build/test/bench
echo "steady state: $repetitions times $seconds s ..." >&2
"$build/test/bench/overhead/overhead_bench" "$seconds" "$repetitions" >"$out/overhead.json"
echo "unwinding: $unwind_repetitions rounds of 12 times 1 s ..." >&2
"$build/test/bench/unwind/unwind_bench" "$unwind_repetitions" >"$out/unwind.json"
if command -v perf >/dev/null; then
  echo "mixed load: nine programs, $mixed_seconds s each, beside perf ..." >&2
  python3 test/bench/mixed/mixed_bench.py "$FLAMED_BINARY" "$mixed_seconds" >"$out/mixed.json"
else
  echo "mixed load: SKIP: there is no perf here (Debian: linux-perf)" >&2
  rm -f "$out/mixed.json"
fi
echo "replay: recording 5 s of a load ..." >&2
"$FLAMED_VICTIMS/victim_known_chain" 8000 &
load=$!
trap 'kill "$load" 2>/dev/null || true' EXIT
"$build/test/bench/ingest/ingest_bench" 5 200 >"$out/ingest.json"
wait "$load" || true
echo "store: a synthetic day ..." >&2
"$build/test/bench/store/store_bench" >"$out/store.json"
echo "clients: 3 times $clients_seconds s ..." >&2
python3 test/bench/clients/clients_bench.py "$FLAMED_BINARY" "$FLAMED_VICTIMS/victim_known_chain" "$clients_seconds" \
  >"$out/clients.json"
echo "questions: $question_minutes minutes of 64 synthetic CPUs ..." >&2
"$build/test/bench/questions/questions_bench" "$question_minutes" >"$out/questions.json"
python3 test/bench/report.py "$out" | tee ${write:+"$write"}
