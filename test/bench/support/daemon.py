# SPDX-License-Identifier: Apache-2.0
"""Daemon: flamed as it runs on a machine, and its costs, measured from outside."""

import http.client
import json
import re
import socket
import subprocess
import time

from support import machine
from support.bpf import Loaded
from support.group import Group, cpu_seconds_by_thread, lines_of


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Daemon:
    def __init__(self, binary, *arguments):
        self.loaded = Loaded()
        self.group = Group("flamed")
        self.port = free_port()
        self.started_at = time.monotonic()
        self.process = self.group.start([binary, "--listen", f"127.0.0.1:{self.port}", *arguments],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            self.wait_until_ready()
        except BaseException:
            self.group.end()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.group.end()

    def wait_until_ready(self):
        until = time.monotonic() + 30
        while time.monotonic() < until:
            if self.process.poll() is not None:
                break
            try:
                if self.ask("/readyz")[0] == 200:
                    return
            except OSError:
                pass
            time.sleep(0.005)
        raise RuntimeError("flamed did not become ready: " + self.last_words())

    def last_words(self):
        self.process.terminate()
        return self.process.stderr.read().decode(errors="replace").strip()[-500:]

    def ask(self, target):
        """Status, headers and body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", target)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read().decode()
        finally:
            connection.close()

    def get_json(self, target):
        return json.loads(self.ask(target)[2])

    def metrics(self):
        """Each metric summed over its labels, and each series by itself."""
        sums = {}
        for line in self.ask("/metrics")[2].splitlines():
            if line and not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                sums[name] = float(value)
                short = re.split("[{ ]", name, maxsplit=1)[0]
                if short != name:
                    sums[short] = sums.get(short, 0) + float(value)
        return sums

    def reading(self):
        """All counters."""
        runs, run_seconds = self.loaded.runs()
        threads = cpu_seconds_by_thread(self.process.pid)
        given, taken = self.group.switches()
        return {"time": time.monotonic(), "all": self.group.cpu_seconds(), "daemon": sum(threads.values()),
                "threads": threads, "given": given, "taken": taken, "runs": runs, "run_seconds": run_seconds,
                "busy": machine.busy_seconds(), "interrupts": machine.interrupts()}

    def ring_bytes(self):
        """Perf buffers, as mapped."""
        found = 0
        for line in lines_of(f"/proc/{self.process.pid}/maps"):
            if "[perf_event]" in line:
                begin, end = (int(word, 16) for word in line.split()[0].split("-"))
                found += end - begin
        return found

    def memory(self):
        used = self.loaded.memory()
        used["perf_buffers"] = self.ring_bytes()
        sizes = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines_of(f"/proc/{self.process.pid}/status")
                 if line.startswith("Rss")}
        daemon = self.group.resident_bytes([self.process.pid])
        used["resident"] = {"own": sizes.get("RssAnon", 0), "files": daemon - sizes.get("RssAnon", 0),
                            "helpers": self.group.resident_bytes() - daemon}
        return used

    def system_calls_per_second(self, counter, seconds):
        """None if the kernel does not tell."""
        run = subprocess.run([counter, str(self.group.id), str(seconds)], capture_output=True, text=True, check=False)
        return int(run.stdout) / seconds if run.returncode == 0 else None


def difference(before, after):
    """The difference between two readings."""
    result = {key: after[key] - before[key] for key in after if key not in ("threads",)}
    result["threads"] = {name: used - before["threads"].get(name, 0) for name, used in after["threads"].items()}
    result["workers"] = max(0.0, result["all"] - result["daemon"])
    return result
