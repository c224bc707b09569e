# SPDX-License-Identifier: Apache-2.0
"""Tests of the benchmarks' statistics."""

import os
import sys
import unittest
import unittest.mock

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from parts import start  # noqa: E402
from support import cost, peers  # noqa: E402
from support.figures import Aims, exponent, interval, spread, table  # noqa: E402


class FiguresTest(unittest.TestCase):
    def test_the_exponent_of_a_cost_that_grows_with_the_square_is_two(self):
        self.assertAlmostEqual(exponent([(size, 3 * size**2) for size in (2, 8, 64, 256)]), 2)

    def test_the_exponent_of_a_cost_that_stays_is_zero(self):
        self.assertAlmostEqual(exponent([(2, 100), (8, 100), (64, 100)]), 0)

    def test_one_point_has_no_exponent(self):
        self.assertIsNone(exponent([(2, 100)]))

    def test_a_confidence_interval_is_that_of_student(self):
        # Standard deviation 1.5811, so 0.7071 of the mean of five; 2.78 for four degrees of freedom.
        found = interval([1, 2, 3, 4, 5])
        self.assertEqual(found["mean"], 3)
        self.assertAlmostEqual(found["half"], 2.78 * 0.70711, places=3)

    def test_a_spread_is_median_least_and_most(self):
        self.assertEqual(spread([3, 1, 2]), {"median": 2, "min": 1, "max": 3})

    def test_an_aim_that_was_not_measured_is_not_judged(self):
        aims = Aims()
        aims.at_most("cost", 0.15, None)
        aims.at_most("cost", 0.15, 0.1)
        aims.at_least("speed", 20, 19)
        self.assertEqual([row[3] for row in aims.rows], ["met", "**missed**"])

    def test_a_table_has_a_line_for_each_row(self):
        self.assertEqual(table(("a", "b"), [(1, 2)]), "| a | b |\n|---|---|\n| 1 | 2 |")


class PeersTest(unittest.TestCase):
    COMPLETE = {"name": "perf -g", "seconds": 10, "complete": True, "recorded": 0.3, "flamed": 0.005, "whole": 0.5}

    def measured(self, *results):
        """The result of three runs with these outcomes, and how many were needed."""
        left = list(results)
        with unittest.mock.patch.object(peers, "measure", lambda *_: left.pop(0)):
            return peers.measure_often(None, None, 10, 3), len(results) - len(left)

    def test_one_disturbed_run_is_not_the_figure(self):
        disturbed = {**self.COMPLETE, "flamed": 0.047, "whole": 0.9}
        for runs in ((disturbed, self.COMPLETE, self.COMPLETE), (self.COMPLETE, self.COMPLETE, disturbed)):
            self.assertEqual(self.measured(*runs), (self.COMPLETE, 3))

    def test_what_cannot_run_or_was_cut_off_is_not_run_again(self):
        for result in ({"name": "bcc", "skipped": "there is no profile-bpfcc here"}, {**self.COMPLETE, "complete": False}):
            self.assertEqual(self.measured(result, self.COMPLETE), (result, 1))


class CostsTest(unittest.TestCase):
    # Ten seconds of two busy CPUs at 99 Hz. The kernel program took 5 us for each sample by the kernel's count.
    USED = {"time": 10, "busy": 20, "runs": 1980, "run_seconds": 1980 * 5e-6, "all": 0.004, "daemon": 0.003, "workers": 0.001,
            "threads": {"ingest": 0.003, "idle": 0}, "interrupts": 8000, "given": 20, "taken": 10}

    def test_what_the_statistics_take_themselves_is_taken_out(self):
        self.assertAlmostEqual(cost.costs(self.USED, 1000)["ns_per_sample"], 4000)

    def test_costs_stand_for_each_cpu_that_was_busy(self):
        costs = cost.costs(self.USED, 0)
        self.assertAlmostEqual(costs["user"], 0.0002)
        self.assertAlmostEqual(costs["kernel"], 99 * 5e-6)
        self.assertAlmostEqual(costs["whole_of_a_core"], 2 * costs["whole"])

    def test_an_interval_without_samples_has_no_cost_of_one(self):
        self.assertIsNone(cost.costs({**self.USED, "runs": 0, "run_seconds": 0}, 100)["ns_per_sample"])


class StartTest(unittest.TestCase):
    FOLDED = """sh (12);main;a (b) 3
sh (12);[truncated: unwind rows not ready];read 2
python3 (13);[truncated: the stack is deeper than what is kept];f 1
sleep (99);[truncated: the process had only just begun];_start 4
flamed (7) 5
"""

    def test_a_second_tells_processes_that_ran_before_from_others(self):
        self.assertEqual(start.window(self.FOLDED, {12, 13}),
                         {"samples": 6, "whole": 3, "not_yet": 2, "others": 9, "others_not_yet": 4})

    def test_tables_stand_from_when_all_that_comes_is_whole_enough(self):
        seconds = [{"samples": 100, "not_yet": 70}, {"samples": 50, "not_yet": 2}, {"samples": 10, "not_yet": 0},
                   {"samples": 200, "not_yet": 1}]
        self.assertEqual(start.ready_after(seconds), 2)
        self.assertEqual(start.ready_after(seconds[:1]), 1)


if __name__ == "__main__":
    unittest.main()
