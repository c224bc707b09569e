# SPDX-License-Identifier: Apache-2.0
"""Functions whose code is freed and made anew in the same place, under another name, all the time: outer_0 calls leaf_0,
outer_1 leaf_1, and so on."""

import itertools
import time

KINDS = 8


def made(text, name, space):
    exec(compile(text, "made.py", "exec"), space)
    return space[name]


leaves = [
    made(f"def leaf_{kind}(until):\n  while time.monotonic() < until: pass\n", f"leaf_{kind}", {"time": time})
    for kind in range(KINDS)
]


def run(kind):
    space = {"leaf": leaves[kind]}
    outer = made(f"def outer_{kind}(until):\n  leaf(until)\n", f"outer_{kind}", space)
    outer(time.monotonic() + 0.2)
    space.clear()  # it refers to the function, which refers to it


print("runs", flush=True)
for number in itertools.count():
    run(number % KINDS)
