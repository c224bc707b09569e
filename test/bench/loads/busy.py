# SPDX-License-Identifier: Apache-2.0
"""Programs that only compute: one thread for each CPU, or 2,000 threads with deep stacks."""

import os

from loads.load import CountingLoad


class Busy(CountingLoad):
    name = "steady"
    program = "load_busy"
    depth = 30
    threads = None  # one for each CPU
    at_once = None  # all of them
    title = ("one native program, one computing thread for each CPU, 512 call chains of 15 to 30 frames, built without "
             "frame pointers")

    def start(self):
        threads = self.threads or os.cpu_count()
        counters = self.make_counters(threads)
        self.group.start([self.context.built("test/bench/loads", self.program), counters.path, str(threads), str(self.depth),
                          str(self.at_once or threads)])


class BusyWithFramePointers(Busy):
    name = "steady-fp"
    program = "load_busy_with_frame_pointers"
    title = "the same, built with frame pointers"


class ManyThreads(Busy):
    name = "threads"
    threads = 2000
    at_once = 2 * os.cpu_count()
    depth = 110
    warm_up_s = 4
    title = ("the same as the first with 2,000 threads and stacks of 55 to 110 frames; two threads for each CPU are "
             "runnable, and take turns after 16 calls")
