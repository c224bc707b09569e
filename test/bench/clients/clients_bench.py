#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The effect of many clients on a running flamed: idle ones, slow ones, and ones that send queries all the time.

    clients_bench.py [--check|--check-counts] FLAMED VICTIM [seconds for each part]      (default 60)

Three parts, with VICTIM (a program that keeps a CPU busy, told how many milliseconds) under way beside them:
  alone    one client that asks for /healthz twenty times a second
  held     the same beside 200 connections that are held: silent ones, ones that stay after an answer, ones that send a
           request byte by byte, and ones that ask for a profile and do not read the answer. Those that flamed closes
           come again after a second.
  pressed  wrk asks for a profile over 64 connections; left out where there is no wrk
The profile is VICTIM's. The whole machine's would also measure the time to read the names of all running programs.
Beside the times, flamed's memory, the samples lost, and the time of the kernel program per sample.

One JSON object on stdout. With --check a miss of what is promised is a failure: in `held` /healthz within 50 ms for 99 %
and 10 MB more memory at most; in `pressed` answers within 100 ms for 99 %, if it takes half a minute or more; every request
answered, nothing lost. Where the machine has other things to do, /healthz may take twice what it takes alone. With
--check-counts the times are not judged, so that it may stand among the tests. Needs root.
"""

import json
import multiprocessing
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HELD = 200
HEALTH_EVERY_S = 0.05
BPF_STATS = "/proc/sys/kernel/bpf_stats_enabled"
PROMISED_HEALTH_MS = 50
PROMISED_PROFILE_MS = 100
PROMISED_MEMORY_BYTES = 10_000_000
WARM_UP_S = 30
WARM_S = 0.05  # an answer with all names known
STEADY_SECONDS = 30  # in a shorter run the slowest answers are from the first second


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def ask(port, target, timeout=10):
    """Status and body, over a connection of its own."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as client:
        client.sendall(f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while piece := client.recv(65536):
            answer += piece
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


def loaded_programs():
    """The kernel's BPF programs by their ids; none without bpftool."""
    if shutil.which("bpftool") is None:
        return {}
    shown = subprocess.run(["bpftool", "--json", "prog", "show"], capture_output=True, check=False)
    return {program["id"]: program for program in json.loads(shown.stdout or "[]")}


class Daemon:
    def __init__(self, binary):
        self.others_programs = loaded_programs().keys()
        self.port = free_port()
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen([binary, "--listen", f"127.0.0.1:{self.port}"], stderr=self.log)
        for _ in range(300):
            try:
                if ask(self.port, "/readyz")[0] == 200:
                    return
            except OSError:
                pass
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        self.log.seek(0)
        sys.exit("flamed did not become ready: " + self.log.read().decode())

    def metrics(self):
        sums = {}
        for line in ask(self.port, "/metrics")[1].decode().splitlines():
            if line and not line.startswith("#"):
                name = re.split("[{ ]", line, maxsplit=1)[0]
                sums[name] = sums.get(name, 0) + float(line.rsplit(" ", 1)[1])
        return sums

    def resident_bytes(self):
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as status:
            for line in status:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) * 1024
        return 0

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="utf-8") as stat:
            words = stat.read().rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def kernel_program(self):
        """(runs, nanoseconds) so far of flamed's programs that run at each sample."""
        own = [program for number, program in loaded_programs().items()
               if number not in self.others_programs and program["type"] == "perf_event"]
        return sum(program.get("run_cnt", 0) for program in own), sum(program.get("run_time_ns", 0) for program in own)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)
        self.log.seek(0)
        return self.log.read().decode().strip().splitlines()[-1]


class Held(threading.Thread):
    """One client that keeps its connection as long as possible."""

    def __init__(self, port, target, kind, stop):
        super().__init__(daemon=True)
        self.port, self.target, self.kind, self.stopped, self.connections = port, target, kind, stop, 0

    def run(self):
        request = f"GET {self.target} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n\r\n".encode()
        while not self.stopped.is_set():
            try:
                with socket.socket() as client:
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                    client.settimeout(5)
                    client.connect(("127.0.0.1", self.port))
                    self.connections += 1
                    self.hold(client, request)
            except OSError:
                pass
            self.stopped.wait(1)

    def hold(self, client, request):
        if self.kind == "answered":
            client.sendall(request.replace(self.target.encode(), b"/version"))
            client.recv(4096)
        elif self.kind == "unread":
            client.sendall(request * 2)
        for byte in request if self.kind == "slow" else ():
            client.sendall(bytes([byte]))
            if self.stopped.wait(0.5):
                return
        while not is_closed(client) and not self.stopped.wait(0.5):
            pass


def is_closed(client):
    """Closed by the other side, with or without a reset: TCP_CLOSE or TCP_CLOSE_WAIT in tcp_info. Reads nothing."""
    return client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] in (7, 8)


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else None


def measure_health(daemon, seconds):
    """Times of /healthz in ms, and the largest resident memory meanwhile."""
    times, failures, resident = [], 0, daemon.resident_bytes()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        start = time.monotonic()
        try:
            status, _ = ask(daemon.port, "/healthz")
            failures += status != 200
        except OSError:
            failures += 1
        times.append((time.monotonic() - start) * 1000)
        resident = max(resident, daemon.resident_bytes())
        time.sleep(max(0.0, HEALTH_EVERY_S - (time.monotonic() - start)))
    return {"asked": len(times), "failed": failures, "p50_ms": percentile(times, 0.5), "p99_ms": percentile(times, 0.99),
            "max_ms": max(times), "resident_bytes": resident}


def observed(daemon, part):
    """Runs a part and adds the figures of sampling meanwhile."""
    samples, program, cpu, wall = daemon.metrics(), daemon.kernel_program(), daemon.cpu_seconds(), time.monotonic()
    load = os.getloadavg()[0]
    result = part()
    elapsed = time.monotonic() - wall
    after, program_after = daemon.metrics(), daemon.kernel_program()
    result["lost"] = after.get("flamed_samples_lost_total", 0) - samples.get("flamed_samples_lost_total", 0)
    result["samples"] = after.get("flamed_samples_taken_total", 0) - samples.get("flamed_samples_taken_total", 0)
    result["daemon_cpu_seconds_per_second"] = (daemon.cpu_seconds() - cpu) / elapsed
    if program_after[0] > program[0]:
        result["kernel_program_ns_per_run"] = (program_after[1] - program[1]) / (program_after[0] - program[0])
    result["load_average"] = [load, os.getloadavg()[0]]
    return result


def hold(port, target, end):
    """In a process of its own, so that the measurement has an interpreter for itself."""
    stop = threading.Event()
    kinds = ("silent", "answered", "slow", "unread")
    clients = [Held(port, target, kinds[i % len(kinds)], stop) for i in range(HELD)]
    for client in clients:
        client.start()
    end.recv()
    stop.set()
    end.send(sum(client.connections for client in clients))


def held(daemon, target, seconds):
    ours, theirs = multiprocessing.Pipe()
    before = daemon.resident_bytes()
    holder = multiprocessing.Process(target=hold, args=(daemon.port, target, theirs), daemon=True)
    holder.start()
    time.sleep(1)
    result = measure_health(daemon, seconds)
    result["more_memory_bytes"] = result["resident_bytes"] - before
    ours.send("end")
    result["connections"] = ours.recv()
    holder.join(10)
    return result


def pressed(daemon, target, seconds):
    command = ["wrk", "--latency", "-t", "1", "-c", "64", "-d", f"{seconds}s", "--timeout", "10s",
               f"http://127.0.0.1:{daemon.port}{target}"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    unit = {"us": 0.001, "ms": 1, "s": 1000, "m": 60000}
    shares = {share: float(value) * unit[suffix]
              for share, value, suffix in re.findall(r"^ +(\d+)% +([\d.]+)(us|ms|s|m) *$", text, re.MULTILINE)}
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    errors = re.search(r"Socket errors: (.*)", text)
    return {"requests": int(re.search(r"(\d+) requests in", text)[1]), "p50_ms": shares["50"], "p99_ms": shares["99"],
            "not_answered": int(bad[1]) if bad else 0, "socket_errors": errors[1] if errors else ""}


def warm_up(daemon, target):
    """The time and memory of the first queries, mostly for reading symbols, must not count for the clients."""
    end = time.monotonic() + WARM_UP_S
    while True:
        start = time.monotonic()
        ask(daemon.port, target, timeout=WARM_UP_S)
        now = time.monotonic()
        if now - start < WARM_S or now > end:
            break
    # As many at once as there are answering threads, each of which keeps memory of its own.
    askers = [threading.Thread(target=ask, args=(daemon.port, target, WARM_UP_S)) for _ in range(32)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()


def late(report):
    part = report["held"]
    if part["p99_ms"] > max(PROMISED_HEALTH_MS, 2 * report["alone"]["p99_ms"]):
        yield f"/healthz beside {HELD} held connections: 99 % within {part['p99_ms']:.1f} ms"
    part = report.get("pressed")
    if part and report["seconds"] >= STEADY_SECONDS and part["p99_ms"] > PROMISED_PROFILE_MS:
        yield f"/profile under pressure: 99 % within {part['p99_ms']:.1f} ms"


def misses(report):
    part = report["held"]
    if part["failed"]:
        yield f"/healthz beside {HELD} held connections: {part['failed']} failed"
    if part["more_memory_bytes"] > PROMISED_MEMORY_BYTES:
        yield f"{HELD} held connections took {part['more_memory_bytes']} bytes of memory"
    if "pressed" in report:
        part = report["pressed"]
        if part["requests"] == 0 or part["not_answered"] or part["socket_errors"]:
            yield f"under pressure {part['requests']} requests answered, {part['not_answered']} refused, socket errors: {part['socket_errors']}"
    for name in ("alone", "held", "pressed"):
        if report.get(name, {}).get("lost", 0) > 0:
            yield f"{name}: {report[name]['lost']:.0f} samples lost"


def main(arguments):
    checks = {"--check": (misses, late), "--check-counts": (misses,)}
    chosen = [check for argument in arguments for check in checks.get(argument, ())]
    arguments = [argument for argument in arguments if argument not in checks]
    binary, victim = arguments[:2]
    seconds = int(arguments[2]) if len(arguments) > 2 else 60
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # so that the started processes end as well
    with open(BPF_STATS, encoding="utf-8") as file:
        statistics_before = file.read()
    with open(BPF_STATS, "w", encoding="utf-8") as file:
        file.write("1")
    load = subprocess.Popen([victim, str(1000 * (4 * seconds + 60))], stdout=subprocess.DEVNULL)
    daemon = None
    try:
        daemon = Daemon(binary)
        time.sleep(min(seconds, 10))
        target = f"/profile?pid={load.pid}"
        warm_up(daemon, target)
        report = {"seconds": seconds, "cpus": os.cpu_count()}
        report["alone"] = observed(daemon, lambda: measure_health(daemon, seconds))
        report["held"] = observed(daemon, lambda: held(daemon, target, seconds))
        if shutil.which("wrk") is not None:
            report["pressed"] = observed(daemon, lambda: pressed(daemon, target, seconds))
        else:
            print("pressed: SKIP: there is no wrk here", file=sys.stderr)
        report["end"] = daemon.end()
        daemon = None
    finally:
        load.kill()
        load.wait()
        if daemon is not None:
            daemon.process.kill()
        with open(BPF_STATS, "w", encoding="utf-8") as file:
            file.write(statistics_before)
    print(json.dumps(report, indent=1))
    missed = [miss for check in chosen for miss in check(report)]
    for miss in missed:
        print("missed: " + miss, file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
