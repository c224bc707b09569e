# SPDX-License-Identifier: Apache-2.0
"""Context: where things are, and how long they may take."""

import dataclasses
import os


@dataclasses.dataclass
class Context:
    build: str
    blocks: int = 5  # of two intervals with flamed and two without: ten pairs
    interval_s: float = 10  # two drains
    settle_s: float = 40  # from flamed's start until it is in its steady state, at least
    quiet_s: float = 11  # in which no helper has worked then: at drains files are chosen whose rows are to be built
    peer_s: int = 10
    peer_runs: int = 3
    idle_s: int = 20  # of one interval on the idle machine
    idle_start_s: int = 30
    idle_settled_s: int = 60  # from flamed's start until nothing of that is left
    budget_settle_s: int = 45  # from flamed's start until it has found the frequency that its budget allows
    budget_intervals: int = 5
    is_quick: bool = False
    extra_s: int = 0  # how much longer the servers run, to see memory grow

    def built(self, *path):
        return os.path.abspath(os.path.join(self.build, *path))

    @property
    def flamed(self):
        return self.built("flamed")

    @staticmethod
    def at(hertz):
        """Flags for so many samples, whatever they cost: within a budget that is never met, but measured as by default."""
        return ["--frequency", str(hertz), "--cpu-budget", "100%"]

    @property
    def victims(self):
        return self.built("test/kernel/victims")


def quick(build):
    """Only to see that everything runs."""
    return Context(build, is_quick=True, blocks=1, interval_s=1, settle_s=1, quiet_s=1, peer_s=1, peer_runs=1, idle_s=1,
                   idle_start_s=1, idle_settled_s=1, budget_settle_s=1, budget_intervals=1)
