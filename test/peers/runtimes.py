#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each runtime's own profiler and flamed, on one program at the same time: runtimes.py BUILD_DIR [python|node|java...]

py-spy (PyPI) for Python, the profiler of Node (--cpu-prof), and async-profiler (Maven) for Java. Of the 20 functions that
the peer has met most, each must have the same share of the samples in both, with its callees, within three standard
deviations. py-spy and Node sample by the clock, and find a program that waits for a CPU again and again where it was
stopped. So no more of their samples count than there can be in the program's CPU time. Needs root, pip, node, a JDK and
Maven, a built flamed, and a machine that is idle otherwise.
"""
import collections
import glob
import http.client
import json
import math
import os
import re
import signal
import socket
import subprocess
import sys
import time
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
CPU_SECONDS = 20  # of a program
HZ = 99
TOP = 20
DEVIATIONS = 3
ASYNC_PROFILER = '4.3'


class Samples:
    """How often each function was on the stack, and of how many stacks with functions of the runtime."""

    def __init__(self):
        self.total = 0
        self.of = collections.Counter()

    def add(self, functions, count):
        if functions:
            self.total += count
            for function in set(functions):
                self.of[function] += count


# ---- flamed ----


class Flamed:
    def __init__(self, build):
        with socket.socket() as probe:
            probe.bind(('127.0.0.1', 0))
            self.port = probe.getsockname()[1]
        self.process = subprocess.Popen(
            [os.path.join(build, 'flamed'), '--listen', f'127.0.0.1:{self.port}', '--frequency', str(HZ), '--history', 'off',
             '--cpu-budget', 'off'], stderr=subprocess.DEVNULL)
        until = time.monotonic() + 30
        while time.monotonic() < until:
            try:
                if self.ask('/readyz')[0] == 200:
                    return
            except OSError:
                time.sleep(0.05)
        self.end()
        sys.exit('flamed did not become ready')

    def end(self):
        self.process.terminate()
        self.process.wait()

    def ask(self, target):
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=60)
        connection.request('GET', target)
        answer = connection.getresponse()
        return answer.status, answer.read()

    def samples(self, pid, began, ended, kind, name_of, is_work=bool):
        """`name_of` makes a function of its name and the last part of its file, `is_work` says which stacks count."""
        target = f'/profile?pid={pid}&from={began}&to={ended}&side=user&max_nodes=1000000'
        status, text = self.ask(target)
        if status != 200:
            sys.exit(f'{target}: {text.decode()}')
        samples = Samples()

        def add(node, functions, is_left_out):
            name = node['name']
            if node.get('kind') == kind:
                functions = functions + [name_of(name, node.get('module', ''))]
            is_left_out = is_left_out or is_collector(name)
            own = node['value'] - sum(child['value'] for child in node.get('children', []))
            if own > 0 and not is_left_out and is_work(functions):
                samples.add(functions, own)
            for child in node.get('children', []):
                add(child, functions, is_left_out)

        sys.setrecursionlimit(100_000)
        add(json.loads(text), [], False)
        return samples


def is_collector(name):
    """V8's collector runs in the function that allocates. Its profiler counts it apart."""
    return re.search(r'Heap::(CollectGarbage|PerformGarbageCollection|Scavenge)|GarbageCollect', name) is not None


# ---- Peers: each returns (what the peer has sampled, what flamed has) ----


def last_part(path):
    return path.rsplit('/', 1)[-1]


def run_python(flamed, work):
    tool = os.path.join(work, 'py-spy')
    if not os.path.exists(tool):
        subprocess.run([sys.executable, '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check',
                        '--root-user-action=ignore', '--only-binary', ':all:', '--target', tool, 'py-spy'], check=True)
    output = os.path.join(work, 'python.txt')
    began = time.time()
    load = subprocess.Popen(['/usr/bin/python3', os.path.join(HERE, 'loads/load.py'), str(CPU_SECONDS)])
    peer = subprocess.Popen([os.path.join(tool, 'bin/py-spy'), 'record', '--rate', str(HZ), '--format', 'raw', '--output',
                             output, '--pid', str(load.pid)], stdout=subprocess.DEVNULL)
    # A process that nobody has waited for counts as one that runs.
    load.wait()
    ended = time.time()
    if peer.wait() != 0:
        sys.exit('py-spy failed')
    peer = Samples()
    with open(output, encoding='utf-8') as file:
        for line in file:
            stack, count = line.rsplit(' ', 1)
            found = [re.fullmatch(r'(.*) \((.*):\d+\)', frame) for frame in stack.split(';')]
            peer.add([f'{frame[1]} ({last_part(frame[2])})' for frame in found if frame], int(count))
    return peer, flamed.samples(load.pid, began, ended, 'python', lambda name, module: f'{name} ({module})')


def is_node_work(functions):
    """Below a function of the load. At its call of the system, between two of them, it is stopped more often."""
    return any(re.fullmatch(r'\w+ \(load\.js\)', function) for function in functions)


def run_node(flamed, work):
    for old in glob.glob(os.path.join(work, '*.cpuprofile')):
        os.remove(old)
    began = time.time()
    # What is compiled into others flamed shows as these.
    load = subprocess.Popen(['node', '--cpu-prof', f'--cpu-prof-interval={1_000_000 // HZ}', f'--cpu-prof-dir={work}',
                             '--no-turbo-inlining', os.path.join(HERE, 'loads/load.js'), str(CPU_SECONDS)])
    if load.wait() != 0:
        sys.exit('the Node program failed')
    ended = time.time()
    with open(glob.glob(os.path.join(work, '*.cpuprofile'))[0], encoding='utf-8') as file:
        profile = json.load(file)
    nodes = {node['id']: node for node in profile['nodes']}
    parents = {child: node['id'] for node in profile['nodes'] for child in node.get('children', [])}
    peer = Samples()
    for identity, count in collections.Counter(profile['samples']).items():
        functions = []
        at = identity
        while at is not None:
            frame = nodes[at]['callFrame']
            if frame['url']:
                functions.append(f"{frame['functionName'] or '(anonymous)'} ({last_part(frame['url'])})")
            at = parents.get(at)
        if is_node_work(functions):
            peer.add(functions, count)
    return peer, flamed.samples(load.pid, began, ended, 'javascript', lambda name, module: f'{name} ({module})',
                                is_node_work)


def cpu_seconds(pid):
    with open(f'/proc/{pid}/stat', encoding='utf-8') as file:
        fields = file.read().rsplit(') ', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def java_name(name):
    """Hidden classes have a number in their name."""
    return re.sub(r'[.+/]0x[0-9a-f]+(/0x[0-9a-f]+)?', '', name)


def run_java(flamed, work):
    library = os.path.join(work, 'libasyncProfiler.so')
    if not os.path.exists(library):
        subprocess.run(['mvn', '-q', '-B', 'dependency:copy', f'-Dartifact=tools.profiler:async-profiler:{ASYNC_PROFILER}',
                        f'-DoutputDirectory={work}'], check=True, cwd=work)
        with zipfile.ZipFile(os.path.join(work, f'async-profiler-{ASYNC_PROFILER}.jar')) as jar:
            name = next(name for name in jar.namelist() if name.endswith('linux-x64/libasyncProfiler.so'))
            with open(library, 'wb') as file:
                file.write(jar.read(name))
    output = os.path.join(work, 'java.txt')
    source = os.path.join(HERE, '../kernel/victims/runtimes/Stacks.java')
    subprocess.run(['javac', '-d', work, source], check=True)
    began = time.time()
    load = subprocess.Popen(['java', f'-agentpath:{library}=start,event=cpu,interval={1_000_000_000 // HZ},collapsed,ann,'
                             f'file={output}', '-cp', work, 'Stacks', 'mixed'])
    while cpu_seconds(load.pid) < CPU_SECONDS and load.poll() is None:
        time.sleep(0.2)
    ended = time.time()
    load.send_signal(signal.SIGTERM)
    load.wait()
    peer = Samples()
    with open(output, encoding='utf-8') as file:
        for line in file:
            stack, count = line.rsplit(' ', 1)
            methods = [frame[:-4].replace('/', '.') for frame in stack.split(';') if re.search(r'_\[[01ij]\]$', frame)]
            peer.add([java_name(method) for method in methods], int(count))
    return peer, flamed.samples(load.pid, began, ended, 'java', lambda name, module: java_name(name))


RUNTIMES = {'python': run_python, 'node': run_node, 'java': run_java}


def compare(name, peer, ours):
    """True if all are alike."""
    if min(peer.total, ours.total) < CPU_SECONDS * HZ / 2:
        print(f'{name}: too few samples: {peer.total} of the peer, {ours.total} of flamed')
        return False
    wrong = 0
    independent = min(peer.total, CPU_SECONDS * HZ)
    print(f'{name}: {peer.total} samples of the peer, {ours.total} of flamed')
    for function, count in peer.of.most_common(TOP):
        mine = ours.of[function]
        share = (count + mine) / (peer.total + ours.total)
        deviation = math.sqrt(share * (1 - share) * (1 / independent + 1 / ours.total))
        apart = abs(count / peer.total - mine / ours.total)
        is_wrong = apart > DEVIATIONS * deviation + 1e-9
        wrong += is_wrong
        print(f"  {100 * count / peer.total:6.2f} % {100 * mine / ours.total:6.2f} %  {'APART ' if is_wrong else ''}{function}")
    print(f'{name}: {TOP - wrong} of {TOP} functions have the same share')
    return wrong == 0


def main():
    build = os.path.realpath(sys.argv[1])
    work = os.path.join(build, 'peers/runtimes')
    os.makedirs(work, exist_ok=True)
    flamed = Flamed(build)
    try:
        alike = [compare(name, *RUNTIMES[name](flamed, work)) for name in sys.argv[2:] or RUNTIMES]
    finally:
        flamed.end()
    if not all(alike):
        sys.exit(1)


main()
