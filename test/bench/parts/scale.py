# SPDX-License-Identifier: Apache-2.0
"""The cost of a sample in user space by the number of CPUs, processes and hours: a multiplied recording, on one
thread."""

import os
import statistics

from loads.busy import BusyWithFramePointers
from parts.part import Part
from support.figures import exponent, mib, table
from support.program import run_json

AXES = (("cpus", "CPUs"), ("processes", "processes"), ("hours", "hours"))


class Recorded(BusyWithFramePointers):
    """One thread, so that other processes can be recorded, too."""

    threads = max(1, os.cpu_count() - 1)
    depth = 40


class Replay(Part):
    name = "replay"
    about = "a recording multiplied to 256 CPUs, 10,000 processes, 24 hours, and replayed"

    def measure(self, how):
        is_quick = how.is_quick
        with Recorded(how):
            return run_json([how.built("test/bench/scale/replay_bench"), 1 if is_quick else 5, 20000 if is_quick else 400000,
                             1 if is_quick else 24], how)

    def section(self, results, aims):
        replay = results.get(self.name)
        if replay is None:
            return ""
        rows, exponents = [], {}
        for axis, shown in AXES:
            points = [(one[axis], one["ns_per_sample"]) for one in replay[axis]]
            exponents[shown] = exponent(points)
            step = 1 if axis != "hours" else max(1, len(replay[axis]) // 3)
            for one in replay[axis][step - 1::step]:
                rows.append(row(f"{one[axis]} {shown}", one))
        rows.append(row(f"{replay['processes_even']['processes']} processes with equal shares", replay["processes_even"]))
        judge(replay, exponents, aims)
        typical = statistics.median(one["ns_per_sample"] for one in replay["cpus"])
        fits = ", ".join(f"{value:+.2f} of {shown}" for shown, value in exponents.items() if value is not None)
        return f"""## A sample's path through user space

{replay["recorded_samples"]} samples of {replay["recorded_processes"]} processes recorded from the running kernel, {replay["frames_per_sample"]:.0f} frames each, {replay["distinct_stacks"]} distinct stacks;
copied to processes with pids of their own (four threads each, the n-th uses a share of 1/n) and replayed through the daemon's own code on
one thread: decode, order by time, normalise, store, the end of each minute. CPU time in ns per sample, {replay["samples_per_figure"]} samples for each figure. There are {replay["processes_while_cpus_grow"]} processes while CPUs grow, and {replay["cpus_while_processes_grow"]} CPUs while processes grow; hours are of {replay["cpus"][0]["cpus"]} CPUs, each hour's own samples.

{table(("", "decode", "normalise and store", "together", "a process's start, µs", "allocations per repeated sample", "store"), rows)}

That is {1e9 / typical / 1e6:.1f} million samples a second on one core; a busy CPU yields 99. The cost of a sample grows with the power {fits}. A repeated
sample repeats one from an earlier second of the same minute; it allocates only blocks of the log of single samples."""


def row(shown, one):
    return (shown, f"{one['decode_ns']:.0f}", f"{one['ingest_ns']:.0f}", f"{one['ns_per_sample']:.0f}",
            f"{one['enter_us_per_process']:.0f}", f"{one['allocations_per_repeated_sample']:.4f}",
            mib(one["store_bytes"]) if "store_bytes" in one else "")


def judge(replay, exponents, aims):
    worst = max(one["ns_per_sample"] for one in replay["cpus"])
    aims.at_most("user space, ns a sample, 2 to 256 CPUs", 1000, worst, 0)
    aims.at_least("samples a second on one core, millions", 1, 1e3 / worst, 2)
    allocations = max(one["allocations_per_repeated_sample"] for one in replay["cpus"])
    aims.judge("heap allocations per repeated sample", "0, except the log's blocks: < 0.005", f"{allocations:.4f}", allocations < 0.005)
    for shown, value in exponents.items():
        if value is not None:
            aims.at_most(f"cost of a sample grows with {shown} to the power", 0.1, value, 2)


class Tables(Part):
    name = "tables"
    about = "rows of 5,000 modules into the unwind tables"

    def measure(self, how):
        return run_json([how.built("test/bench/scale/tables_bench"), 200 if how.is_quick else 5000], how)

    def section(self, results, aims):
        tables = results.get(self.name)
        if tables is None:
            return ""
        fit = exponent([(step["modules"], step["ns_per_row"]) for step in tables["steps"]])
        steps = ", ".join(f"{step['ns_per_row']:.1f} ns up to {step['modules']}" for step in tables["steps"])
        return f"""## Unwind tables of many modules

{tables["modules"]} distinct modules with {tables["rows"]:,} rows, distributed as in the files of a Debian system, entered into the tables one after the
other: {tables["milliseconds"]:.0f} ms in all, {tables["microseconds_per_module"]:.0f} µs a module, {mib(tables["slab_bytes"])} of tables, {tables["refused"]} refused for lack of room. A row took {steps} modules:
it grows with their number to the power {fit:+.2f}."""


PARTS = [Replay(), Tables()]
