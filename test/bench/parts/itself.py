# SPDX-License-Identifier: Apache-2.0
"""Where flamed's own time goes, profiled by flamed."""

import time

from loads.servers import Servers
from parts.part import Part
from support.daemon import Daemon

HERTZ = 1000  # for both: at 99 Hz there are too few samples
DEEPEST = 30
SMALLEST = 0.02


class Itself(Part):
    name = "itself"
    about = "flamed under the load of servers, profiled by another flamed"

    def measure(self, how):
        seconds = 30 if not how.is_quick else 4
        with Servers(how), Daemon(how.flamed, *how.at(HERTZ)) as looked_at:
            time.sleep(how.settle_s)
            with Daemon(how.flamed, *how.at(HERTZ)) as looking:
                time.sleep(3)
                begin = time.time()
                time.sleep(seconds)
                end = time.time()
                time.sleep(2.5)
                pids = "&".join(f"pid={pid}" for pid in looked_at.group.pids())
                question = f"/profile?{pids}&from={begin:.6f}&to={end:.6f}&format="
                return {"seconds": seconds, "top": looking.get_json(question + "top"), "folded": looking.ask(question + "folded")[2]}

    def section(self, results, aims):
        measured = results.get(self.name)
        if measured is None:
            return ""
        stacks = [line.rsplit(" ", 1) for line in measured["folded"].splitlines() if line and not line.startswith("# ")]
        total = sum(int(count) for _, count in stacks)
        if total == 0:
            return ""
        return f"""## flamed profiled by flamed

flamed on the load *servers* at {HERTZ} Hz, since it uses too little at 99 Hz, sampled for {measured["seconds"]} s by a second flamed:
{total} samples, {1000 * total / HERTZ / measured["seconds"]:.2f} ms of CPU time a second. Shares in %, by thread's call path from the outermost function inwards; parts below {100 * SMALLEST:.0f} % are left out.

```
{tree(stacks, total)}
```"""


def tree(stacks, total):
    root = {}
    for stack, count in stacks:
        node = root
        for name in stack.split(";")[:DEEPEST]:
            entry = node.setdefault(name, [0, {}])
            entry[0] += int(count)
            node = entry[1]
    lines = []

    def walk(node, depth):
        for name, (count, below) in sorted(node.items(), key=lambda item: -item[1][0]):
            if count < SMALLEST * total:
                continue
            # A chain of calls without branches is one line.
            chain = [name]
            while len(below) == 1 and (only := next(iter(below.items())))[1][0] == count:
                chain.append(only[0])
                below = only[1][1]
            shown = " > ".join(short(part) for part in (chain if len(chain) < 4 else [chain[0], "…", chain[-1]]))
            lines.append(f"{100 * count / total:5.1f}  {'  ' * depth}{shown}")
            walk(below, depth + 1)

    walk(root, 0)
    return "\n".join(lines)


def short(name):
    """Without parameters of templates and functions."""
    kept, depth = "", 0
    for letter in name:
        depth += letter in "<("
        if depth == 0:
            kept += letter
        depth -= letter in ">)"
    return (kept or name)[-70:]


PARTS = [Itself()]
