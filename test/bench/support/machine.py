# SPDX-License-Identifier: Apache-2.0
"""The machine's description, and its activity."""

import os
import platform
import re
import shutil
import subprocess
import time


def cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def system():
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:
        return platform.system()


def version_of(*command):
    """The first number with a dot in the program's version output."""
    if shutil.which(command[0]) is None:
        return None
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"\d+\.[\w.+~-]+", said.stdout + said.stderr)
    return found[0] if found else None


def facts(flamed):
    memory = next(line for line in open("/proc/meminfo", encoding="ascii") if line.startswith("MemTotal"))
    return {
        "date": time.strftime("%Y-%m-%d"),
        "cpu": cpu_model(),
        "cpus": os.cpu_count(),
        "memory_bytes": int(memory.split()[1]) * 1024,
        "kernel": platform.release(),
        "system": system(),
        "versions": {
            "flamed": version_of(flamed, "--version"),
            "perf": version_of("perf", "--version"),
            "bpftrace": version_of("bpftrace", "--version"),
            "python3": version_of("/usr/bin/python3", "--version"),
            "node": version_of("node", "--version"),
            "sqlite3": version_of("sqlite3", "--version"),
            "openssl": version_of("openssl", "version"),
            "g++": version_of("g++", "-dumpfullversion"),
        },
    }


def source():
    """The sources that the program was built from, if it is up to date: the commit, and whether there were changes."""
    told = subprocess.run(["git", "describe", "--always", "--dirty=, changed", "--abbrev=7", "--exclude=*"],
                          capture_output=True, text=True, check=False)
    return told.stdout.strip() or None


def busy_seconds():
    """The time that all CPUs together were not idle, since boot, without time stolen by other guests."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    user, nice, kernel, _idle, _wait, interrupt, soft, _steal = ticks
    return (user + nice + kernel + interrupt + soft) / os.sysconf("SC_CLK_TCK")


def interrupts():
    """Interrupts of all kinds, over all CPUs."""
    total = 0
    with open("/proc/interrupts", encoding="ascii") as file:
        cpus = len(file.readline().split())
        for line in file:
            total += sum(int(word) for word in line.split()[1 : cpus + 1] if word.isdigit())
    return total


class KernelStatistics:
    """Makes the kernel measure its programs' time, until the end."""

    PATH = "/proc/sys/kernel/bpf_stats_enabled"

    def __enter__(self):
        with open(self.PATH, encoding="ascii") as file:
            self.before = file.read()
        self.write("1")
        return self

    def __exit__(self, *_):
        self.write(self.before)

    def write(self, value):
        with open(self.PATH, "w", encoding="ascii") as file:
            file.write(value)


def load_average():
    return os.getloadavg()[0]
