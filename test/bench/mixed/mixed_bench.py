#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how many user stacks of Debian's programs are whole, and whether they are right.

    mixed_bench.py [--warm-up S] FLAMED [SECONDS [PROGRAM...]]

Each program that is installed runs for SECONDS (20) after a warm-up (12 s; with 0, first samples are compared),
sampled by three profilers at the same time: flamed by unwind tables, flamed by frame pointers, and `perf record
--call-graph dwarf`, which copies the stack with each sample and unwinds it later by the same unwind information with
other code. One JSON object on stdout. Needs root, perf and binutils.

What the two see can't be compared sample by sample, since their timers differ. So it is done stack by stack: a stack of
flamed agrees with perf where perf saw the very same stack, or saw each of its steps from a caller to its callee, and its
beginning, in some stack. Functions are compared by where they begin, because names of one address differ between tools.
As a measure for what chance alone leaves, the second half of perf's samples is held against the first in the same way.
"""

import argparse
import bisect
import collections
import functools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

JAVA_SOURCE = """
import java.util.*;
public class Load {
  static long work(int n) {
    Map<String, Integer> counts = new TreeMap<>();
    for (int i = 0; i < n; i++) counts.merge("k" + (i * 7919 % 1009), 1, Integer::sum);
    long sum = 0;
    for (int value : counts.values()) sum += value;
    return sum;
  }
  public static void main(String[] arguments) {
    long sum = 0;
    for (;;) sum += work(20000);
  }
}
"""
CPP_SOURCE = """
#include <functional>
#include <iostream>
#include <map>
#include <regex>
int main(int argc, char** argv) {
  std::map<std::string, std::function<int(int)>> table{{"a", [](int x) { return x + 1; }}};
  std::cout << std::regex_match(argv[0], std::regex("[a-z]+(b|c)*")) << table["a"](argc);
}
"""
# Built with -O3 -mavx2: vectors on the stack, whose size is known only at run time, so that gcc aligns it and finds the
# frame by a register other than sp and fp.
ALIGNED_SOURCE = """
#include <cstdlib>
typedef double Vector __attribute__((vector_size(32)));
static int compare(const void* a, const void* b) {
  volatile Vector both = {*(const double*)a, *(const double*)b};
  return (both[0] > both[1]) - (both[0] < both[1]);
}
__attribute__((noinline)) static double descend(int depth, int size) {
  volatile Vector vector = {(double)depth, (double)size};
  double values[size];
  for (int i = 0; i < size; i++) values[i] = i * 7919 % 1009 + vector[0];
  std::qsort(values, size, sizeof(*values), compare);
  return vector[1] + values[size / 2] + (depth == 0 ? 0 : descend(depth - 1, size));
}
int main(int argc, char**) {
  volatile double sink = 0;
  for (;;) sink = sink + descend(20, 50 + argc);
}
"""
PYTHON = """
import json, re
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
while True:
    rows = [{"a": i * 7919 % 1009, "b": str(i)} for i in range(2000)]
    json.loads(json.dumps(rows)); sorted(rows, key=lambda row: row["a"]); fib(16); re.sub("[0-9]+", "x", str(rows[:500]))
"""
PERL = """
while (1) { my %h; $h{$_ * 7919 % 1009} .= "x$_" for 1 .. 20000; my @k = sort { $h{$a} cmp $h{$b} } keys %h;
  for (1 .. 20) { my $s = join ",", @k; $s =~ s/(\\d+),(\\d+)/$2-$1/g; } }
"""
NODE = """
for (;;) { const a = []; for (let i = 0; i < 20000; i++) a.push({k: i * 7919 % 1009, s: "" + i});
  a.sort((x, y) => x.k - y.k); JSON.parse(JSON.stringify(a)); }
"""
SQL = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000)
SELECT i * 7919 % 1009 AS k, count(*), group_concat(substr(hex(i), 1, 2)) FROM n GROUP BY k;
"""
# More than flamed's default of 99, so that rare steps are seen, too.
PERF_HZ = 397
LABELS = {}
# The functions in which a thread or a process begins, by perf's names.
ENTRIES = {"_start", "_dl_start_user", "clone", "__clone", "clone3", "__clone3"}


class Program:
    """A command line; the comms of the processes to look at, and of their helpers, if they are not the command itself; and
    how much stack perf copies: 16 KiB are too little for three of four stacks of the compiler."""

    def __init__(self, name, needs, command, comm=None, helpers=(), dump_bytes=16384):
        self.name, self.needs, self.command = name, needs, command
        self.comm, self.helpers, self.dump_bytes = comm, helpers, dump_bytes


def programs(folder):
    def file(name, text):
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        return path

    cpp = file("load.cc", CPP_SOURCE)
    aligned = os.path.join(folder, "aligned")
    subprocess.run(["g++", "-O3", "-mavx2", "-o", aligned, file("aligned.cc", ALIGNED_SOURCE)],
                   check=True)
    noise = os.path.join(folder, "noise")
    # Bytes that compress by half.
    with open(noise, "wb") as out:
        out.write(bytes(byte & 0x3F for byte in os.urandom(64 << 20)))
    return [
        Program("python3", "/usr/bin/python3", ["/usr/bin/python3", "-c", PYTHON]),
        Program("perl", "/usr/bin/perl", ["/usr/bin/perl", "-e", PERL]),
        Program("sqlite3", "/usr/bin/sqlite3", ["/usr/bin/sqlite3", ":memory:", SQL]),
        Program("openssl", "/usr/bin/openssl", ["/usr/bin/openssl", "speed", "-seconds", "999", "rsa2048"]),
        Program("xz", "/usr/bin/xz", ["/usr/bin/xz", "-6", "--keep", "--stdout", noise]),
        Program("g++", "/usr/bin/g++", ["/bin/sh", "-c", f"while :; do g++ -O2 -c {cpp} -o {cpp}.o; done"], "cc1plus",
                ("cc1plus", "g++", "as", "sh"), 65528),
        Program("aligned", aligned, [aligned]),
        Program("node", "/usr/bin/node", ["/usr/bin/node", "-e", NODE]),
        Program("java", "/usr/bin/java", ["/usr/bin/java", file("Load.java", JAVA_SOURCE)]),
        Program("java, frame pointers", "/usr/bin/java",
                ["/usr/bin/java", "-XX:+PreserveFramePointer", file("Load.java", JAVA_SOURCE)]),
    ]


class Daemon:
    def __init__(self, binary, *arguments):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.process = subprocess.Popen([binary, "--listen", f"127.0.0.1:{self.port}", *arguments],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(150):
            try:
                self.get("/readyz")
                return
            except OSError:
                time.sleep(0.1)
        raise SystemExit("the daemon did not become ready")

    def get(self, target):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{target}", timeout=60) as answer:
            return answer.read().decode()

    def profile(self, query):
        return json.loads(self.get("/profile?" + query))

    def bpf(self):
        """The kernel program's runs and seconds so far."""
        text = self.get("/metrics")
        return [float(re.search(rf"^flamed_bpf_{name} (\S+)", text, re.M)[1]) for name in
                ("runs_total", "run_seconds_total")]

    def end(self):
        self.process.terminate()
        self.process.wait()


class Symbols:
    """The functions of an ELF file by its own symbol tables, as flamed reads them.

    A function has several names (aliases), and a name without parameters several functions (overloads): what hangs
    together is one class, which tools can name as they like.
    """

    def __init__(self, path):
        self.ranges, self.class_of, self.loads, self.entry = [], {}, [], None
        if not os.path.exists(path):
            return
        text = subprocess.run(["readelf", "-W", "-h", "-l", "-s", "--dyn-syms", "-C", path], capture_output=True,
                              text=True, check=False).stdout
        sizes = {}
        for line in text.splitlines():
            entry = re.match(r"\s+Entry point address:\s+(0x\S+)", line)
            if entry:
                self.entry = int(entry[1], 16)
            load = re.match(r"\s+LOAD\s+(0x\S+) (0x\S+) \S+ (0x\S+)", line)
            if load:
                self.loads.append(tuple(int(word, 16) for word in load.groups()))
            symbol = re.match(r"\s*\d+: ([0-9a-f]+)\s+(0x[0-9a-f]+|\d+) (FUNC|IFUNC|NOTYPE)\s+\S+\s+\S+\s+(\d+) (.+)$", line)
            if symbol:
                start, size = int(symbol[1], 16), int(symbol[2], 0)
                sizes[start] = max(size, sizes.get(start, 0))
                self.join(start, plain(symbol[5].split("@")[0]))
        self.ranges = sorted(sizes.items())

    def find(self, member):
        while self.class_of.get(member, member) != member:
            member = self.class_of[member]
        return member

    def join(self, start, name):
        self.class_of.setdefault(start, start)
        self.class_of[self.find(name)] = self.find(start)

    def address_of(self, file_offset):
        for offset, address, size in self.loads:
            if offset <= file_offset < offset + size:
                return file_offset - offset + address
        return None

    def function_at(self, file_offset):
        at = self.address_of(file_offset)
        if at is None:
            return None
        i = bisect.bisect_right(self.ranges, (at, 1 << 62)) - 1
        return self.find(self.ranges[i][0]) if i >= 0 and at < sum(self.ranges[i]) else None

    def function_named(self, name):
        return self.find(name) if name in self.class_of else None

    def is_entry(self, file_offset):
        at = self.address_of(file_offset)
        return at is not None and self.entry is not None and self.entry <= at < self.entry + 64


def plain(name):
    """A name without the parts that tools write differently: return type, parameters, clone suffixes."""
    name = re.sub(r" \[clone [^]]*\]|\.(cold|part|isra|constprop|lto_priv)(\.\d+)*", "", name)
    name = name.replace("(anonymous namespace)", "{anonymous}")
    depth, begin = 0, 0
    for i, letter in enumerate(name):
        if letter in "<" and not name[:i].endswith("operator"):
            depth += 1
        elif letter == ">" and depth > 0:
            depth -= 1
        elif letter == " " and depth == 0 and not name[:i].endswith("operator"):
            begin = i + 1
        elif letter == "(" and depth == 0 and i > 0 and not name[:i].endswith("operator"):
            return name[begin:i]
    return name[begin:]


@functools.lru_cache(None)
def symbols(path):
    return Symbols(path)


@functools.lru_cache(None)
def label(path):
    """One name for a file with several (hard links, such as perl's)."""
    try:
        status = os.stat(path)
    except OSError:
        return os.path.basename(path)
    return LABELS.setdefault((status.st_dev, status.st_ino), os.path.basename(path))


def path_of(module, files):
    """flamed has only a module's file name: it is one of the files that perf saw, or beside one."""
    if module in files:
        return files[module]
    beside = (os.path.join(os.path.dirname(path), module) for path in files.values())
    return next(filter(os.path.exists, beside), module)


def token(path, name=None, file_offset=None):
    """A function independent of the tool's name: file and start. Functions without a symbol count as one per file."""
    table = symbols(path)
    if name is not None and name.endswith("@plt"):
        return f"{label(path)}:?"  # flamed's own name: symbol tables have none for stubs
    start = table.function_at(file_offset) if file_offset is not None else table.function_named(plain(name))
    if start is None and file_offset is None and not table.ranges:
        return f"{label(path)}:{plain(name)}"
    # A name outside of the file's own tables comes from a debug file, which perf may not have found.
    return f"{label(path)}:{'?' if start is None else start if isinstance(start, str) else hex(start)}"


def flamed_stacks(tree, files):
    """Whole user stacks with a token for each frame, outermost first, and their counts."""
    stacks = collections.Counter()

    def walk(node, above):
        kind = node["kind"]
        if kind == "marker":
            return
        here = above
        count = node["self"]
        if kind in ("native", "vdso", "jit", "unnamed", "unknown"):
            module = node.get("module", "")
            unknown = re.match(r"\[unknown\] \((.*)\+0x([0-9a-f]+)\)$", node["name"])
            file_offset = int(unknown[2], 16) if unknown else node.get("offset")
            if unknown:
                module = unknown[1]
            path = path_of(module, files)
            here = above + (token(path, node["name"]) if file_offset is None else token(path, file_offset=file_offset),)
        elif kind == "kernel":
            # The user part ends above: everything from here on belongs to it.
            if above:
                stacks[above] += node["value"]
            return
        if count and here:
            stacks[here] += count
        for child in node.get("children", []):
            walk(child, here)

    walk(tree, ())
    return stacks


def perf_stacks(data, comm):
    """All user stacks in the order of time, outermost first: (tokens, is it whole); and the path by file name."""
    text = subprocess.run(["perf", "script", "-i", data, "--no-inline", "-F", "comm,ip,sym,dso"], capture_output=True,
                          text=True, check=False).stdout
    stacks, files, frames, is_whole, wanted = [], {}, [], False, False
    for line in text.splitlines() + [""]:
        if not line.strip():
            if wanted and frames:
                stacks.append((tuple(reversed(frames)), is_whole))
            frames, is_whole, wanted = [], False, False
            continue
        frame = re.match(r"\s+([0-9a-f]+) (.*) \(([^()]*(?:\([^()]*\))?)\)$", line)
        if frame is None:
            wanted = comm is None or line.split()[0] == comm
            continue
        ip, name, path = int(frame[1], 16), frame[2], frame[3]
        if ip >> 63 or path.startswith("[kernel") or path.endswith(".ko"):
            continue
        files[os.path.basename(path)] = path
        frames.append(token(path, file_offset=ip))
        is_whole = name in ENTRIES or symbols(path).is_entry(ip)
    return stacks, files


def steps(stack):
    return [("", stack[0])] + list(zip(stack, stack[1:]))


def agreement(stacks, seen):
    """Share of `stacks` that are in `seen`, or all of whose steps are."""
    if not stacks or not seen:
        return None
    known = {step for stack in seen for step in steps(stack)}
    good = sum(count for stack, count in stacks.items()
               if stack in seen or all(step in known for step in steps(stack)))
    return good / sum(stacks.values())


def steps_agreement(stacks, seen):
    """Share of the steps in `stacks` that are in `seen`."""
    known = {step for stack in seen for step in steps(stack)}
    all_steps = [(step in known, count) for stack, count in stacks.items() for step in steps(stack)]
    total = sum(count for _, count in all_steps)
    return sum(count for is_known, count in all_steps if is_known) / total if total and known else None


def strange_steps(stacks, seen):
    """The steps that keep stacks from agreeing, most frequent first, for an analysis."""
    known = {step for stack in seen for step in steps(stack)}
    strange = collections.Counter()
    for stack, count in stacks.items():
        for step in steps(stack):
            if step not in known:
                strange[" > ".join(step)] += count
    return dict(strange.most_common(5))


def quality_of(profile):
    truncated = {reason: count for reason, count in profile["quality"]["truncated"].items() if count}
    whole = profile["quality"]["whole"]
    return {"samples": whole + sum(truncated.values()), "whole": whole, "truncated": truncated}


def merged(profiles):
    total = {"samples": 0, "whole": 0, "truncated": collections.Counter()}
    for quality in map(quality_of, profiles):
        total["samples"] += quality["samples"]
        total["whole"] += quality["whole"]
        total["truncated"].update(quality["truncated"])
    total["truncated"] = dict(total["truncated"])
    return total


def share(quality):
    return quality["whole"] / quality["samples"] if quality["samples"] else None


def profiles(daemon, program, pid, start_ms, comms=None):
    """Profiles of the program's process, or of all sampled processes with these comms since."""
    if not program.comm:
        return [daemon.profile(f"pid={pid}&from={start_ms}")]
    listed = json.loads(daemon.get(f"/processes?from={start_ms}"))["processes"]
    return [daemon.profile(f"pid={process['id']}&from={start_ms}") for process in listed if process["comm"] in (comms or [program.comm])]


def measure(program, options, tables, pointers, folder):
    data = os.path.join(folder, "perf.data")
    load = subprocess.Popen(program.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                            start_new_session=True)
    try:
        begun_ms = int(time.time() * 1000)
        time.sleep(options.warm_up)
        at_first = merged(profiles(tables, program, load.pid, begun_ms))
        before = tables.bpf()
        start_ms = int(time.time() * 1000)
        target = ["-a"] if program.comm else ["-p", str(load.pid)]
        subprocess.run(["perf", "record", "-q", "--call-graph", f"dwarf,{program.dump_bytes}", "-F", str(PERF_HZ), "-e", "cpu-clock", "-o", data,
                        *target, "--", "sleep", str(options.seconds)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       check=False)
        time.sleep(1.5)  # a drain
        after = tables.bpf()
        answers = [profiles(daemon, program, load.pid, start_ms) for daemon in (tables, pointers)]
        build = merged(profiles(tables, program, load.pid, start_ms, program.helpers))
    finally:
        os.killpg(load.pid, signal.SIGKILL)
        load.wait()
    by_perf, files = perf_stacks(data, program.comm)
    by_flamed = collections.Counter()
    frames = 0
    for profile in answers[0]:
        by_flamed.update(flamed_stacks(profile, files))
    frames = sum(len(stack) * count for stack, count in by_flamed.items())
    whole = [stack for stack, is_whole in by_perf if is_whole]
    halves = [collections.Counter(half) for half in (whole[:len(whole) // 2], whole[len(whole) // 2:])]
    perf_whole = collections.Counter(whole)
    runs = after[0] - before[0]
    quality = merged(answers[0])
    by_pointers = merged(answers[1])
    return {
        "tables": {**quality, "whole_share": share(quality), "whole_share_at_first": share(at_first)},
        "frame_pointers": {**by_pointers, "whole_share": share(by_pointers)},
        "perf": {"samples": len(by_perf), "whole_share": len(whole) / len(by_perf) if by_perf else None},
        "agreement": {
            "flamed_in_perf": agreement(by_flamed, perf_whole),
            "perf_in_flamed": agreement(perf_whole, by_flamed),
            "perf_in_itself": agreement(halves[1], halves[0]),
            "flamed_steps_in_perf": steps_agreement(by_flamed, perf_whole),
            "perf_steps_in_flamed": steps_agreement(perf_whole, by_flamed),
            "perf_steps_in_itself": steps_agreement(halves[1], halves[0]),
            "only_flamed": strange_steps(by_flamed, perf_whole),
            "only_perf": strange_steps(perf_whole, by_flamed),
        } if len(whole) > len(by_perf) / 2 else None,
        "with_helpers": {**build, "whole_share": share(build)} if program.helpers else None,
        "frames_per_whole_stack": frames / sum(by_flamed.values()) if by_flamed else None,
        "bpf_ns_per_sample": (after[1] - before[1]) / runs * 1e9 if runs else None,
    }


def main():
    parser = argparse.ArgumentParser()
    # Two drains and the time to build: then the program's files have their tables.
    parser.add_argument("--warm-up", type=float, default=12)
    parser.add_argument("flamed")
    parser.add_argument("seconds", type=int, nargs="?", default=20)
    parser.add_argument("programs", nargs="*")
    options = parser.parse_args()
    report = {"seconds": options.seconds, "warm_up_seconds": options.warm_up, "programs": {}}
    statistics = "/proc/sys/kernel/bpf_stats_enabled"
    with open(statistics, encoding="ascii") as file:
        statistics_before = file.read()
    with tempfile.TemporaryDirectory() as folder:
        always = ("--cpu-budget", "100%")
        try:
            with open(statistics, "w", encoding="ascii") as file:
                file.write("1")
            for program in programs(folder):
                if not os.path.exists(program.needs) or (options.programs and program.name not in options.programs):
                    continue
                print(f"{program.name} ...", file=sys.stderr)
                tables = Daemon(options.flamed, *always)
                pointers = Daemon(options.flamed, *always, "--unwind", "frame-pointers")
                try:
                    report["programs"][program.name] = measure(program, options, tables, pointers, folder)
                finally:
                    tables.end()
                    pointers.end()
        finally:
            with open(statistics, "w", encoding="ascii") as file:
                file.write(statistics_before)
    measured = report["programs"].values()
    for kind in ("tables", "frame_pointers"):
        samples = sum(program[kind]["samples"] for program in measured)
        report[kind] = {"whole_share": sum(program[kind]["whole"] for program in measured) / samples if samples else None}
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
