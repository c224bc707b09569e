# SPDX-License-Identifier: Apache-2.0
"""The cost of storing samples and answering queries: the store, clients, the page."""

import shutil
import subprocess

from parts.part import Part
from support.figures import mib, number, table
from support.program import run_json
from support.skip import Skip


class Store(Part):
    name = "store"
    about = "a synthetic day of a busy host of two CPUs"

    def measure(self, how):
        return run_json([how.built("test/bench/store/store_bench"), *([] if not how.is_quick else [30])], how)

    def section(self, results, aims):
        store = results.get(self.name)
        if store is None:
            return ""
        if store["day_minutes"] == 24 * 60:
            aims.at_most("24 h of a busy host of two CPUs in whole minutes, MiB of store", 64,
                         (store["day_used_bytes"] - store["day_exact_bytes"]) / 2**20, 1)
        return f"""## The store

A synthetic day of a busy 2-CPU host (85 % of a minute's samples have a unique stack): {store["day_minutes"]} minutes.

| | |
|---|---|
| adding a sample whose stack is known, 30 frames | {store["add_repeated_30_frames_ns"]} ns, {store["allocations_per_repeated_add"]} allocations |
| adding a sample with 2 new frames of 30 | {store["add_new_2_of_30_frames_ns"]} ns |
| a distinct stack of 30 frames, one of them new | {store["bytes_per_distinct_30_frame_stack"]:.0f} bytes |
| memory for the day | {mib(store["day_used_bytes"])} |
| of it for single samples, as many as fit into their part of the budget | {mib(store["day_exact_bytes"])}, the last {store["day_exact_minutes"] / 60:.1f} h |
| a sealed minute | {store["sealed_bytes_per_minute"] / 1024:.0f} KiB, {store["bytes_per_histogram_entry"]} bytes per pair of thread and stack |
| taking a snapshot | {store["snapshot_us"]:.0f} µs |
| flame graph of one process, 1 h / the day | {store["query_1h_process_ms"]:.0f} / {store["query_24h_process_ms"]:.0f} ms |
| flame graph of the machine, 1 h / the day | {store["query_1h_machine_ms"]:.0f} / {store["query_24h_machine_ms"]:.0f} ms |
| CPU use by process, the day | {store["process_usage_24h_ms"]:.0f} ms |"""


class Questions(Part):
    name = "questions"
    about = "queries about a day of a synthetic host with 64 CPUs; takes minutes, and 3 GiB"
    by_default = False

    def measure(self, how):
        return run_json([how.built("test/bench/questions/questions_bench"), 24 * 60 if not how.is_quick else 130], how)

    def section(self, results, aims):
        questions = results.get(self.name)
        if questions is None:
            return ""
        rows = [question_row(questions, *row) for row in QUESTIONS]
        written = ", ".join(
            f"{questions[name + '_columns_ms']:.1f} ms for the {mib(questions[name + '_columns_bytes'])} of {text}"
            for name, text in (("process_1h", "the process"), ("machine_1h", "the machine's hour"))
            if name + "_columns_ms" in questions)
        return f"""## Queries

{questions["minutes"]} minutes of a synthetic host with {questions["cpus"]} busy CPUs at 99 Hz, {questions["pairs_per_minute"]:.0f} pairs of thread and stack a
minute, {questions["call_tree_nodes"]} nodes of the call tree, {mib(questions["store_bytes"])}; {questions["slots_dropped_for_budget"]} minutes dropped for the budget. Medians of
queries for 5 s, at least 9 of each: CPU time of the querying thread in ms until the answer is built and freed, while another thread adds samples at
the pace of the host: {questions["seconds_added_meanwhile"]} s of them, at most {questions["slowest_second_to_add_ms"]:.1f} ms of CPU time for one second's, {questions["lost"]} lost. Naming is separate: it is a look-up per
address if names are known. *First*: the query before there are sums of minutes.

{table(("", "answer", "naming", "first", "target"), rows)}

Writing `format=columns`: {written}."""


QUESTIONS = (("flame graph of one process, 1 h", "process_1h", 5),
             ("flame graph of the machine, 1 h", "machine_1h", 60),
             ("flame graph of the machine, 24 h", "machine_24h", 500),
             ("difference of two hours of one process", "diff_process_1h", 120),
             ("difference of two hours of the machine", "diff_machine_1h", 120),
             ("CPU use by process, 1 h", "processes_1h", "–"),
             ("heat map, 10 min", "heatmap_10min", "–"),
             ("timeline by the second, 10 min", "timeline_10min", "–"))


def question_row(questions, text, name, target):
    if name + "_ms" not in questions:
        return (text, "–", "–", "–", target)
    return (text, f"{questions[name + '_ms']:.1f}", number(questions.get(name + "_naming_ms")),
            number(questions.get(name + "_first_ms"), 0), target)


class Clients(Part):
    name = "clients"
    about = "many clients at once: idle, slow, and busy ones"
    by_default = False

    def measure(self, how):
        return run_json(["/usr/bin/python3", "test/bench/clients/clients_bench.py", how.flamed,
                         how.victims + "/victim_known_chain", 30 if not how.is_quick else 3], how)

    def section(self, results, aims):
        clients = results.get(self.name)
        if clients is None:
            return ""
        names = {"alone": "`/healthz` alone", "held": "`/healthz` beside 200 held connections",
                 "pressed": "`/profile` of one process over 64 connections (`wrk`)"}
        head = ("", "answers", "median, ms", "99 %, ms", "samples lost", "kernel program, ns per sample", "daemon, % of a core")
        rows = [clients_row(text, clients[name]) for name, text in names.items() if name in clients]
        return f"""## Clients

{clients["seconds"]} s each. *Held*: a quarter each are silent, idle after an answer, send a byte every half second, and do not read
the answers of two requests; clients that are closed reconnect. They took {clients["held"]["more_memory_bytes"] / 1e6:.1f} MB of memory.

{table(head, rows)}"""


def clients_row(name, part):
    return (name, part.get("asked", part.get("requests")), f"{part['p50_ms']:.1f}", f"{part['p99_ms']:.1f}",
            f"{part['lost']:.0f}", f"{part.get('kernel_program_ns_per_run', 0):.0f}",
            f"{100 * part['daemon_cpu_seconds_per_second']:.1f}")


class Page(Part):
    """The page's speed in a browser. Prints its own report."""

    name = "page"
    about = "a synthetic day, then a browser; takes minutes"
    by_default = False

    def measure(self, how):
        if shutil.which("chromium") is None:
            raise Skip("there is no chromium here")
        path = how.built("bench/page-figures.json")
        with open(path, "w", encoding="utf-8") as file:
            run = subprocess.run(["test/web/run.sh", "bench", how.built("test/web"), how.built("test/bench/page/page_bench_server"),
                                  how.flamed, how.built("test/bench/archive/history_bench")], stdout=file, check=False)
        if run.returncode != 0:
            raise Skip(f"test/web/run.sh ended with status {run.returncode}")
        text = subprocess.run(["/usr/bin/python3", "test/bench/page/report.py", path], stdout=subprocess.PIPE, text=True,
                              check=True).stdout
        return {"text": text}

    def section(self, results, aims):
        return "## The page\n\n" + results[self.name]["text"] if self.name in results else ""


PARTS = [Store(), Questions(), Clients(), Page()]
