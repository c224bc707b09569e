# SPDX-License-Identifier: Apache-2.0
"""The report of all measurements: docs/overhead.md."""

import json
import os

from support.figures import Aims, table


def load(folder, name):
    path = os.path.join(folder, name + ".json")
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def text(parts, folder, is_quick):
    """Leaves out quick measurements, unless `is_quick`."""
    machine = load(folder, "machine")
    results = {part.name: result for part in parts
               if (result := load(folder, part.name)) is not None and result.get("quick", True) == is_quick}
    aims = Aims()
    sections = [section for part in parts if (section := part_section(part, results, aims))]
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items() if version)
    return "\n\n".join([f"""<!-- SPDX-License-Identifier: Apache-2.0 -->
# What flamed costs

Written by `./dev bench --write` on {machine["date"]}: {machine["cpu"]}, {machine["cpus"]} CPUs, {machine["memory_bytes"] / 2**30:.0f} GiB, Linux {machine["kernel"]},
{machine["system"]}; {versions}. Times differ on other machines; run it there.""",
                        aims_section(aims).rstrip(), *(section.rstrip() for section in sections), sources_section(results)]).rstrip()


def part_section(part, results, aims):
    result = results.get(part.name, {})
    if "skipped" in result and part.has_section:
        return f"## {part.name.capitalize()}\n\nSKIP: {result['skipped']}"
    return part.section(results, aims)


def sources_section(results):
    """Parts can be measured separately, and may then be of different commits."""
    rows = [(name, result.get("source") or "unknown", result.get("date", "unknown"), f"{result['took_s']:.0f}")
            for name, result in results.items()]
    return "## When each part was measured\n\n" + table(("part", "commit", "date", "took, s"), rows)


def aims_section(aims):
    if not aims.rows:
        return ""
    return "## Targets\n\n" + table(("", "target", "measured", ""), aims.rows)
