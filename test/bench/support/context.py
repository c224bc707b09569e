# SPDX-License-Identifier: Apache-2.0
"""Context: paths and durations."""

import dataclasses
import os


@dataclasses.dataclass
class Context:
    build: str
    blocks: int = 5  # each with two intervals with flamed and two without: ten pairs
    interval_s: float = 10  # two drains
    settle_s: float = 40  # from flamed's start until it is in its steady state, at least
    quiet_s: float = 11  # without work of the helpers after that: drains choose the files whose rows are built
    peer_s: int = 10
    peer_runs: int = 3
    idle_s: int = 20  # one interval on the idle machine
    idle_start_s: int = 30
    idle_settled_s: int = 60  # from flamed's start until its effects are over
    budget_settle_s: int = 45  # from flamed's start until it has found the frequency that its budget allows
    budget_intervals: int = 5
    is_quick: bool = False
    extra_s: int = 0  # how much longer the servers run, to show the growth of memory

    def built(self, *path):
        return os.path.abspath(os.path.join(self.build, *path))

    @property
    def flamed(self):
        return self.built("flamed")

    @staticmethod
    def at(hertz):
        """Flags for this frequency at any cost: with a budget that is never reached, but measured as by default."""
        return ["--frequency", str(hertz), "--cpu-budget", "100%"]

    @property
    def victims(self):
        return self.built("test/kernel/victims")


def quick(build):
    """Only to check that everything runs."""
    return Context(build, is_quick=True, blocks=1, interval_s=1, settle_s=1, quiet_s=1, peer_s=1, peer_runs=1, idle_s=1,
                   idle_start_s=1, idle_settled_s=1, budget_settle_s=1, budget_intervals=1)
