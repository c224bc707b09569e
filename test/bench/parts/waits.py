# SPDX-License-Identifier: Apache-2.0
"""How near the waiting time by reason is to what is known of programs that wait in a known way, at the default pace."""

import os
import subprocess
import tempfile
import time

from parts.part import Part
from support.daemon import Daemon
from support.figures import table

SECONDS = 60
# Of test/kernel/victims/waits.c, and for which reason each of its threads waits, except while it sleeps.
VICTIMS = {"sleeps": "poll", "mutex": "lock", "pipe": "pipe", "fsync": "disk", "faults": "page_fault",
           "starved": "run_queue", "pool": "poll", "workers": "condition"}
TITLES = {"sleeps": "sleeps for 3 ms, then waits in poll for 7 ms", "mutex": "three threads want a mutex that another one holds for 8 of 10 ms",
          "pipe": "two threads send each other a byte", "fsync": "writes a page and syncs it",
          "faults": "reads a mapped file that is not in memory", "starved": "four threads compute on one CPU",
          "pool": "three threads wait for work in epoll_wait, one gets some", "workers": "of four threads of a pool one works"}
# A wait is stored when the thread is found in another one, or has ended; and a request sees what is a second old.
AFTERWARDS_S = 3


class Waits(Part):
    name = "waits"
    about = "programs that wait in a known way, one after the other"
    by_default = False

    def measure(self, how):
        seconds = SECONDS if not how.is_quick else 5
        with Daemon(how.flamed, "--waits", "on") as daemon:
            wait_for_a_round(daemon)
            return {"seconds": seconds, "delayacct": delayacct(), "victims": {
                kind: compare(daemon, how, kind, seconds) for kind in VICTIMS}}

    def section(self, results, aims):
        text = f"""## Waiting

With `waits` on, a fixed share of CPU time goes to visits of waiting threads and to their stacks: 0.02 % of each CPU, at
least 0.04 % of one, and 0.02 % of one for the stacks of threads that have waited for long. Measured beside a daemon without
it (`test/bench/waits/daemon_cost.py`, 2 CPUs, other work on them; from [note 26](design/0026-waiting.md), not by the runs of this
page): 0.094 % of one CPU in the first three minutes beside 20,000 sleeping threads and 0.044 % later; 0.021 to 0.029 %
beside 1,000 threads."""
        waits = results.get(self.name)
        if waits is None:
            return text
        for kind, victim in waits["victims"].items():
            for reason, (truth, found) in victim["reasons"].items():
                aims.judge(f"waits, {kind}: {reason}, found of what is known, %", "90 – 110",
                           f"{100 * found / truth:.1f}", 0.9 <= found / truth <= 1.1)
        account = "on" if waits["delayacct"] else "off"
        return text + f"""

Programs that wait in a known way, {waits["seconds"]} s each, at the default pace: seconds by the kernel's accounts and the program's own clock, and
by flamed. What a thread waited before its first visit and after its last one is missing, a second or two of each.
`kernel.task_delayacct` was {account}.

""" + table(("program", "reason", "known, s", "by flamed, s", "share, %"),
            [(TITLES[kind], reason, f"{truth:.1f}", f"{found:.1f}", f"{100 * found / truth:.1f}")
             for kind, victim in waits["victims"].items() for reason, (truth, found) in victim["reasons"].items()])


def delayacct():
    try:
        with open("/proc/sys/kernel/task_delayacct", encoding="ascii") as file:
            return file.read().strip() != "0"
    except FileNotFoundError:
        return False


def wait_for_a_round(daemon):
    until = time.monotonic() + 120
    while time.monotonic() < until:
        parts = daemon.get_json("/healthz")["components"]
        if any(part["name"] == "waits" and "round" in part["detail"] for part in parts):
            return
        time.sleep(1)
    raise RuntimeError("no round over all threads came to its end")


def compare(daemon, how, kind, seconds):
    """By reason what is known and what flamed found, in seconds, of all threads that tell."""
    # Not in a file system in memory.
    with tempfile.TemporaryDirectory(dir=how.build) as folder:
        victim = subprocess.Popen([os.path.join(how.victims, "victim_waits"), kind, str(seconds)], cwd=folder,
                                  stdout=subprocess.PIPE, text=True)
        try:
            began = time.time()
            said = {}
            for line in victim.stdout:
                if line == "end\n":
                    break
                tid, *times = map(int, line.split())
                said[tid] = [ns / 1e9 for ns in times]
            time.sleep(AFTERWARDS_S)
            threads = daemon.get_json(f"/threads?measure=wait&idle=show&pid={victim.pid}&from={began - 1:.3f}")["threads"]
        finally:
            victim.kill()
            victim.wait()
    return {"threads": len(said), "reasons": by_reason(kind, said, threads)}


def by_reason(kind, said, threads):
    """`said`, by tid: seconds of waiting, in run queues, of chosen sleep, and for block devices if the kernel counts."""
    known = {}
    for waited, queued, slept, *_ in said.values():
        add(known, "run_queue" if kind == "starved" else VICTIMS[kind], queued if kind == "starved" else waited - slept)
        add(known, "sleep", slept)
    found = {}
    for thread in threads:
        if thread["tid"] in said:
            for reason, waited in thread["waits"].items():
                add(found, reason, waited)
    return {reason: (truth, found.get(reason, 0)) for reason, truth in known.items() if truth > 0.5}


def add(sums, key, value):
    sums[key] = sums.get(key, 0) + value


PARTS = [Waits()]
