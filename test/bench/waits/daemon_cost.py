#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `waits` costs: the daemon's CPU time by its threads, with the setting on and off at the same time, beside
threads that sleep and threads that wake a thousand times a second. One JSON object on stdout. Needs root.

    daemon_cost.py FLAMED [sleeping threads] [active threads] [seconds]      (default 20000, 0, 60)
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
import sys, threading, time
threading.stack_size(65536)
def active():
    while True: time.sleep(0.001)
def asleep(lock=threading.Lock()):
    time.sleep(100000)
for count, body in ((int(sys.argv[1]), asleep), (int(sys.argv[2]), active)):
    for _ in range(count): threading.Thread(target=body, daemon=True).start()
print("ready", flush=True)
time.sleep(100000)
"""


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


def measure(binary, sleeping, active, seconds):
    load = subprocess.Popen([sys.executable, "-c", THREADS, str(sleeping), str(active)], stdout=subprocess.PIPE)
    try:
        load.stdout.readline()
        with Daemon(binary, "--waits", "on") as on, Daemon(binary, "--waits", "off") as off:
            # The first round leaves a record of every thread.
            time.sleep(30 + sleeping / 100)
            before = [costs(on), costs(off)]
            began = time.monotonic()
            time.sleep(seconds)
            took = time.monotonic() - began
            after = [costs(on), costs(off)]
            percent = [{name: round(100 * (end.get(name, 0) - begin.get(name, 0)) / took, 4) for name in end}
                       for begin, end in zip(before, after)]
            health = json.loads(on.ask("/healthz")[2])
            detail = next(part["detail"] for part in health["components"] if part["name"] == "waits")
            return {"percent_of_a_core": {"on": percent[0], "off": percent[1],
                                          "more": round(sum(percent[0].values()) - sum(percent[1].values()), 4)},
                    "waits": detail}
    finally:
        load.kill()
        load.wait()


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    numbers = [int(argument) for argument in sys.argv[2:]] + [20000, 0, 60][len(sys.argv) - 2:]
    print(json.dumps(measure(sys.argv[1], *numbers), indent=2))


if __name__ == "__main__":
    main()
