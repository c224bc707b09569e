# SPDX-License-Identifier: Apache-2.0
"""Loaded: BPF programs and maps loaded since a given moment, with their time and memory."""

import json
import shutil
import subprocess

from support.skip import Skip


def listed(kind):
    """Programs or maps of the whole kernel by their ids."""
    tool = shutil.which("bpftool") or shutil.which("/usr/sbin/bpftool")
    if tool is None:
        raise Skip("there is no bpftool here")
    shown = subprocess.run([tool, "--json", kind, "show"], capture_output=True, check=False)
    return {entry["id"]: entry for entry in json.loads(shown.stdout or "[]") if "id" in entry}


class Loaded:
    def __init__(self):
        self.others = {kind: set(listed(kind)) for kind in ("prog", "map")}

    def entries(self, kind):
        return [entry for number, entry in listed(kind).items() if number not in self.others[kind]]

    def runs(self):
        """(runs, seconds) of the timers' programs while the kernel measured."""
        programs = [entry for entry in self.entries("prog") if entry.get("type") == "perf_event"]
        return (sum(entry.get("run_cnt", 0) for entry in programs),
                sum(entry.get("run_time_ns", 0) for entry in programs) / 1e9)

    def memory(self):
        """Bytes of maps and programs by the kernel's account."""
        return {"maps": sum(entry.get("bytes_memlock", 0) for entry in self.entries("map")),
                "programs": sum(entry.get("bytes_memlock", 0) for entry in self.entries("prog"))}
