# SPDX-License-Identifier: Apache-2.0
"""The load's own measurement of what an interrupt costs it: too little to measure at 99 Hz, so with many more of
them."""

import signal
import subprocess
import time

from loads.busy import Busy
from parts.part import Part
from support.daemon import Daemon
from support.figures import interval, table
from support.group import Group

NOTHING_HERTZ = 10_000
FLAMED_HERTZ = 1_000  # the most that it takes


class Nothing:
    """The sampler that does nothing."""

    def __init__(self, how):
        self.group = Group("nothing")
        child = self.group.start([how.built("test/bench/probes/nothing_sampler"), str(NOTHING_HERTZ)], stdout=subprocess.PIPE, text=True)
        child.stdout.readline()
        self.child = child

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.send_signal(signal.SIGTERM)
        self.child.wait()
        self.group.end()


class Interrupts(Part):
    name = "interrupts"
    about = "what more interrupts take from a load"

    def measure(self, how):
        seconds = how.interval_s / 2
        with Busy(how) as load:
            return {"seconds": seconds,
                    "nothing": losses(load, how, seconds, lambda: Nothing(how)),
                    "flamed": losses(load, how, seconds, lambda: Daemon(how.flamed, *how.at(FLAMED_HERTZ)))}

    def section(self, results, aims):
        measured = results.get(self.name)
        if measured is None:
            return ""
        rows = []
        for text, key, hertz in ((f"a program that does nothing, at {NOTHING_HERTZ} Hz", "nothing", NOTHING_HERTZ),
                                 (f"flamed, unwind tables, at {FLAMED_HERTZ} Hz", "flamed", FLAMED_HERTZ)):
            lost = interval([100 * value for value in measured[key]])
            each = 1e7 / hertz  # ns for each percent
            rows.append((text, lost["n"], f"{lost['mean']:.2f} ± {lost['half']:.2f}",
                         f"{lost['mean'] * each:.0f} ± {lost['half'] * each:.0f}",
                         f"{lost['mean'] * 99 / hertz:.4f} ± {lost['half'] * 99 / hertz:.4f}"))
        return f"""## What an interrupt costs

Measured by the load, with all that the kernel's statistics do not see: entry to and exit from the interrupt, the timer, and
caches filled with other data. Load `steady`, pairs of intervals of {measured["seconds"]:.0f} s as above. At 99 Hz the loss is too small to measure, so the rates are higher.

""" + table(("", "pairs", "work lost, %", "ns for each", "at 99 Hz, %"), rows)


def losses(load, how, seconds, begin):
    lost = []
    for _ in range(how.blocks):
        first = load.interval(seconds)[0]
        with begin():
            time.sleep(min(2, how.settle_s))
            middle = [load.interval(seconds)[0] for _ in range(2)]
        last = load.interval(seconds)[0]
        lost += [1 - middle[0] / first, 1 - middle[1] / last]
    return lost


PARTS = [Interrupts()]
