#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns the benchmarks' JSON into docs/overhead.md. Usage: report.py FOLDER"""

import json
import os
import platform
import sys
import time


def load(folder, name):
    with open(os.path.join(folder, name + ".json"), encoding="utf-8") as file:
        return json.load(file)


def cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def system():
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:
        return platform.system()


def spread(value, digits):
    return f"{value['median']:.{digits}f} | {value['min']:.{digits}f} – {value['max']:.{digits}f}"


def unwind_row(name, walk):
    times = " | ".join(f"{walk['ns_per_sample'][depth]['median']:.0f}" for depth in ("10", "30", "60", "120"))
    return f"| {name} | {times} | {walk['ns_per_frame']:.0f} |"


def mib(value):
    return f"{value / 2**20:.1f} MiB"


def percent(value, digits=1):
    return "–" if value is None else f"{100 * value:.{digits}f}"


def mixed_row(name, program):
    truncated = program["tables"]["truncated"]
    samples = program["tables"]["samples"]
    reasons = ", ".join(f"{reason} {percent(count / samples)}" for reason, count in
                        sorted(truncated.items(), key=lambda item: -item[1]))
    agreement = program["agreement"] or {}
    cells = (name, samples, percent(program["tables"]["whole_share"]), reasons,
             percent(program["frame_pointers"]["whole_share"]), percent(program["perf"]["whole_share"]),
             percent(agreement.get("flamed_in_perf")), percent(agreement.get("flamed_steps_in_perf"), 2),
             percent(agreement.get("perf_in_itself")), percent(agreement.get("perf_steps_in_itself"), 2),
             f"{program['bpf_ns_per_sample']:.0f}")
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def mixed_section(mixed):
    if mixed is None:
        return "Not measured: there was no `perf` on the machine."
    rows = "\n".join(mixed_row(name, program) for name, program in mixed["programs"].items())
    return f"""Programs as Debian ships them, {mixed["seconds"]} s each, sampled at the same time by flamed with unwind tables, by flamed with
frame pointers alone, and by `perf record --call-graph dwarf`. Shares in %. *Whole*: down to the process's or thread's
entry; the reasons of the rest are those of `quality`. *Agreement*, where both are whole: stacks of flamed that perf saw as
they are, or all of whose steps from caller to callee perf saw; and the share of single steps. What perf's second half
shares with its first in the same way is beside it: the rest is chance, in programs with many rare stacks.

| program | samples | whole by tables | otherwise | whole by frame pointers | whole by perf | stacks agree | steps agree | perf with itself, stacks | steps | ns per sample |
|---|---|---|---|---|---|---|---|---|---|---|
{rows}

All programs together: {percent(mixed["tables"]["whole_share"])} % whole by tables, {percent(mixed["frame_pointers"]["whole_share"])} % by frame pointers. A JVM keeps frame
pointers in the code that it makes only with `-XX:+PreserveFramePointer`; without, such stacks end there and are counted as
`no_unwind_information`. perf cannot go through code made by JIT compilers at all. The last column is the kernel program's
time on the whole machine while perf copied stacks beside it, with what else ran: an upper bound."""


def clients_row(name, part):
    cells = (name, part.get("asked", part.get("requests")), f"{part['p50_ms']:.1f}", f"{part['p99_ms']:.1f}",
             f"{part['lost']:.0f}", f"{part.get('kernel_program_ns_per_run', 0):.0f}",
             f"{100 * part['daemon_cpu_seconds_per_second']:.1f}")
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def clients_section(clients):
    names = {"alone": "`/healthz` alone", "held": "`/healthz` beside 200 held connections",
             "pressed": "`/profile` of one process over 64 connections (`wrk`)"}
    rows = "\n".join(clients_row(text, clients[name]) for name, text in names.items() if name in clients)
    return f"""{clients["seconds"]} s each. *Held*: a quarter each are silent, idle after an answer, send a byte every half second, and do not read
the answers of two requests; those that are closed come again. They took {clients["held"]["more_memory_bytes"] / 1e6:.1f} MB of memory.

| | answers | median, ms | 99 %, ms | samples lost | kernel program, ns per sample | daemon, % of a core |
|---|---|---|---|---|---|---|
{rows}"""


def question_row(text, questions, name, target):
    if name + "_ms" not in questions:
        return f"| {text} | – | – | – | {target} |"
    first = questions.get(name + "_first_ms")
    naming = questions.get(name + "_naming_ms")
    cells = (f"{questions[name + '_ms']:.1f}", "–" if naming is None else f"{naming:.1f}",
             "–" if first is None else f"{first:.0f}")
    return f"| {text} | " + " | ".join(cells) + f" | {target} |"


def questions_section(questions):
    rows = "\n".join((
        question_row("flame graph of one process, 1 h", questions, "process_1h", 5),
        question_row("flame graph of the machine, 1 h", questions, "machine_1h", 60),
        question_row("flame graph of the machine, 24 h", questions, "machine_24h", 500),
        question_row("difference of two hours of one process", questions, "diff_process_1h", 120),
        question_row("difference of two hours of the machine", questions, "diff_machine_1h", 120),
        question_row("who used CPU, 1 h", questions, "processes_1h", "–"),
        question_row("heat map, 10 min", questions, "heatmap_10min", "–"),
        question_row("timeline by the second, 10 min", questions, "timeline_10min", "–")))
    written = ", ".join(
        f"{questions[name + '_columns_ms']:.1f} ms for the {mib(questions[name + '_columns_bytes'])} of {text}"
        for name, text in (("process_1h", "the process"), ("machine_1h", "the machine's hour"))
        if name + "_columns_ms" in questions)
    return f"""{questions["minutes"]} minutes of a synthetic host with {questions["cpus"]} busy CPUs at 99 Hz, {questions["pairs_per_minute"]:.0f} pairs of thread and stack a
minute, {questions["call_tree_nodes"]} nodes of the call-tree, {mib(questions["store_bytes"])}; {questions["slots_dropped_for_budget"]} minutes dropped for the budget. Medians of
9, CPU time of the asking thread in ms until the answer stands as a value and is freed, while another thread adds samples at
the pace of the host: {questions["seconds_added_meanwhile"]} s of them, at most {questions["slowest_second_to_add_ms"]:.1f} ms of CPU time for one second's, {questions["lost"]} lost. Naming is apart: it is a look-up per
address where names are known. *First*: the question that found no sums of minutes.

| | answer | naming | first | target |
|---|---|---|---|---|
{rows}

Writing `format=columns`: {written}."""


def main(folder):
    overhead, unwind, ingest, store, questions = (load(folder, name) for name in
                                                  ("overhead", "unwind", "ingest", "store", "questions"))
    clients = load(folder, "clients")
    mixed = load(folder, "mixed") if os.path.exists(os.path.join(folder, "mixed.json")) else None
    print(f"""<!-- SPDX-License-Identifier: Apache-2.0 -->
# What flamed costs

Written by `./dev bench --write` on {time.strftime("%Y-%m-%d")}: {cpu_model()}, {overhead["cpus"]} CPUs, Linux {overhead["kernel"]},
{system()}. Times on another machine differ; run it there.

## Steady state

Load: {overhead["load"]}. 99 Hz on every CPU, {overhead["repetitions"]} intervals of {overhead["seconds"]} s. The kernel program's time is the kernel's
own statistic (`bpf_enable_stats`), which adds two clock reads to each run and is part of the figure. The daemon's time is
all that its threads used, including the answer to one request for `/metrics` per interval.

| | median | min – max |
|---|---|---|
| kernel program, ns per sample | {spread(overhead["bpf_ns_per_sample"], 0)} |
| kernel program, % of a core per busy CPU | {spread(overhead["bpf_percent_of_a_core_per_busy_cpu"], 4)} |
| daemon, % of a core per busy CPU | {spread(overhead["daemon_percent_of_a_core_per_busy_cpu"], 4)} |
| **together, % of a core per busy CPU** | {spread(overhead["whole_percent_of_a_core_per_busy_cpu"], 4)} |

Resident memory at the end: {mib(overhead["resident_bytes"])}.

## Unwinding

The kernel program's time per sample in ns, by the number of user frames: one recursive program, built with and without
frame pointers, sampled {unwind["hertz"]} times a second by each program in turn; medians of {unwind["repetitions"]} rounds. The slope is between 10 and
120 frames. By tables {100 * unwind["tables"]["whole_share"]:.1f} % of the stacks of 120 frames were whole. At 30 frames the tables cost {unwind["ratio_at_30_frames"]:.2f} times what
`bpf_get_stack` does.

| | 10 | 30 | 60 | 120 | ns per frame |
|---|---|---|---|---|---|
{unwind_row("flamed, unwind tables, no frame pointers in the program", unwind["tables"])}
{unwind_row("bpf_get_stack and a perf buffer, nothing else", unwind["get_stack"])}
{unwind_row("flamed, frame pointers", unwind["frame_pointers"])}

## Whole stacks

{mixed_section(mixed)}

## A sample's way through user space

{ingest["recorded_samples"]} samples recorded from the running kernel, replayed {ingest["replayed_samples"]} times through the daemon's own code on one
thread: {ingest["bytes_per_sample"]:.0f} bytes and {ingest["frames_per_sample"]:.1f} frames a sample.

| | ns per sample |
|---|---|
| drain: decode, copy, order by time | {ingest["drain_ns_per_sample"]:.0f} |
| normalise and store | {ingest["normalise_and_store_ns_per_sample"]:.0f} |

That is {ingest["samples_per_second_of_one_core"] / 1e6:.1f} million samples a second on one core; a busy CPU makes 99.

## Clients

{clients_section(clients)}

## The store

A synthetic day of a busy 2-CPU host (85 % of a minute's samples have a stack of their own): {store["day_minutes"]} minutes.

| | |
|---|---|
| adding a sample whose stack is known, 30 frames | {store["add_repeated_30_frames_ns"]} ns, {store["allocations_per_repeated_add"]} allocations |
| adding a sample with 2 new frames of 30 | {store["add_new_2_of_30_frames_ns"]} ns |
| memory for the day | {mib(store["day_used_bytes"])} |
| a sealed minute | {store["sealed_bytes_per_minute"] / 1024:.0f} KiB, {store["bytes_per_histogram_entry"]} bytes per pair of thread and stack |
| taking a snapshot | {store["snapshot_us"]:.0f} µs |
| flame graph of one process, 1 h / the day | {store["query_1h_process_ms"]:.0f} / {store["query_24h_process_ms"]:.0f} ms |
| flame graph of the machine, 1 h / the day | {store["query_1h_machine_ms"]:.0f} / {store["query_24h_machine_ms"]:.0f} ms |
| who used CPU, the day | {store["process_usage_24h_ms"]:.0f} ms |

## Questions

{questions_section(questions)}""")


if __name__ == "__main__":
    main(sys.argv[1])
