#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What one flamed costs beside another: two builds on the same load at the same time.

    compare_builds.py [--load servers|build] [--runs N] [--seconds S] BEFORE AFTER

BEFORE and AFTER are build directories. In each of N runs (9) both daemons are started, in turn which of them first, have
time to settle, and are measured over the same S seconds (20), so that whatever else the machine does falls on both. What
counts is the CPU time of each one's control group and of its kernel program. Prints the ratios after / before of all runs,
their median, and a 95 % interval of the median by the order of the runs' ratios. Needs root.
"""

import argparse
import math
import os
import statistics
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from loads.build import Build  # noqa: E402
from loads.servers import Servers  # noqa: E402
from support import context, cost, machine  # noqa: E402
from support.daemon import Daemon, difference  # noqa: E402

LOADS = {"servers": Servers, "build": Build}


def median_interval(values):
    """The closest pair of ordered values between which the true median lies with 95 %, or all where there are too few."""
    ordered, count = sorted(values), len(values)
    outside, rank = 0.0, 0
    while outside + math.comb(count, rank) / 2**count <= 0.025 and rank < count // 2:
        outside += math.comb(count, rank) / 2**count
        rank += 1
    rank = max(rank - 1, 0)
    return ordered[rank], ordered[count - 1 - rank]


def measure(load, how, seconds, first, second):
    """Each one's CPU seconds: of its processes, of its kernel program, and samples."""
    with Daemon(first, *how.at(cost.HERTZ)) as one, Daemon(second, *how.at(cost.HERTZ)) as two:
        # The second's programs came after the first's and are not the first's.
        ids = {kind: {entry["id"] for entry in two.loaded.entries(kind)} for kind in ("prog", "map")}
        for kind, numbers in ids.items():
            one.loaded.others[kind] |= numbers
        cost.settle(one, load, how)
        cost.settle(two, load, how)
        before = one.reading(), two.reading()
        load.interval(seconds)
        return [difference(begin, daemon.reading()) for begin, daemon in zip(before, (one, two))]


def main():
    parser = argparse.ArgumentParser(prog="compare_builds.py")
    parser.add_argument("--load", choices=sorted(LOADS), default="servers")
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("before")
    parser.add_argument("after")
    options = parser.parse_args()
    programs = [os.path.abspath(os.path.join(build, "flamed")) for build in (options.before, options.after)]
    how = context.Context(options.before, settle_s=15, quiet_s=6)
    ratios = {"processes": [], "kernel program": [], "whole": []}
    with machine.KernelStatistics(), LOADS[options.load](how) as load:
        for run in range(options.runs):
            swap = run % 2 == 1
            used = measure(load, how, options.seconds, *(reversed(programs) if swap else programs))
            before, after = reversed(used) if swap else used
            ratios["processes"].append(after["all"] / before["all"])
            ratios["kernel program"].append(after["run_seconds"] / before["run_seconds"])
            ratios["whole"].append((after["all"] + after["run_seconds"]) / (before["all"] + before["run_seconds"]))
            print(f"run {run + 1}: " + ", ".join(f"{name} {values[-1]:.3f}" for name, values in ratios.items())
                  + f" (before: {1000 * (before['all'] + before['run_seconds']) / before['time']:.2f} ms a second,"
                  f" load average {machine.load_average()})", flush=True)
    for name, values in ratios.items():
        low, high = median_interval(values)
        print(f"{options.load}, {name}: after / before {statistics.median(values):.3f}, 95 % from {low:.3f} to {high:.3f}"
              f" ({len(values)} runs)")


if __name__ == "__main__":
    main()
