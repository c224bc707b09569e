# SPDX-License-Identifier: Apache-2.0
"""Group: processes in a control group of their own, so that their total use is known to the microsecond, including
ended ones."""

import array
import mmap
import os
import signal
import subprocess
import time

from support.skip import Skip

# The unified hierarchy: alone, or beside version 1's.
HIERARCHIES = ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")


def hierarchy():
    for path in HIERARCHIES:
        if os.path.exists(os.path.join(path, "cgroup.procs")) and os.access(path, os.W_OK):
            return path
    raise Skip("no control groups (version 2) that can be written here")


class Group:
    made = 0

    def __init__(self, name):
        Group.made += 1
        self.path = os.path.join(hierarchy(), f"flamed-bench-{os.getpid()}-{Group.made}-{name}")
        try:
            os.mkdir(self.path)
        except OSError as error:
            raise Skip(f"cannot make a control group: {error}") from error
        self.children = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    @property
    def id(self):
        """Its id for BPF programs."""
        return os.stat(self.path).st_ino

    def start(self, command, **options):
        """The child reports when it execs, since entering the group takes a while."""
        ours, theirs = os.pipe()

        def enter():
            with open(os.path.join(self.path, "cgroup.procs"), "w", encoding="ascii") as file:
                file.write("0")
            os.write(theirs, repr(time.time()).encode())

        try:
            child = subprocess.Popen(command, preexec_fn=enter, **options)
            child.exec_at = float(os.read(ours, 64))
        finally:
            os.close(ours)
            os.close(theirs)
        self.children.append(child)
        return child

    def pids(self):
        with open(os.path.join(self.path, "cgroup.procs"), encoding="ascii") as file:
            return [int(line) for line in file]

    def cpu_seconds(self):
        """The CPU time of its processes, including ended ones."""
        with open(os.path.join(self.path, "cpu.stat"), encoding="ascii") as file:
            for line in file:
                name, value = line.split()
                if name == "usage_usec":
                    return int(value) / 1e6
        raise Skip("the control group tells no CPU time")

    def resident_bytes(self, pids=None):
        """Resident memory of all its processes, or of some. Pages that several of them map count once: helpers are the
        daemon's own program, and most of their resident pages are its pages."""
        frames = set()
        for pid in self.pids() if pids is None else pids:
            frames |= frames_of(pid)
        return len(frames) * mmap.PAGESIZE

    def switches(self):
        """(voluntary, involuntary) context switches of the running processes. Each voluntary one was a wake-up."""
        given, taken = 0, 0
        for pid in self.pids():
            for line in lines_of_tasks(pid, "status"):
                if line.startswith("voluntary_ctxt_switches"):
                    given += int(line.split()[1])
                elif line.startswith("nonvoluntary_ctxt_switches"):
                    taken += int(line.split()[1])
        return given, taken

    def end(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            until = time.monotonic() + 10
            for pid in self.pids():
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    pass
            while time.monotonic() < until:
                for child in self.children:
                    child.poll()
                if not self.pids():
                    break
                time.sleep(0.02)
        for child in self.children:
            child.wait()
            for stream in (child.stdin, child.stdout, child.stderr):
                if stream is not None:
                    stream.close()
        os.rmdir(self.path)


def frames_of(pid):
    """The numbers of the page frames that a process maps: bits 0 to 54 of each word of its pagemap with bit 63 set."""
    frames = set()
    try:
        with open(f"/proc/{pid}/pagemap", "rb", buffering=0) as pagemap:
            for line in lines_of(f"/proc/{pid}/maps"):
                begin, end = (int(word, 16) // mmap.PAGESIZE for word in line.split()[0].split("-"))
                if begin >= 1 << 39:  # the vsyscall page
                    continue
                words = array.array("Q")
                words.frombytes(os.pread(pagemap.fileno(), 8 * (end - begin), 8 * begin))
                frames.update(word & (1 << 55) - 1 for word in words if word >> 63)
    except OSError:
        pass  # it has ended
    return frames


def lines_of(path):
    """Without ended ones."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()
    except OSError:
        return []


def lines_of_tasks(pid, name):
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return
    for task in tasks:
        yield from lines_of(f"/proc/{pid}/task/{task}/{name}")


def cpu_seconds_by_thread(pid):
    """By the threads' names, in nanoseconds by the scheduler's count."""
    used = {}
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return used
    for task in tasks:
        counted, name = lines_of(f"/proc/{pid}/task/{task}/schedstat"), lines_of(f"/proc/{pid}/task/{task}/comm")
        if counted and name:
            used[name[0]] = used.get(name[0], 0) + int(counted[0].split()[0]) / 1e9
    return used
