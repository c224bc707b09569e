# SPDX-License-Identifier: Apache-2.0
"""How soon after its start flamed samples, and how soon stacks are whole, with 200 processes that already run."""

import re
import shutil
import statistics
import time

from loads.load import Load
from parts.part import Part
from support.cost import DRAIN_S
from support.daemon import Daemon
from support.figures import between, percent, spread, table

PROCESSES = 200
# The processes' programs: a little work, then a second of sleep. Interpreters, for their many libraries.
PROGRAMS = (
    ("/bin/sh", "-c", "while :; do i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done; sleep 1; done"),
    ("/bin/bash", "-c", "while :; do for ((i = 0; i < 2000; i++)); do :; done; sleep 1; done"),
    ("/usr/bin/perl", "-e", "while (1) { for (1 .. 60000) { $x += $_ } select(undef, undef, undef, 1) }"),
    ("/usr/bin/awk", "BEGIN { while (1) { for (i = 0; i < 60000; i++) x += i; system(\"sleep 1\") } }"),
    ("/usr/bin/python3", "-c", "import time\nwhile True:\n  sum(range(200000)); time.sleep(1)"),
)
SECONDS = 10
# Temporary reasons: the process or its files' rows are not in the tables yet.
NOT_YET = ("the process had only just begun", "unwind rows not ready", "address outside of all known code")
WHOLE_ENOUGH = 0.01
# "comm (pid);[truncated: why];function;function 12"
FOLDED = re.compile(r"^[^;]* \((\d+)\)(?:;\[truncated: ([^\]]*)\])?.* (\d+)$")


class ManyProcesses(Load):
    name = "processes"
    title = f"{PROCESSES} processes of five programs that work a little every second"
    warm_up_s = 5

    def start(self):
        programs = [program for program in PROGRAMS if shutil.which(program[0])]
        for i in range(PROCESSES):
            self.group.start(programs[i % len(programs)])
            time.sleep(1 / PROCESSES)


class Start(Part):
    name = "start"
    about = f"flamed's start beside {PROCESSES} processes"

    def measure(self, how):
        seconds = SECONDS if not how.is_quick else 3
        with ManyProcesses(how) as load:
            return {"processes": PROCESSES, "seconds": seconds,
                    "starts": [measure_start(how, seconds, load) for _ in range(3 if not how.is_quick else 1)]}

    def section(self, results, aims):
        start = results.get(self.name)
        if start is None:
            return ""
        firsts = [one["first_sample_s"] for one in start["starts"] if one["first_sample_s"] is not None]
        ready = [one["tables_s"] for one in start["starts"]]
        aims.at_most(f"start: first sample after exec, ms, {PROCESSES} processes", 300,
                     1000 * statistics.median(firsts) if firsts else None, 0)
        aims.at_most("start: seconds until tables are built", 5, statistics.median(ready), 0)
        rows = []
        for second in range(start["seconds"]):
            windows = [one["windows"][second] for one in start["starts"]]
            rows.append((f"{second} – {second + 1}", f"{statistics.median(window['samples'] for window in windows):.0f}",
                         *(percent(statistics.median(window[key] / max(1, window["samples"]) for window in windows))
                           for key in ("whole", "not_yet"))))
        used = statistics.median(one["cpu_seconds"] for one in start["starts"])
        others = [sum(window["others"] for window in one["windows"]) for one in start["starts"]]
        late = [sum(window["others_not_yet"] for window in one["windows"]) for one in start["starts"]]
        return f"""## Start

flamed starts while {start["processes"]} processes run, of five programs that each work a little every second; {len(start["starts"])} starts. From its exec to its first
sample: {between(spread(firsts), 0, 1000) if firsts else "–"} ms. The second from which on at most {100 * WHOLE_ENOUGH:.0f} % of these processes' samples lack tables (of the process or of a file's rows): {between(spread(ready), 0)}.
Later processes, such as each `sleep` of these programs, do not count: they get tables after their first sample, and most end before ({statistics.median(others):.0f} samples, {statistics.median(late):.0f} of them without).
All of this cost {used:.2f} s of CPU time in the {start["seconds"]} s.

""" + table(("second", "samples", "whole, %", "without tables yet, %"), rows)


def measure_start(how, seconds, load):
    # Some are about to end. What they start next has another pid.
    ran = set(load.group.pids())
    with Daemon(how.flamed) as daemon:
        begin = daemon.process.exec_at
        time.sleep(max(0, begin + seconds + DRAIN_S - time.time()))
        used = daemon.group.cpu_seconds()
        text = daemon.ask(f"/profile?from={begin:.6f}&to={begin + 3:.6f}&format=perf-script")[2]
        times = [float(found[1]) for found in re.finditer(r"^\S.*\] (\d+\.\d+):", text, re.M)]
        windows = [window(daemon.ask(f"/profile?from={begin + second:.6f}&to={begin + second + 1:.6f}&format=folded")[2], ran)
                   for second in range(seconds)]
    return {"first_sample_s": min(times) - begin if times else None, "tables_s": ready_after(windows),
            "cpu_seconds": used, "windows": windows}


def window(folded, ran):
    """For one second: the samples of processes that ran when flamed began, and of others."""
    counts = dict.fromkeys(("samples", "whole", "not_yet", "others", "others_not_yet"), 0)
    for found in map(FOLDED.match, folded.splitlines()):
        if found is None:
            continue
        kind, not_yet = ("samples", "not_yet") if int(found[1]) in ran else ("others", "others_not_yet")
        counts[kind] += int(found[3])
        counts[not_yet] += int(found[3]) * (found[2] in NOT_YET)
        if kind == "samples":
            counts["whole"] += int(found[3]) * (found[2] is None)
    return counts


def ready_after(windows):
    """After how many seconds all later samples together were whole enough."""
    for second in range(len(windows)):
        rest = windows[second:]
        if sum(one["not_yet"] for one in rest) <= WHOLE_ENOUGH * sum(one["samples"] for one in rest):
            return second
    return len(windows)


PARTS = [Start()]
