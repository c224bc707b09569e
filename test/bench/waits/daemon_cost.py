#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `waits` costs: the daemon's CPU time by its threads, with the setting on and off at the same time, beside
threads that sleep, threads that wake a thousand times a second, and ordinary ones, which wake every five seconds on
average. Once while the first round is under way, and once when it is over. One JSON object on stdout. Needs root.

    daemon_cost.py FLAMED [sleeping threads] [active] [ordinary] [seconds]      (default 20000, 0, 0, 100)
"""

import json
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support.daemon import Daemon
from support.group import cpu_seconds_by_thread

THREADS = """
import random, sys, threading, time
threading.stack_size(65536)
def asleep():
    time.sleep(100000)
def active():
    while True: time.sleep(0.001)
def ordinary():
    while True: time.sleep(random.uniform(0, 10))
for count, body in zip(map(int, sys.argv[1:]), (asleep, active, ordinary)):
    for _ in range(count): threading.Thread(target=body, daemon=True).start()
print("ready", flush=True)
time.sleep(100000)
"""
# Their stacks are then among those that may be read later: FLAMED_OLD_WAIT_NS.
LONG_AGO = 12


def children_of(pid):
    found = subprocess.run(["pgrep", "-P", str(pid)], stdout=subprocess.PIPE, text=True, check=False)
    return [int(child) for child in found.stdout.split()]


def costs(daemon):
    """CPU seconds so far: by thread of the daemon, and of its helpers."""
    pid = daemon.process.pid
    sums = dict(cpu_seconds_by_thread(pid))
    for child in children_of(pid):
        for name, seconds in cpu_seconds_by_thread(child).items():
            sums[name] = sums.get(name, 0) + seconds
    return sums


def waits_of(daemon):
    health = json.loads(daemon.ask("/healthz")[2])
    return next(part["detail"] for part in health["components"] if part["name"] == "waits")


def costs_over(daemons, seconds):
    before = [costs(daemon) for daemon in daemons]
    began = time.monotonic()
    time.sleep(seconds)
    after = [costs(daemon) for daemon in daemons]
    took = time.monotonic() - began
    on, off = ({name: round(100 * (end.get(name, 0) - begin.get(name, 0)) / took, 4) for name in end}
               for begin, end in zip(before, after))
    return {"percent_of_a_core": {"on": on, "off": off, "more": round(sum(on.values()) - sum(off.values()), 4)},
            "waits": waits_of(daemons[0])}


def measure(binary, sleeping, active, ordinary, seconds):
    load = subprocess.Popen([sys.executable, "-c", THREADS, str(sleeping), str(active), str(ordinary)],
                            stdout=subprocess.PIPE)
    try:
        load.stdout.readline()
        time.sleep(LONG_AGO)
        with Daemon(binary, "--waits", "on") as on, Daemon(binary, "--waits", "off") as off:
            time.sleep(5)  # both read what runs
            first = costs_over((on, off), seconds)
            while "round" not in waits_of(on):
                time.sleep(1)
            return {"first_round": first, "later": costs_over((on, off), seconds)}
    finally:
        load.kill()
        load.wait()


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    numbers = [int(argument) for argument in sys.argv[2:]] + [20000, 0, 0, 100][len(sys.argv) - 2:]
    print(json.dumps(measure(sys.argv[1], *numbers), indent=2))


if __name__ == "__main__":
    main()
