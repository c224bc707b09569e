# SPDX-License-Identifier: Apache-2.0
"""The costs of flamed and of other tools on each load."""

import statistics

from loads.build import Build
from loads.busy import Busy, BusyWithFramePointers, ManyThreads
from loads.idle import Idle
from loads.servers import Servers
from parts.part import Part
from support import cost, figures
from support.figures import between, mib, number, percent, spread, table

# The targets for other tools: the least ratio of their CPU time to flamed's.
TIMES_CHEAPER = {"perf -g": 20, "perf dwarf": 20, "bpftrace": 40}


class OnLoad(Part):
    has_section = False

    def __init__(self, load, with_peers=True, blocks=None):
        self.load, self.with_peers, self.blocks = load, with_peers, blocks
        self.name, self.about = load.name, f"load: {load.title}"

    def measure(self, how):
        return cost.measure(self.load, how, self.with_peers, self.blocks and min(self.blocks, how.blocks),
                            how.extra_s if self.load is Servers else 0)

    def section(self, results, aims):
        return ""


class OnBuild(OnLoad):
    """At the full frequency, whatever that costs, and with default settings."""

    def measure(self, how):
        return {**super().measure(how), "within_budget": cost.measure_within_budget(self.load, how)}


class OnIdle(OnLoad):
    def measure(self, how):
        return cost.measure_idle(self.load, how)


class Summary(Part):
    """The section about all loads. Measures nothing itself."""

    name = "loads"

    def section(self, results, aims):
        measured = [results[part.name] for part in LOADS if part.name in results and "skipped" not in results[part.name]]
        skipped = [f"- {part.name}: SKIP: {results[part.name]['skipped']}" for part in LOADS
                   if "skipped" in results.get(part.name, {})]
        if not measured:
            return ""
        judge(measured, aims)
        return "\n\n".join(filter(None, [INTRODUCTION.format(loads=load_list(measured)), cost_table(measured), thread_table(measured),
                                         activity_table(measured), memory_table(measured), throughput_table(measured),
                                         PEERS_INTRODUCTION, *map(peer_table, measured), "\n".join(skipped)]))


INTRODUCTION = """## On loads

{loads}

99 Hz on every CPU, with a CPU budget too large to lower that, and otherwise default settings. *Default budget*: all
settings are the defaults, so flamed samples less often when it would cost more than its budget, and each sample counts for
more time. Everything is measured from outside: CPU time from flamed's control group, which includes ended helpers; the
kernel program's time from the kernel's statistics (`bpf_stats_enabled`), less the time that they show for a program that
does nothing (*statistics*). Medians; in brackets the range of all intervals. CPU time is in thousandths of a percent of a
core for each busy CPU; on the idle machine of one core, after flamed has run for a minute. *At first* is the first half
minute there, from when flamed is ready: it looks up processes when it first samples them, and builds the first files'
tables."""

PEERS_INTRODUCTION = """### Compared with other tools

CPU time of processes in ms for 10 s of sampling: of the other tools from their start until they have stacks with names, and
of flamed in the same seconds on the same load. Medians of three runs each, or one run if a report was cut off. None includes
time in the kernel's interrupts. All sample at 99 Hz. flamed and `--call-graph dwarf` see whole stacks; `-g`, `profile` and
`bpftrace` walk frame pointers, which these programs do not keep."""


def load_list(measured):
    return "\n".join(f"- **{one['name']}**: {one['title']}; load average {one['load_average'][0]:.1f} before and "
                     f"{one['load_average'][1]:.1f} after" for one in measured)


def values(one, key):
    return [interval[key] for interval in one["intervals"] if interval[key] is not None]


def shown(one, key, digits=1, factor=1):
    found = values(one, key)
    return between(spread(found), digits, factor) if found else "–"


def cost_table(measured):
    rows = []
    for one in measured:
        if one["name"] == "idle":
            rows.append((one["name"], "–", "–", "–", "–", "–", "–", shown(one, "whole_of_a_core", 1, 1e5)))
            if "start" in one:  # missing in results of older benches
                rows.append((one["name"] + ", at first", "–", "–", "–", "–", "–", "–",
                             f"{1e5 * one['start']['whole_of_a_core']:.1f}"))
            continue
        rows.append(cost_row(one["name"], one))
        if "within_budget" in one:
            hertz = statistics.median(one["within_budget"]["frequencies"])
            rows.append(cost_row(f"{one['name']}, default budget: at {hertz:g} Hz", one["within_budget"]))
    return table(("load", "kernel program, ns per sample", "statistics, ns", "user space, ns per sample", "kernel program", "daemon", "helpers", "**all**"), rows)


def cost_row(name, one):
    return (name, shown(one, "ns_per_sample", 0), number(one["nothing"]["ns_per_run"], 0), shown(one, "user_ns_per_sample", 0),
            shown(one, "kernel", 1, 1e5), shown(one, "daemon", 1, 1e5), shown(one, "workers", 1, 1e5), shown(one, "whole", 1, 1e5))


def thread_table(measured):
    """flamed's threads, without those that used next to nothing."""
    names = sorted({name for one in measured for interval in one["intervals"] for name in interval["threads"]})
    shares = {one["name"]: {name: 1e5 * statistics.median(interval["threads"].get(name, 0) for interval in one["intervals"])
                            for name in names} for one in measured if one["name"] != "idle"}
    names = [name for name in names if any(used[name] >= 0.1 for used in shares.values())]
    rows = [(load, *(f"{used[name]:.1f}" for name in names)) for load, used in shares.items()]
    return "The daemon's part by thread, in the same units; medians.\n\n" + table(("load", *names), rows) if names else ""


def activity_table(measured):
    rows = []
    for one in measured:
        rows.append((one["name"], shown(one, "samples_per_second", 0), shown(one, "interrupts_per_second", 0),
                     between(spread(one["interrupts_without"]), 0), shown(one, "wake_ups_per_second", 1),
                     number(one["system_calls_per_second"]), percent(one["stacks"].get("whole_share"), 1),
                     attributed(one["stacks"])))
        if "start" in one:
            first = one["start"]
            rows.append((one["name"] + ", at first", number(first["samples_per_second"], 0), number(first["interrupts_per_second"], 0), "",
                         number(first["wake_ups_per_second"]), "", "–", "–"))
    return ("Per second, over all CPUs. *Attributed*: the load's CPU time by flamed's samples, as a share of the kernel's count for "
            "its control group.\n\n" +
            table(("load", "samples", "the machine's interrupts", "without flamed", "flamed's wake-ups", "its system calls",
                   "stacks whole, %", "attributed, %"), rows))


def attributed(stacks):
    if not stacks.get("kernel_says"):
        return "–"
    return f"{100 * stacks['cpu_seconds'] / stacks['kernel_says']:.1f}"


def memory_table(measured):
    rows = []
    for one in measured:
        memory = one["memory"]
        resident = memory["resident"]
        rows.append((one["name"], f"{one['resident']['seconds']:.0f} s", mib(resident["own"]), mib(resident["files"]),
                     mib(resident["helpers"]), mib(sum(resident.values())), mib(one["resident"]["store_bytes"]),
                     mib(memory["maps"]), mib(memory["programs"]), mib(memory["perf_buffers"])))
    return ("Memory at the end. Resident, with each page counted once: the daemon's own (including the store), its files (including "
            "mapped BPF maps and buffers), and the other pages of its helpers. In the kernel: maps (mostly unwind tables, then "
            "the rings of samples), programs, perf buffers.\n\n" +
            table(("load", "after", "own", "files and shared", "helpers", "**resident**", "store in it", "BPF maps", "BPF programs",
                   "perf buffers"), rows))


def throughput_table(measured):
    rows = []
    for one in measured:
        if not one["pairs"]:
            continue
        lost = figures.interval([100 * value for value in one["pairs"]])
        rows.append((one["name"], lost["n"], f"{lost['mean']:+.2f}", f"{lost['mean'] - lost['half']:+.2f} – {lost['mean'] + lost['half']:+.2f}",
                     "no" if abs(lost["mean"]) <= lost["half"] else "yes"))
    return ("The load's loss of throughput: work done in adjacent intervals with and without flamed. For the build, work is the "
            "number of builds, so the loss is in wall time.\n\n" +
            table(("load", "pairs", "lost, %", "95 % interval", "significant?"), rows)) if rows else ""


def peer_table(one):
    peers = one.get("peers")
    if not peers:
        return ""
    rows = []
    for peer in peers:
        if "skipped" in peer:
            rows.append((peer["shown"], f"SKIP: {peer['skipped']}", "", "", ""))
            continue
        per_10 = 1000 * 10 / peer["seconds"]
        whole = ("" if peer.get("complete", True) else "> ") + f"{peer['whole'] * per_10:.0f}"
        rows.append((peer["shown"], f"{peer['recorded'] * per_10:.0f}", whole, f"{peer['flamed'] * per_10:.2f}",
                     f"{peer['whole'] / peer['flamed']:.0f}" if peer["flamed"] > 0 else "–"))
    return f"Load **{one['name']}**:\n\n" + table(("", "recording", "with its report", "flamed, the same seconds", "times"), rows)


def judge(measured, aims):
    by_name = {one["name"]: one for one in measured}

    def median(name, key):
        found = values(by_name[name], key) if name in by_name else []
        return 100 * statistics.median(found) if found else None

    for name in ("steady", "servers"):
        aims.at_most(f"{name}: total cost, % of a core per busy CPU", 0.15, median(name, "whole"))
        aims.at_most(f"{name}: of it in user space", 0.02, median(name, "user"), 4)
        for peer in by_name.get(name, {}).get("peers", []):
            if peer["name"] in TIMES_CHEAPER and "skipped" not in peer:
                aims.at_least(f"{name}: CPU time of `{peer['name']}` over flamed's", TIMES_CHEAPER[peer["name"]],
                              peer["whole"] / peer["flamed"] if peer["flamed"] else None)
    for name in ("steady", "servers", "build"):
        if by_name.get(name, {}).get("pairs"):
            lost = figures.interval([100 * value for value in by_name[name]["pairs"]])
            aims.judge(f"{name}: throughput lost, %", "not significant", f"{lost['mean']:+.2f} ± {lost['half']:.2f}",
                       lost["mean"] <= lost["half"])
    aims.at_most("idle: total cost, % of a core", 0.01, median("idle", "whole_of_a_core"), 4)
    wake_ups = median("idle", "wake_ups_per_second")
    aims.at_most("idle: wake-ups a second", 2, None if wake_ups is None else wake_ups / 100, 1)
    aims.at_most("build: total cost, % of a core per busy CPU", 0.3, median("build", "whole"))
    if "build" in by_name:
        judge_build(by_name["build"], aims)
    if "servers" in by_name:
        resident = by_name["servers"]["resident"]
        beyond = (resident["bytes"] - resident["store_bytes"]) / 2**20
        aims.at_most(f"servers: resident beyond the store after {resident['seconds'] / 60:.0f} min, MiB", 64, beyond, 1)


def judge_build(build, aims):
    def attribute(name, stacks):
        share = stacks["cpu_seconds"] / stacks["kernel_says"] if stacks.get("kernel_says") else None
        aims.at_least(f"{name}: CPU time attributed to its processes, %", 97, share and 100 * share, 1)

    attribute("build", build["stacks"])
    if "within_budget" in build:
        within = build["within_budget"]
        name = f"build, default budget ({statistics.median(within['frequencies']):g} Hz)"
        aims.at_most(f"{name}: total cost, % of a core per busy CPU", 0.3, 100 * statistics.median(values(within, "whole")))
        attribute(name, within["stacks"])


LOADS = [OnLoad(Busy), OnLoad(BusyWithFramePointers, with_peers=False, blocks=2), OnBuild(Build), OnLoad(Servers),
         OnIdle(Idle), OnLoad(ManyThreads, with_peers=False, blocks=2)]
PARTS = [*LOADS, Summary()]
