#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many stacks of programs that have just begun are whole.

    first_samples.py [--before S] [--show-cut] BUILD [LOAD...]

BUILD is a build directory. The daemon is started S seconds (2) before each load: in its first 30 s the rows of all files
are worth building. For each LOAD (all of them) prints the samples of its processes, the share of whole stacks, and why
the others are not; with --show-cut these stacks, too. Needs root, and a machine that is idle otherwise. Loads whose
program is not installed are left out, and named.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from loads.build import write_sources  # noqa: E402
from support.daemon import Daemon  # noqa: E402

ONE_LINE = "int main(void) { return 0; }\n"
PYTHON = "import time\nend = time.monotonic() + 0.2\nn = 0\nwhile time.monotonic() < end: n += len(str(n))"
NODE = "const end = Date.now() + 4000; let n = 0; while (Date.now() < end) n += String(n).length"
RUBY = "e = Time.now + 4; n = 0; n += n.to_s.size while Time.now < e"
PHP = "$e = microtime(true) + 4; $n = 0; while (microtime(true) < $e) $n += strlen((string)$n);"
ERLANG = "lists:foldl(fun(_, A) -> A + length(integer_to_list(A)) end, 0, lists:seq(1, 20000000)), halt()."
# Name: the program that it needs, and a shell command. {dir} is a scratch directory with one.c and the sources of the
# benchmarks' build in it.
LOADS = {
    "gcc": ("gcc", "for i in $(seq 300); do gcc -c {dir}/one.c -o {dir}/one.o; done"),
    # With a compiler cache it would be another load.
    "build": ("g++", "export PATH=/usr/bin:/bin; for i in 1 2 3; do make -C {dir} -s clean; make -C {dir} -s -j$(nproc); done"),
    "shell": ("git", "for i in $(seq 1000); do sh -c 'git --version; perl -e 1' > /dev/null; done"),
    "python": ("python3", f"for i in $(seq 200); do python3 -c '{PYTHON}'; done"),
    "pip": ("pip3", "for i in $(seq 8); do pip3 list > /dev/null; done"),
    "npm": ("npm", "for i in $(seq 8); do npm ls --global --all > /dev/null; done"),
    "openssl": ("openssl", "timeout 4 openssl speed -seconds 4 rsa2048 2> /dev/null > /dev/null"),
    "python4": ("python3", f"python3 -c '{PYTHON.replace('0.2', '4')}'"),
    "node": ("node", f"node -e '{NODE}'"),
    "ruby": ("ruby", f"ruby -e '{RUBY}'"),
    "php": ("php", f"php -r '{PHP}'"),
    "erlang": ("erl", f"timeout 4 erl -noshell -eval '{ERLANG}'"),
}


def count_of(line):
    return int(line.rsplit(" ", 1)[1])


def run_load(options, name):
    program, command = LOADS[name]
    with tempfile.TemporaryDirectory() as folder, Daemon(os.path.join(options.build, "flamed")) as daemon:
        with open(os.path.join(folder, "one.c"), "w", encoding="utf-8") as source:
            source.write(ONE_LINE)
        write_sources(folder)
        time.sleep(options.before)
        began = time.time()
        shell = subprocess.Popen(["sh", "-c", command.replace("{dir}", folder)])
        shell.wait()
        took_s = time.time() - began
        time.sleep(2.5)
        answer = daemon.get_json(f"/profile?format=top&tree={shell.pid}&from={began}&max_nodes=1")
        metrics = daemon.metrics()
        folded = daemon.ask(f"/profile?format=folded&tree={shell.pid}&from={began}")[2].splitlines()
    quality = answer["quality"]
    cut = {reason: count for reason, count in quality["truncated"].items() if count}
    samples = quality["whole"] + quality["guessed"] + sum(cut.values())
    share = quality["whole"] / samples if samples else 0
    late = {key: int(metrics.get(f"flamed_{key}", 0))
            for key in ("stack_slices_total", "stack_slices_refused_total", "samples_walked_late_total",
                        "late_walks_given_up_total")}
    in_jit = sum(count_of(line) for line in folded if "(anon+" in line or "(memfd:" in line)
    if options.show_cut:
        for line in sorted((line for line in folded if "[truncated" in line), key=lambda line: -count_of(line)):
            print("   ", line[:300])
    print(f"{name}: {samples} samples in {took_s:.1f} s, {100 * share:.1f} % whole, {quality['guessed']} guessed, "
          f"{in_jit} through code compiled at run time; {json.dumps(cut)}; "
          f"{metrics['flamed_sampling_frequency_hertz']} Hz; {json.dumps(late)}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--before", type=float, default=2)
    parser.add_argument("--show-cut", action="store_true")
    parser.add_argument("build")
    parser.add_argument("loads", nargs="*", choices=[*LOADS, []])
    options = parser.parse_args()
    for name in options.loads or LOADS:
        if shutil.which(LOADS[name][0]) is None:
            print(f"{name}: {LOADS[name][0]} is not installed")
            continue
        run_load(options, name)


main()
