#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the costs of two builds of flamed on the same load at the same time.

    compare_builds.py [--load servers|build] [--runs N] [--seconds S] BEFORE AFTER

BEFORE and AFTER are build directories. In each of N runs (9) both daemons are started, once this one first and once that,
have time to settle, and are measured over the same S seconds (40), so that whatever else the machine does falls on both.
What counts is the CPU time of each one's control group and of its kernel program. Nothing else should be started meanwhile:
programs that end are work. Prints the ratio after / before of each run (the geometric mean of both orders), their median,
and a 95 % interval of the median by the order of the runs' ratios. Needs root.
"""

import argparse
import dataclasses
import math
import os
import statistics
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from loads.build import Build  # noqa: E402
from loads.servers import Servers  # noqa: E402
from support import context, cost, machine  # noqa: E402
from support.daemon import Daemon  # noqa: E402

PAUSE_S = 12
LOADS = {"servers": Servers, "build": Build}
# A build load always starts programs without rows, so there is nothing to wait for.
SETTLING = {"servers": {"settle_s": 25, "quiet_s": 8}, "build": {"settle_s": 20, "quiet_s": 0}}


def median_interval(values):
    """The closest pair of ordered values that has the true median in between with 95 %, or the range if there are too
    few."""
    ordered, count = sorted(values), len(values)
    outside, rank = 0.0, 0
    while outside + math.comb(count, rank) / 2**count <= 0.025 and rank < count // 2:
        outside += math.comb(count, rank) / 2**count
        rank += 1
    rank = max(rank - 1, 0)
    return ordered[rank], ordered[count - 1 - rank]


def settle(one, two, load, how):
    cost.settle(one, load, how)
    cost.settle(two, load, dataclasses.replace(how, settle_s=1))


def readings(daemons):
    return [(daemon.group.cpu_seconds(), time.monotonic()) for daemon in daemons]


def measure(load, how, seconds, first, second):
    """Each build's CPU seconds per second: of its processes, and of its kernel program."""
    with Daemon(first, *how.at(cost.HERTZ)) as one, Daemon(second, *how.at(cost.HERTZ)) as two:
        daemons = one, two
        # Programs loaded after the first build's are the second's.
        for kind in ("prog", "map"):
            one.loaded.others[kind] |= {entry["id"] for entry in two.loaded.entries(kind)}
        settle(one, two, load, how)
        programs, began = [daemon.loaded.runs()[1] for daemon in daemons], time.monotonic()
        # bpftool has just ended. flamed must process that, and name its samples, before the measurement.
        load.interval(PAUSE_S)
        before = readings(daemons)
        load.interval(seconds)
        after = readings(daemons)
        programs = [(daemon.loaded.runs()[1] - used) / (time.monotonic() - began)
                    for daemon, used in zip(daemons, programs)]
        return [((used[0] - used_before[0]) / (used[1] - used_before[1]), program)
                for used_before, used, program in zip(before, after, programs)]


def main():
    parser = argparse.ArgumentParser(prog="compare_builds.py")
    parser.add_argument("--load", choices=sorted(LOADS), default="servers")
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("before")
    parser.add_argument("after")
    options = parser.parse_args()
    programs = [os.path.abspath(os.path.join(build, "flamed")) for build in (options.before, options.after)]
    how = context.Context(options.before, **SETTLING[options.load])
    ratios = {"processes": [], "kernel program": [], "whole": []}
    with machine.KernelStatistics(), LOADS[options.load](how) as load:
        for run in range(options.runs):
            # The second sampler on a CPU pays less or more than the first, so each run has both orders.
            both = [measure(load, how, options.seconds, *programs), measure(load, how, options.seconds, *programs[::-1])]
            pairs = [both[0], both[1][::-1]]
            for name, value in (("processes", lambda used: used[0]), ("kernel program", lambda used: used[1]),
                                ("whole", sum)):
                ratios[name].append(math.sqrt(math.prod(value(after) / value(before) for before, after in pairs)))
            print(f"run {run + 1}: " + ", ".join(f"{name} {values[-1]:.3f}" for name, values in ratios.items())
                  + f" (before: {1000 * pairs[0][0][0]:.3f} and {1000 * pairs[0][0][1]:.3f} ms a second,"
                  f" load average {machine.load_average():.1f})", flush=True)
    for name, values in ratios.items():
        low, high = median_interval(values)
        print(f"{options.load}, {name}: after / before {statistics.median(values):.3f}, 95 % from {low:.3f} to {high:.3f}"
              f" ({len(values)} runs)")


if __name__ == "__main__":
    main()
