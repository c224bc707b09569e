# SPDX-License-Identifier: Apache-2.0
"""The other tools, each used as its manual says, with the same frequency, load and seconds. Their cost is the CPU time
of their processes, from the start until there are stacks with names."""

import os
import re
import shutil
import signal
import statistics
import subprocess
import time

from support.bpf import Loaded
from support.group import Group

HERTZ = 99
LIMIT_S = 30  # for its report, after its seconds of sampling Debuginfod servers on the network would change the
# measurement.
ENVIRONMENT = {**os.environ, "DEBUGINFOD_URLS": ""}


class Peer:
    def __init__(self, name, shown, command, then=None):
        self.name, self.shown, self.command, self.then = name, shown, command, then


def peers(seconds, folder):
    data = os.path.join(folder, "perf.data")
    record = ["perf", "record", "-F", str(HERTZ), "-a", "-o", data]
    script = ["perf", "script", "-i", data]
    stop = f"interval:s:{seconds} {{ exit(); }}"
    return [
        Peer("perf -g", "`perf record -F 99 -a -g`, then `perf script`", [*record, "-g", "sleep", str(seconds)], script),
        Peer("perf dwarf", "`perf record -F 99 -a --call-graph dwarf`, then `perf script`",
             [*record, "--call-graph", "dwarf", "sleep", str(seconds)], script),
        Peer("bcc", "`profile` of bcc", ["profile-bpfcc", "-F", str(HERTZ), "-f", str(seconds)]),
        Peer("bpftrace", "`bpftrace -e 'profile:hz:99 { @[ustack, kstack, comm] = count(); }'`",
             ["bpftrace", "-e", f"profile:hz:{HERTZ} {{ @[ustack, kstack, comm] = count(); }} {stop}"]),
    ]


def measure_often(peer, daemon, seconds, runs):
    """The medians of several runs: in the first one flamed builds the tables of the tool's own programs, and a single
    disturbed run must not become the figure. A report that is cut off is not repeated."""
    found = []
    while len(found) < runs:
        found.append(measure(peer, daemon, seconds))
        if "skipped" in found[-1] or not found[-1]["complete"]:
            return found[-1]
    return median_of(found)


def median_of(results):
    """The median of each number; the rest is the last run's."""
    return {key: value if isinstance(value, (bool, str)) else statistics.median(result.get(key, value) for result in results)
            for key, value in results[-1].items()}


def measure(peer, daemon, seconds):
    """The cost of the tool, and of flamed at the same time, for this many seconds of sampling."""
    if shutil.which(peer.command[0]) is None:
        return {"name": peer.name, "shown": peer.shown, "skipped": f"there is no {peer.command[0]} here"}
    result = {"name": peer.name, "shown": peer.shown, "seconds": seconds}
    with Group("peer") as group:
        options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True, "env": ENVIRONMENT}
        own, began = daemon.group.cpu_seconds(), time.monotonic()
        result["complete"], status, said = run(group, peer.command, options, seconds + LIMIT_S)
        took = time.monotonic() - began
        result["flamed"] = (daemon.group.cpu_seconds() - own) * seconds / took
        if result["complete"] and status != 0:
            words = [line for line in said.strip().splitlines() if line]
            return {**result, "skipped": words[-1][:200] if words else f"ended with status {status}"}
        result["recorded"] = group.cpu_seconds()
        samples = re.search(r"\((\d+) samples\)", said)
        if samples:
            result["samples"] = int(samples[1])
        if peer.then:
            result["complete"] = run(group, peer.then, options, LIMIT_S)[0]
        result["whole"] = group.cpu_seconds()
    return result


def run(group, command, options, limit_s):
    """Whether it ended, its status, its output."""
    child = group.start(command, **options)
    try:
        said = child.communicate(timeout=limit_s)[1]
        return True, child.returncode, said
    except subprocess.TimeoutExpired:
        child.kill()
        return False, None, child.communicate()[1]


def measure_nothing(context, hertz, seconds):
    """The lower bound: an empty program on the same timers. The time that the kernel's statistics show for it is their
    own cost."""
    loaded = Loaded()
    with Group("nothing") as group:
        child = group.start([context.built("test/bench/probes/nothing_sampler"), str(hertz)], stdout=subprocess.PIPE, text=True)
        child.stdout.readline()
        before = loaded.runs()
        time.sleep(seconds)
        after = loaded.runs()
        used = group.cpu_seconds()
        child.send_signal(signal.SIGTERM)
        child.wait()
    runs = after[0] - before[0]
    return {"runs": runs, "ns_per_run": (after[1] - before[1]) / runs * 1e9 if runs else None, "process_seconds": used}
