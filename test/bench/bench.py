#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what flamed costs and prints the report.

    ./dev bench [--quick] [--write] [--long] [PART...]

Without parts: all of them but those that are only run when named, in an hour. The figures are only as
quiet as the machine: run nothing beside it. Results stay in build/bench/ and go into the report until they are measured again.

  --quick   a second or two for each interval: to see that it runs, not to measure
  --write   put the report into docs/overhead.md, too
  --long    let the servers run for an hour, to see memory grow
  --report  measure nothing, write the report of what was measured before
"""

import argparse
import json
import os
import signal
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
os.chdir(os.path.dirname(os.path.dirname(HERE)))
sys.dont_write_bytecode = True

import report  # noqa: E402
from parts import PARTS  # noqa: E402
from support import context, machine  # noqa: E402
from support.skip import Skip  # noqa: E402

LONG_S = 3600


def measure(part, how, folder):
    path = os.path.join(folder, part.name + ".json")
    print(f"{part.name}: {part.about} ...", file=sys.stderr, flush=True)
    began = time.monotonic()
    try:
        result = part.measure(how)
    except Skip as skip:
        print(f"{part.name}: SKIP: {skip}", file=sys.stderr, flush=True)
        result = {"skipped": str(skip)}
    except Exception as error:  # the other parts can still be measured
        traceback.print_exc()
        result = {"skipped": f"it failed: {error}", "failed": True}
    result["took_s"] = time.monotonic() - began
    result["quick"] = how.is_quick
    result["date"], result["source"] = time.strftime("%Y-%m-%d"), machine.source()
    with open(path, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
    print(f"{part.name}: {result['took_s']:.0f} s", file=sys.stderr, flush=True)
    return result


def main():
    build = os.environ.get("FLAMED_BUILD", "build")
    names = [part.name for part in PARTS if part.about]
    parser = argparse.ArgumentParser(prog="./dev bench", epilog="Parts: " + ", ".join(
        part.name + ("" if part.by_default else " (only when named)") for part in PARTS if part.about))
    for option in ("--quick", "--write", "--long", "--report"):
        parser.add_argument(option, action="store_true")
    parser.add_argument("parts", nargs="*", metavar="PART")
    options = parser.parse_args()
    unknown = [name for name in options.parts if name not in names]
    if unknown:
        parser.error(f"no such part: {unknown[0]} (there are {', '.join(names)})")
    # So that the started processes end as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))

    how = context.quick(build) if options.quick else context.Context(build)
    how.extra_s = LONG_S if options.long else 0
    folder = os.path.join(build, "bench")
    os.makedirs(folder, exist_ok=True)
    wanted = [part for part in PARTS if part.about and (part.name in options.parts if options.parts else part.by_default)]
    failed = []
    if not options.report or not os.path.exists(os.path.join(folder, "machine.json")):
        with open(os.path.join(folder, "machine.json"), "w", encoding="utf-8") as file:
            json.dump(machine.facts(how.flamed), file, indent=1)
    if not options.report:
        failed = [part.name for part in wanted if "failed" in measure(part, how, folder)]
    text = report.text(PARTS, folder, options.quick)
    print(text)
    if options.write:
        with open("docs/overhead.md", "w", encoding="utf-8") as file:
            file.write(text + "\n")
    if failed:
        sys.exit("failed: " + ", ".join(failed))


if __name__ == "__main__":
    main()
