#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the exact mode of waiting costs a switch, beside other tools.

  off_cpu_cost.py FLAMED [SECONDS]        (default 1; needs root)

Two processes on one CPU hand a byte to each other through pipes, as fast as they can: a round is two switches. The CPU
time of both is compared with that under flamed, for another process (what all programs of the machine pay) and for one
of the two, which flamed may end by itself after some seconds, and under offcputime (bcc's as a script and as a program, of Debian's bpfcc-tools and
libbpf-tools) and perf record --off-cpu, where they are there and the kernel has what they need. Each is measured
in turns with a measurement without a tool. One JSON object on stdout, nanoseconds a switch.
"""
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

PORT = 22410


def cpu_ns():
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used) * 1e9


def ping_pong(seconds):
    """Nanoseconds of a switch."""
    before_ns = cpu_ns()
    ours, theirs = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.sched_setaffinity(0, {0})
        os.close(ours[1])
        os.close(theirs[0])
        while os.read(ours[0], 1):
            os.write(theirs[1], b"x")
        os._exit(0)
    os.sched_setaffinity(0, {0})
    rounds = 0
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        for _ in range(1000):
            os.write(ours[1], b"x")
            os.read(theirs[0], 1)
        rounds += 1000
    os.close(ours[1])
    os.waitpid(child, 0)
    for end in (ours[0], *theirs):
        os.close(end)
    return (cpu_ns() - before_ns) / rounds / 2


class Flamed:
    """Measures `pid` exactly while it is used."""

    def __init__(self, pid):
        self.pid = pid

    def __enter__(self):
        before = measurements()
        self.client = subprocess.Popen(["curl", "-s", "-o", "/dev/null",
                                        f"http://127.0.0.1:{PORT}/off_cpu?seconds=60&pid={self.pid}"])
        wait_until(lambda: measurements() > before)

    def __exit__(self, *unused):
        self.client.kill()
        self.client.wait()
        wait_until(lambda: "being measured" not in health("off_cpu"))


class Tool:
    """A program that runs while it is used."""

    def __init__(self, *command):
        self.command = command

    def __enter__(self):
        if self.command[0] == "perf":
            tried = subprocess.run(["perf", "record", "--off-cpu", "-o", "/dev/null", "true"], capture_output=True,
                                   text=True, check=False)
            if "being ignored" in tried.stderr:
                raise OSError("this perf has no --off-cpu")
        self.program = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        time.sleep(4)  # bcc compiles its program first
        if self.program.poll() is not None:
            raise OSError(self.program.stderr.read().strip().splitlines()[-1:])

    def __exit__(self, *unused):
        self.program.send_signal(signal.SIGINT)
        try:
            self.program.wait(60)
        except subprocess.TimeoutExpired:
            self.program.kill()


def health(name):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/healthz", timeout=10) as answer:
            return next(part["detail"] for part in json.load(answer)["components"] if part["name"] == name)
    except OSError:
        return ""


def measurements():
    """Begun so far."""
    with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("flamed_off_cpu_measurements_total "))


def wait_until(condition):
    limit = time.monotonic() + 60
    while not condition():
        if time.monotonic() > limit:
            raise OSError("it took longer than a minute")
        time.sleep(0.05)


def measure(make, seconds, turns=3):
    plain, under = [], []
    for _ in range(turns):
        with make():
            under.append(ping_pong(seconds))
        plain.append(ping_pong(seconds))
    return {"without": round(statistics.median(plain)), "with": round(statistics.median(under)),
            "more": round(statistics.median(under) - statistics.median(plain))}


def main():
    flamed, seconds = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 1
    idle = subprocess.Popen(["sleep", "100000"])
    output = tempfile.mktemp()
    ways = {
        "flamed, another process": lambda: Flamed(idle.pid),
        "flamed, this process": lambda: Flamed(os.getpid()),
        "offcputime of bcc": lambda: Tool("offcputime-bpfcc", "-f"),
        "offcputime of libbpf-tools": lambda: Tool("offcputime"),
        "perf record --off-cpu": lambda: Tool("perf", "record", "-q", "--off-cpu", "-a", "-e", "dummy", "-o", output),
    }
    daemon = subprocess.Popen([flamed, "--listen", f"127.0.0.1:{PORT}"], stderr=subprocess.DEVNULL)
    figures = {"kernel": os.uname().release}
    try:
        wait_until(lambda: health("off_cpu") != "")
        for name, make in ways.items():
            try:
                figures[name] = measure(make, seconds)
            except OSError as error:
                figures[name] = f"not measured: {error}"
    finally:
        daemon.terminate()
        daemon.wait()
        idle.kill()
        if os.path.exists(output):
            os.remove(output)
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
