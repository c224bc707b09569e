#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ends flamed by SIGKILL at so many random moments, all with one history on disk, while programs begin and end.

    kill_bench.py FLAMED FOLDER [kills] [seconds]      (default 200; 12: the longest run, but one in ten has up to 90)

A third is killed within 1.5 s of its start; each other one must answer first. At the end every minute on disk must be
whole. Prints one JSON object: how long the first answers took, and what a kill cost: the time between its moment and
the end of the last minute on disk, or all of a run that had none. Needs root.
"""

import glob
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request

ADDRESS = "127.0.0.1:9741"
LONG_S = 90
PATIENCE_S = 60


def answers(target):
    with urllib.request.urlopen(f"http://{ADDRESS}{target}", timeout=PATIENCE_S) as answer:
        return json.load(answer)


def first_answer(daemon):
    """Seconds until the first answer that reaches into the history."""
    began = time.monotonic()
    while time.monotonic() - began < PATIENCE_S:
        if daemon.poll() is not None:
            raise SystemExit(f"flamed ended by itself: {daemon.returncode}")
        try:
            answers("/processes?from=now-10m")
            return time.monotonic() - began
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.02)
    raise SystemExit(f"no answer within {PATIENCE_S} s")


def newest_end(folder):
    """Seconds since the epoch. Read from a copy, so that the daemon finds its log as the kill left it."""
    newest = sorted(glob.glob(folder + "/history-*.db"))[-1:]
    if not newest:
        return None
    copy = folder + "-copy"
    subprocess.run(["rm", "-rf", copy], check=True)
    os.mkdir(copy)
    for path in glob.glob(newest[0] + "*"):
        subprocess.run(["cp", path, copy], check=True)
    with sqlite3.connect(os.path.join(copy, os.path.basename(newest[0]))) as database:
        try:
            end = database.execute("SELECT max(wall_end_ns) FROM minute").fetchone()[0]
        except sqlite3.OperationalError:  # killed before it had tables
            return None
    return end / 1e9 if end is not None else None


def main():
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    flamed, folder = sys.argv[1:3]
    kills = int(sys.argv[3]) if len(sys.argv) > 3 else 200
    short_s = float(sys.argv[4]) if len(sys.argv) > 4 else 12
    load = subprocess.Popen(["sh", "-c", "while :; do head -c 3000000 /dev/urandom | gzip > /dev/null; done"],
                            start_new_session=True)
    first_s, lost_s = [], []
    damaged = 0
    try:
        for number in range(kills):
            daemon = subprocess.Popen([flamed, "--history", folder, "--listen", ADDRESS, "--log-level", "error"])
            while_it_starts = number % 3 == 0
            run_s = random.uniform(0, 1.5 if while_it_starts else LONG_S if number % 10 == 8 else short_s)
            began = time.monotonic()
            if not while_it_starts:
                first_s.append(first_answer(daemon))
                history = [one for one in answers("/healthz")["components"] if one["name"] == "history"]
                damaged += sum(1 for one in history if not one["ok"])
            time.sleep(max(0, run_s - (time.monotonic() - began)))
            daemon.send_signal(signal.SIGKILL)
            daemon.wait()
            killed, ran_s = time.time(), time.monotonic() - began
            # What it lost is no more than it ran.
            end = newest_end(folder)
            lost_s.append(min(ran_s, killed - end) if end is not None else ran_s)
    finally:
        os.killpg(load.pid, signal.SIGTERM)
        load.wait()
    check = subprocess.run([flamed, "--history", folder, "--check-history"], stdout=subprocess.PIPE, text=True,
                           check=False)
    print(json.dumps({
        "kills": len(lost_s),
        "check_history": check.returncode,
        "said": check.stdout.splitlines()[-3:],
        "starts_with_a_history_that_was_not_ok": damaged,
        "worst_lost_s": round(max(lost_s), 1),
        "worst_first_answer_s": round(max(first_s), 2),
        "median_first_answer_s": round(sorted(first_s)[len(first_s) // 2], 2),
    }, indent=2))
    return 0 if check.returncode == 0 and damaged == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
