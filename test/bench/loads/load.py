# SPDX-License-Identifier: Apache-2.0
"""Load: work for the machine, and how much of it was done."""

import contextlib
import os
import shutil
import tempfile
import time

from support.counters import Counters
from support.group import Group


class Load:
    name = ""
    title = ""  # its description, for the report
    warm_up_s = 2

    def __init__(self, context):
        self.context = context
        self.folder = tempfile.mkdtemp(prefix="flamed-bench-")
        self.group = Group("load")

    def __enter__(self):
        try:
            self.start()
            time.sleep(self.warm_up_s)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.group.end()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self):
        raise NotImplementedError

    def interval(self, seconds):
        """Lets it work. Returns how much was done in a second, by kind."""
        raise NotImplementedError

    @contextlib.contextmanager
    def running(self):
        """Works within this context, also without a wait for an interval."""
        yield

    def selection(self):
        """The parameter of a query that selects the load's samples."""
        return f"cgroup=/{os.path.basename(self.group.path)}"


class CountingLoad(Load):
    """A load that runs all the time and counts in a file."""

    counters = None

    def make_counters(self, count):
        self.counters = Counters(os.path.join(self.folder, "counters"), count)
        return self.counters

    def done(self):
        return [float(sum(self.counters.values()))]

    def interval(self, seconds):
        before, began = self.done(), time.monotonic()
        time.sleep(seconds)
        after, took = self.done(), time.monotonic() - began
        return [(late - early) / took for early, late in zip(before, after)]
