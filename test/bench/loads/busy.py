# SPDX-License-Identifier: Apache-2.0
"""Programs that do nothing but compute: one thread for each CPU, or 2,000 threads with deep stacks."""

import os

from loads.load import CountingLoad


class Busy(CountingLoad):
    name = "steady"
    program = "load_busy"
    depth = 30
    threads = None  # one for each CPU
    title = ("one native program, one computing thread for each CPU, 512 call chains of 15 to 30 frames, built without "
             "frame pointers")

    def start(self):
        threads = self.threads or os.cpu_count()
        counters = self.make_counters(threads)
        self.group.start([self.context.built("test/bench/loads", self.program), counters.path, str(threads),
                                       str(self.depth)])


class BusyWithFramePointers(Busy):
    name = "steady-fp"
    program = "load_busy_with_frame_pointers"
    title = "the same, built with frame pointers"


class ManyThreads(Busy):
    name = "threads"
    threads = 2000
    depth = 110
    warm_up_s = 4
    title = "the same as the first with 2,000 threads, all of which want to run, and stacks of 55 to 110 frames"
