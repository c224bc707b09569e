#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# perf record and flamed sample the same load in the same seconds. Then each flag of bcc's profile is applied to both:
# to flamed by the query in docs/api.md, to perf by a selection of its samples. Needs root and linux-perf.
#
#   compare_with_perf.py FLAMED VICTIMS [SECONDS]
#
# FLAMED is the daemon, VICTIMS the folder of the kernel tests' programs. Prints a table for each flag: the functions
# with the most samples, with the counts of both, and by how many standard deviations of chance they differ. Exit
# status 1 when one differs by more than 4.
import collections
import json
import math
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

FREQUENCY = 99
FUNCTIONS = 20  # compared in each answer
MOST_DEVIATIONS = 4
KERNEL = 1 << 63

Sample = collections.namedtuple("Sample", "pid tid time frames")  # frames: (name, in the kernel), innermost first


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def plain(name):
    """A function's name as both write it: without offset, template arguments, parameters and suffixes of clones."""
    if name.startswith("["):
        return name
    name = re.sub(r"\+0x[0-9a-f]+$", "", name)
    while (shorter := re.sub(r"<[^<>]*>|\([^()]*\)", "", name)) != name:
        name = shorter
    return re.sub(r"\.(isra|constprop|part|cold|lto_priv)\b.*$", "", name.split("(")[0])


def perf_samples(data, start, end):
    """The samples of a recording by perf script, from `start` to `end` (seconds of unix time)."""
    script = subprocess.run(
        ["perf", "script", "--input", data, "--ns", "--fields", "pid,tid,time,ip,sym"],
        check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace").stdout
    head = re.compile(r"^\s*(-?\d+)/(-?\d+)\s+(\d+\.\d+):")
    frame = re.compile(r"^\s+([0-9a-f]+) (.*)$")
    current = None
    for line in script.splitlines():
        if match := head.match(line):
            current = Sample(int(match[1]), int(match[2]), float(match[3]), [])
        elif current and (match := frame.match(line)):
            current.frames.append((plain(match[2]), int(match[1], 16) >= KERNEL))
        elif not line.strip() and current:
            if current.pid > 0 and start <= current.time < end:  # pid 0 is the idle task
                yield current
            current = None


def functions_of(samples, side):
    """Function → samples in which it is innermost, for one side of the stacks."""
    counts = collections.Counter()
    for sample in samples:
        frames = [f for f in sample.frames if side == "both" or f[1] == (side == "kernel")]
        if frames:
            counts[frames[0][0]] += 1
    return counts


def functions_asked(port, query):
    """The same from flamed."""
    query = urllib.parse.urlencode({**query, "format": "top", "max_nodes": 100000, "inlines": 0})
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/profile?{query}", timeout=60) as answer:
        top = json.load(answer)
    counts = collections.Counter()
    for function in top["functions"]:
        if function["self"]:
            counts[plain(function["name"])] += function["self"]
    return counts, top["samples"]


def compare(flag, query, theirs, ours, samples):
    """Prints the table, and returns the largest deviation."""
    print(f"\n### `{flag}`: `{query}`\n")
    print(f"{sum(theirs.values())} samples of perf, {samples} of flamed\n")
    print("| function | perf | flamed | deviations |\n|---|---:|---:|---:|")
    largest = 0.0
    # Functions of both, so that one that only one of them has is compared, too.
    ranked = sorted(set(theirs) | set(ours), key=lambda name: (-theirs[name] - ours[name], name))
    # Functions without a name are called differently by design.
    ranked = [name for name in ranked if name and not name.startswith("[")][:FUNCTIONS]
    for name in ranked:
        deviations = (ours[name] - theirs[name]) / math.sqrt(ours[name] + theirs[name])
        largest = max(largest, abs(deviations))
        print(f"| {name} | {theirs[name]} | {ours[name]} | {deviations:+.1f} |")
    return largest


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: compare_with_perf.py FLAMED VICTIMS [SECONDS]")
    if os.geteuid() != 0 or not shutil.which("perf"):
        print("SKIP: needs root and perf (Debian: linux-perf)")
        sys.exit(77)
    flamed, victims = sys.argv[1:3]
    seconds = float(sys.argv[3]) if len(sys.argv) == 4 else 30
    port = free_port()
    started = []

    def start(*command):
        started.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        return started[-1]

    try:
        start(flamed, "--listen", f"127.0.0.1:{port}", "--frequency", str(FREQUENCY))
        time.sleep(5)
        chain = start(os.path.join(victims, "victim_known_chain"))
        reader = start(os.path.join(victims, "victim_system_calls"))
        time.sleep(5)
        with tempfile.TemporaryDirectory() as folder:
            data = os.path.join(folder, "perf.data")
            # CLOCK_REALTIME, so that both select the same window.
            perf = subprocess.Popen(
                ["perf", "record", "-F", str(FREQUENCY), "-e", "cpu-clock", "-k", "CLOCK_REALTIME", "-a", "-g",
                 "-o", data, "--", "sleep", str(seconds + 4)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(2)
            begin = round(time.time(), 3)
            time.sleep(seconds)
            end = round(time.time(), 3)
            if perf.wait() != 0:
                sys.exit("perf record failed")
            time.sleep(2)  # until the daemon has drained the window's samples
            samples = list(perf_samples(data, begin, end))

        window = {"from": f"{begin:.3f}", "to": f"{end:.3f}"}
        flags = [
            ("profile", {}, lambda s: True),
            ("-U", {"side": "user"}, lambda s: True),
            ("-K", {"side": "kernel"}, lambda s: True),
            ("-p PID", {"pid": chain.pid}, lambda s: s.pid == chain.pid),
            ("-p PID -U", {"pid": reader.pid, "side": "user"}, lambda s: s.pid == reader.pid),
            ("-p PID -K", {"pid": reader.pid, "side": "kernel"}, lambda s: s.pid == reader.pid),
            ("-L TID", {"tid": reader.pid}, lambda s: s.tid == reader.pid),
        ]
        largest = 0.0
        for flag, query, wanted in flags:
            theirs = functions_of(filter(wanted, samples), query.get("side", "both"))
            ours, asked = functions_asked(port, {**query, **window})
            shown = urllib.parse.urlencode({k: (v if k == "side" else k.upper()) for k, v in query.items()})
            largest = max(largest, compare(flag, shown, theirs, ours, asked))
        print(f"\nLargest deviation: {largest:.1f}")
        return 0 if largest <= MOST_DEVIATIONS else 1
    finally:
        for process in started:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    sys.exit(main())
