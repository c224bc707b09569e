# SPDX-License-Identifier: Apache-2.0
"""Figures from measured values, and their format."""

import math
import statistics

# Student's t, two-sided 95 %, by degrees of freedom.
T95 = [math.inf, 12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11,
       2.10, 2.09, 2.09]


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def interval(values):
    """The mean and half the width of its 95 % confidence interval."""
    freedom = len(values) - 1
    if freedom < 1:
        return {"mean": values[0], "half": math.inf, "n": len(values)}
    t = T95[freedom] if freedom < len(T95) else 1.96
    return {"mean": statistics.mean(values), "half": t * statistics.stdev(values) / math.sqrt(len(values)),
            "n": len(values)}


def exponent(points):
    """k of cost ~ size^k: the slope of the straight line through the logarithms."""
    logs = [(math.log(size), math.log(cost)) for size, cost in points if size > 0 and cost > 0]
    if len(logs) < 2:
        return None
    mean_x, mean_y = (statistics.mean(column) for column in zip(*logs))
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / sum((x - mean_x) ** 2 for x, _ in logs)


def number(value, digits=1):
    if value is None:
        return "–"
    return f"{value:.{digits}f}"


def between(value, digits=1, factor=1):
    """Median and range of spread()."""
    return f"{factor * value['median']:.{digits}f} ({factor * value['min']:.{digits}f} – {factor * value['max']:.{digits}f})"


def mib(value):
    return f"{value / 2**20:.1f} MiB"


def percent(value, digits=1):
    return "–" if value is None else f"{100 * value:.{digits}f}"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


class Aims:
    """The targets, and whether they were met."""

    def __init__(self):
        self.rows = []

    def at_most(self, what, aim, value, digits=3, unit=""):
        self.judge(what, f"≤ {aim}{unit}", None if value is None else f"{value:.{digits}f}{unit}",
                   None if value is None else value <= aim)

    def at_least(self, what, aim, value, digits=0, unit=""):
        self.judge(what, f"≥ {aim}{unit}", None if value is None else f"{value:.{digits}f}{unit}",
                   None if value is None else value >= aim)

    def judge(self, what, aim, measured, is_met):
        if measured is not None:
            self.rows.append((what, aim, measured, "met" if is_met else "**missed**"))
