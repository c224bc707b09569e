#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs in managed runtimes: how many stacks are whole and named, and what that costs.

    runtimes_bench.py [--seconds S] [--warm-up S] FLAMED [LOAD...]

Each LOAD (all of them) runs for S seconds (60), after a warm-up (5; with 120 names of programs that go on are known, and
what is left is the steady cost), first with a daemon that reads runtimes, then with
one that does not (`--runtimes off`). Servers are asked by wrk. For each prints the samples of its processes, the share
of whole stacks and why the others are not, the share of the runtime's own frames that have a name, the CPU time of the
daemon with its kernel programs as a share of all busy CPU time, and that of the kernel programs for each of their runs.
Needs root, and a machine that is idle otherwise. Loads whose programs are not installed are left out, and named. flask
and express are installed from their registries into a scratch folder.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from support.daemon import Daemon, difference, free_port  # noqa: E402
from support.machine import KernelStatistics  # noqa: E402

FLASK = """
import sys
from flask import Flask, jsonify
app = Flask(__name__)

def parts_of(number):
    return [str(number), "path"]

@app.route("/")
def items():
    return jsonify([{"name": f"item {i}", "parts": parts_of(i)} for i in range(100)])

app.run("127.0.0.1", int(sys.argv[1]), threaded=True)
"""
EXPRESS = """
const express = require('express');
const app = express();
const partsOf = (number) => [String(number), 'path'];
app.get('/', (request, response) => {
  response.json(Array.from({length: 100}, (_, i) => ({name: `item ${i}`, parts: partsOf(i)})));
});
app.listen(Number(process.argv[2]), '127.0.0.1');
"""
JAVA = """
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;
import java.util.stream.*;

public class Server {
  static String partsOf(int number) { return "[\\"" + number + "\\",\\"path\\"]"; }
  public static void main(String[] arguments) throws Exception {
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[0])), 0);
    server.createContext("/", exchange -> {
      byte[] body = IntStream.range(0, 100)
          .mapToObj(i -> "{\\"name\\":\\"item " + i + "\\",\\"parts\\":" + partsOf(i) + "}")
          .collect(Collectors.joining(",", "[", "]")).getBytes();
      exchange.sendResponseHeaders(200, body.length);
      exchange.getResponseBody().write(body);
      exchange.close();
    });
    server.setExecutor(Executors.newFixedThreadPool(8));
    server.start();
  }
}
"""
SHORT = "import time\ndef count(end):\n    n = 0\n    while time.monotonic() < end: n += len(str(n))\ncount(time.monotonic() + 0.2)"

# Name: the programs that it needs, what prepares it, its command, and whether it is a server. {dir} is the scratch folder.
LOADS = {
    "flask": (["python3", "wrk"], "python3 -m venv {dir}/venv && {dir}/venv/bin/pip -q install flask",
              "{dir}/venv/bin/python {dir}/app.py {port}", True),
    "express": (["node", "npm", "wrk"], "npm install --silent --no-audit --no-fund --prefix {dir} express",
                "node {dir}/app.js {port}", True),
    "httpserver": (["javac", "java", "wrk"], "javac -d {dir} {dir}/Server.java", "java -Dsun.net.httpserver.nodelay=true -cp {dir} Server {port}", True),
    "python-loop": (["python3"], "true", "while true; do python3 -c '" + SHORT + "'; done", False),
    "pip": (["python3"], "python3 -m venv {dir}/venv", "while true; do {dir}/venv/bin/pip list; done", False),
    "npm": (["npm"], "true", "while true; do npm ls --global --all; done", False),
    "tsc": (["node", "npm"], "npm install --silent --no-audit --no-fund --prefix {dir} typescript@5",
            "while true; do node {dir}/node_modules/typescript/lib/tsc.js --noEmit --target es2020 {dir}/app.ts; done", False),
    "javac": (["javac"], "true", "while true; do javac -d {dir} {dir}/Server.java; done", False),
}
KINDS = {"python", "java", "javascript"}
# What stands for a function that could not be read. Other names in brackets are the runtime's own code.
NAMELESS = {"[python]", "[java]", "[interpreted]", "[javascript]"}


def count_names(node, counts):
    """Frames of runtimes in all samples below the node: with a name, and without one."""
    if node.get("kind") in KINDS:
        counts["unnamed" if node["name"] in NAMELESS else "named"] += node["value"]
    for child in node.get("children", []):
        count_names(child, counts)


def ended(load):
    os.killpg(load.pid, signal.SIGKILL)
    load.wait()


def measure(options, name, folder, runtimes):
    _, _, command, is_server = LOADS[name]
    port = free_port()
    quiet = {"start_new_session": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with Daemon(options.flamed, "--runtimes", runtimes) as daemon:
        load = subprocess.Popen(["sh", "-c", command.format(dir=folder, port=port)], **quiet)
        client = None
        try:
            if is_server:
                time.sleep(3)
                client = subprocess.Popen(["wrk", "-t1", "-c4", f"-d{options.seconds + options.warm_up + 30}s",
                                           f"http://127.0.0.1:{port}/"], **quiet)
            time.sleep(options.warm_up)
            before, began = daemon.reading(), time.time()
            time.sleep(options.seconds)
            after, until = daemon.reading(), time.time()
            time.sleep(2.2)  # late walks and names
            target = f"/profile?tree={load.pid}&from={began}&to={until}&max_nodes=200000"
            answer = daemon.get_json(target)
        finally:
            for process in filter(None, (client, load)):
                ended(process)
    used = difference(before, after)
    threads = {name: after["threads"][name] - before["threads"].get(name, 0) for name in after["threads"]}
    most = sorted(threads.items(), key=lambda thread: -thread[1])[:4]
    quality = answer["quality"]
    cut = {reason: count for reason, count in quality["truncated"].items() if count}
    samples = quality["whole"] + quality["guessed"] + sum(cut.values())
    counts = {"named": 0, "unnamed": 0}
    count_names(answer, counts)
    frames = counts["named"] + counts["unnamed"]
    named = f"{100 * counts['named'] / frames:.2f} % of {frames} frames named" if frames else "no frames of the runtime"
    cost = (used["all"] + used["run_seconds"]) / used["busy"]
    print(f"{name}, runtimes {runtimes}: {samples} samples, {100 * quality['whole'] / max(samples, 1):.2f} % whole, "
          f"{quality['guessed']} guessed, {json.dumps(cut)}; {named}; {100 * cost:.3f} % of busy CPU time, "
          f"{1e9 * used['run_seconds'] / max(used['runs'], 1):.0f} ns a run of the kernel programs, "
          + ", ".join(f"{thread} {seconds:.3f} s" for thread, seconds in most), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--warm-up", type=int, default=5)
    parser.add_argument("flamed")
    parser.add_argument("loads", nargs="*", metavar="LOAD")
    options = parser.parse_args()
    unknown = [name for name in options.loads if name not in LOADS]
    if unknown:
        parser.error(f"no such load: {unknown[0]} (there are {', '.join(LOADS)})")
    for name in options.loads or LOADS:
        programs, prepare, _, _ = LOADS[name]
        missing = [program for program in programs if shutil.which(program) is None]
        if missing:
            print(f"{name}: left out, there is no {missing[0]}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            for file, text in {"app.py": FLASK, "app.js": EXPRESS, "Server.java": JAVA, "app.ts": EXPRESS}.items():
                with open(os.path.join(folder, file), "w", encoding="utf-8") as source:
                    source.write(text)
            prepared = subprocess.run(["sh", "-c", prepare.format(dir=folder)], capture_output=True, text=True, check=False)
            if prepared.returncode != 0:
                print(f"{name}: left out, `{prepare}` failed: {prepared.stderr.strip()[-300:]}")
                continue
            for runtimes in ("on", "off"):
                with KernelStatistics():
                    measure(options, name, folder, runtimes)


main()
