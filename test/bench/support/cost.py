# SPDX-License-Identifier: Apache-2.0
"""Measures what flamed costs on a load, and what the load loses by it.

The load runs all the time. Intervals without flamed and with it alternate in blocks of four: without, with, with,
without, so that a machine that becomes slower or faster does so for both. flamed is started for each block anew and has
time to settle before it counts. All is read from outside: CPU time from its control group, that of the kernel program
from the kernel's statistics, less what these make of a program that does nothing.
"""

import re
import statistics
import tempfile
import time

from support import machine, peers
from support.daemon import Daemon, difference

HERTZ = 99
LONGEST_SETTLING_S = 60
MISSED = 'flamed_samples_truncated_total{reason="rows_pending"}'  # walks that ended for lack of a table
DRAIN_S = 3.5  # after this time an answer has every sample taken


def measure(load_type, context, with_peers=True, blocks=None, extra_s=0):
    with machine.KernelStatistics(), load_type(context) as load:
        result = {"name": load.name, "title": load.title, "interval_s": context.interval_s,
                  "load_average": [machine.load_average()], "pairs": [], "intervals": [], "interrupts_without": []}
        with load.running():
            result["nothing"] = peers.measure_nothing(context, HERTZ, max(2, context.interval_s))
        for _ in range(context.blocks if blocks is None else blocks):
            measure_block(load, context, result)
        with Daemon(context.flamed, *context.at(HERTZ)) as daemon:
            settle(daemon, load, context)
            result["system_calls_per_second"] = under(load, lambda: daemon.system_calls_per_second(
                context.built("test/bench/probes/system_call_counter"), max(1, context.peer_s // 2)))
            result["stacks"] = measure_stacks(daemon, load, context)
            if with_peers:
                with tempfile.TemporaryDirectory(prefix="flamed-bench-") as folder:
                    result["peers"] = [
                        under(load, lambda one=peer: peers.measure_often(one, daemon, context.peer_s, context.peer_runs))
                        for peer in peers.peers(context.peer_s, folder)]
            if extra_s:
                under(load, lambda: time.sleep(extra_s))
            read_memory(daemon, result)
        result["load_average"].append(machine.load_average())
    return result


def measure_within_budget(load_type, context):
    """With default settings, so that the budget may lower the frequency. After that has settled: flamed's cost and
    frequency, and whether it still accounts for all CPU time of the load."""
    with machine.KernelStatistics(), load_type(context) as load:
        with load.running():
            nothing = peers.measure_nothing(context, HERTZ, max(2, context.interval_s))
        result = {"nothing": nothing, "intervals": [], "pairs": [], "interrupts_without": [], "frequencies": []}
        with Daemon(context.flamed) as daemon:
            under(load, lambda: time.sleep(context.budget_settle_s))
            for _ in range(context.budget_intervals):
                with_daemon(daemon, load, context, result)
                result["frequencies"].append(daemon.metrics()["flamed_sampling_frequency_hertz"])
            used, begin = load.group.cpu_seconds(), time.time()
            load.interval(context.budget_intervals * context.interval_s)
            used, end = load.group.cpu_seconds() - used, time.time()
            time.sleep(DRAIN_S)
            answer = daemon.get_json(f"/profile?{load.selection()}&from={begin:.6f}&to={end:.6f}&max_nodes=1")
            result["stacks"] = {"cpu_seconds": answer["cpu_seconds"], "kernel_says": used, "quality": answer["quality"]}
        return result


def measure_idle(load_type, context):
    """On an idle machine: flamed's first seconds, and separately the steady state after them."""
    with machine.KernelStatistics(), load_type(context) as load:
        result = {"name": load.name, "title": load.title, "interval_s": context.idle_s, "nothing": {"ns_per_run": None},
                  "load_average": [machine.load_average()], "pairs": [], "interrupts_without": [], "stacks": {}}
        without(load, context, result)
        with Daemon(context.flamed, *context.at(HERTZ)) as daemon:
            result["start"] = idle_interval(daemon, context.idle_start_s)
            time.sleep(max(0, daemon.started_at + context.idle_settled_s - time.monotonic()))
            result["intervals"] = [idle_interval(daemon, context.idle_s) for _ in range(3)]
            result["system_calls_per_second"] = daemon.system_calls_per_second(
                context.built("test/bench/probes/system_call_counter"), context.idle_s)
            read_memory(daemon, result)
        result["load_average"].append(machine.load_average())
    return result


def idle_interval(daemon, seconds):
    before = daemon.reading()
    time.sleep(seconds)
    return costs(difference(before, daemon.reading()), None)


def read_memory(daemon, result):
    result["memory"] = daemon.memory()
    result["resident"] = {"seconds": time.monotonic() - daemon.started_at, "bytes": daemon.group.resident_bytes(),
                          "store_bytes": daemon.metrics().get("flamed_store_bytes", 0)}


def under(load, measure_it):
    with load.running():
        return measure_it()


def settle(daemon, load, context):
    """Waits until the helpers have built all unwind tables. Tables of large code are built after samples missed them a
    few times, so those of rarely used code much later than the rest."""
    with load.running():
        began = quiet_since = time.monotonic()
        worked = missed = 0.0
        while time.monotonic() - began < LONGEST_SETTLING_S:
            time.sleep(min(1, context.settle_s))
            reading = daemon.reading()
            worked_now, missed_now = reading["all"] - reading["daemon"], daemon.metrics().get(MISSED, 0)
            if worked_now - worked >= 0.005 or missed_now - missed > 1:
                quiet_since = time.monotonic()
                missed = missed_now
            worked = worked_now
            if time.monotonic() - began >= context.settle_s and time.monotonic() - quiet_since >= context.quiet_s:
                return


def measure_block(load, context, result):
    first = without(load, context, result)
    with Daemon(context.flamed, *context.at(HERTZ)) as daemon:
        settle(daemon, load, context)
        middle = [with_daemon(daemon, load, context, result) for _ in range(2)]
    last = without(load, context, result)
    for before, after in ((first, middle[0]), (last, middle[1])):
        # Kinds of work that share the CPUs count equally, however long a unit of each takes.
        lost = [1 - late / early for early, late in zip(before, after) if early > 0]
        if lost:
            result["pairs"].append(statistics.mean(lost))


def without(load, context, result):
    interrupts, began = machine.interrupts(), time.monotonic()
    rates = load.interval(context.interval_s)
    result["interrupts_without"].append((machine.interrupts() - interrupts) / (time.monotonic() - began))
    return rates


def with_daemon(daemon, load, context, result):
    before = daemon.reading()
    rates = load.interval(context.interval_s)
    result["intervals"].append(costs(difference(before, daemon.reading()), result["nothing"]["ns_per_run"]))
    return rates


def costs(used, nothing_ns):
    """An interval's figures. CPU time is in seconds per second that a CPU was busy."""
    seconds, busy, runs = used["time"], max(used["busy"], 1e-9), used["runs"]
    kernel = max(0.0, used["run_seconds"] - runs * (nothing_ns or 0) / 1e9)
    return {
        "seconds": seconds,
        "busy_cpus": busy / seconds,
        "kernel": kernel / busy,
        "user": used["all"] / busy,
        "whole": (kernel + used["all"]) / busy,
        "whole_of_a_core": (kernel + used["all"]) / seconds,
        "daemon": used["daemon"] / busy,
        "workers": used["workers"] / busy,
        "threads": {name: time_used / busy for name, time_used in used["threads"].items() if time_used > 0},
        "ns_per_sample": kernel / runs * 1e9 if runs else None,
        "user_ns_per_sample": used["all"] / runs * 1e9 if runs else None,
        "samples_per_second": runs / seconds,
        "interrupts_per_second": used["interrupts"] / seconds,
        "wake_ups_per_second": used["given"] / seconds,
        "preemptions_per_second": used["taken"] / seconds,
    }


def measure_stacks(daemon, load, context):
    """The share of the load's whole stacks, and of the kernel's CPU time for the load that flamed sees."""
    used, begin = load.group.cpu_seconds(), time.time()
    load.interval(context.interval_s)
    used, end = load.group.cpu_seconds() - used, time.time()
    time.sleep(DRAIN_S)
    status, headers, text = daemon.ask(f"/profile?{load.selection()}&from={begin:.6f}&to={end:.6f}&format=folded")
    found = re.match(r"samples=(\d+), truncated=(\d+)", headers.get("Flamed-Quality", ""))
    if status != 200 or not found:
        return {"problem": text.strip()[:300]}
    guessed = re.search(r"guessed=(\d+)", headers["Flamed-Quality"])
    samples, truncated = int(found[1]), int(found[2]) + (int(guessed[1]) if guessed else 0)
    return {"samples": samples, "whole_share": (samples - truncated) / samples if samples else None,
            "cpu_seconds": samples / HERTZ, "kernel_says": used}
