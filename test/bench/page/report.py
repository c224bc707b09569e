#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns the output of page_bench.mjs into a table with the targets. Usage: report.py FILE"""

import json
import sys

MIB = 1 << 20
MACHINE = (
    ("graph_click_ms", "a click in the graph"),
    ("graph_key_ms", "a key in the graph"),
    ("graph_wheel_ms", "a wheel step over the graph"),
    ("to_bottom_up_ms", "to the bottom-up graph and back"),
    ("to_sandwich_ms", "to the sandwich and back"),
    ("to_table_ms", "to the table and back"),
    ("rows_by_ms", "the table by module, by source file, by function"),
    ("bottom_up_click_ms", "a click in the bottom-up graph"),
    ("bottom_up_hover_ms", "one move of the pointer in the bottom-up graph"),
    ("table_beside_ms", "the table beside the graph, and away"),
    ("row_ms", "a row of the table chosen"),
    ("fold_ms", "recursion folded, and unfolded"),
    ("list_wheel_ms", "a wheel step over the list"),
    ("list_open_ms", "a group opened or closed"),
    ("list_key_ms", "a key in the list"),
    ("list_search_ms", "a letter in the list's search"),
    ("list_choose_ms", "a row chosen, until the page shows that it asks"),
)
VIEWS = (
    ("time", "a thread of 90,000 samples over time"),
    ("threads", "64 threads beside it"),
    ("lines", "the lines of the hottest function"),
    ("instructions", "its instructions"),
    ("waiting", "waiting time in place of CPU time"),
)


def row(what, target, figure, worst=""):
    print(f"| {what} | {target} | {figure} | {worst} |")


def spread(what, target, values):
    row(what, target, f"{values['median']:.1f} ms", f"{values['p95']:.1f} ms of {values['count']}")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        figures = json.load(file)
    print("| | target | median | 95 % within |\n|---|---|---|---|")
    for nodes, paint_ms in ((200_000, 150), (1_000_000, 250)):
        tree = figures[f"tree_{nodes}"]
        size = f"{nodes:,} nodes"
        spread(f"{size}: answer complete → its graph is painted", f"{paint_ms} ms", tree["first_paint_ms"])
        spread(f"{size}: one drawing while zooming", "16 ms", tree["zoom_draw_ms"])
        spread(f"{size}: one move of the pointer", "16 ms", tree["hover_ms"])
        spread(f"{size}: a search", "50 ms", tree["search_ms"])
        row(f"{size}: elements of the document", "2,000", f"{tree['dom_nodes']:,}")
        row(f"{size}: memory of the page after garbage collection", "100 MiB", f"{tree['heap_bytes'] / MIB:.0f} MiB")
    for slowdown, most_ms in ((1, 100), (4, 300)):
        machine = figures[f"machine_{slowdown}"]
        on = f"{machine['processes']:,} processes, {machine['nodes']:,} nodes" + (f", a browser {slowdown} times slower" if slowdown > 1 else "")
        spread(f"{on}: navigation → first graph painted", "1,000 ms" if slowdown == 1 else "", machine["first_graph_ms"])
        for name, what in MACHINE:
            spread(f"{on}: {what}", f"{most_ms} ms", machine[name])
        spread(f"{on}: one move of the pointer", "16 ms" if slowdown == 1 else f"{most_ms} ms", machine["hover_ms"])
        for name, what in VIEWS:
            view = figures[f"views_{slowdown}"][name]
            spread(f"{on}: {what}, something is painted", f"{most_ms} ms", view["painted_ms"])
            spread(f"{on}: {what}, it is there", "1,000 ms" if slowdown == 1 else "", view["there_ms"])
    if month := figures.get("month"):
        spread("a month on disk, the first question: navigation → first graph painted", "3,000 ms", month["cold_ms"])
        spread("a month on disk, asked again", "1,000 ms", month["warm_ms"])
        spread("a month on disk: a click in the graph", "100 ms", month["click_ms"])
        spread("a month on disk: one move of the pointer", "16 ms", month["hover_ms"])
    spread("release of the brush → graph painted", "300 ms", figures["brush"]["release_to_paint_ms"])
    row("the page's own code and style, compressed", "104 KiB", f"{figures['bundle']['bytes'] / 1024:.0f} KiB")
    print(f"\nOf the thread over time the page says: {figures['views_1']['time']['note']}")
    if "month" in figures:
        print(f"\nOf the month the daemon says: {figures['month']['note']}")


main()
