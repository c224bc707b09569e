#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many stacks of Go programs are whole, and what the daemon costs beside them.

    go_versions.py [--before S] [--seconds S] [--show-cut] FLAMED GO...

Each GO is a `go` command, e.g. those of several releases. With each of them, a net/http server (with a client of its
own), a program that signs and hashes, and a build of net/http with all that it needs run for S seconds (15), with the
daemon started S seconds (5) before. For each load prints the samples of its processes, the share of whole stacks, why
the others are not, and the CPU time of the daemon with its kernel programs as a share of all busy CPU time. Needs root,
and a machine that is idle otherwise.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from support.daemon import Daemon, difference  # noqa: E402
from support.machine import KernelStatistics  # noqa: E402

SOURCE = """
package main

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
)

type item struct {
	Name  string
	Parts []string
}

func answer(w http.ResponseWriter, r *http.Request) {
	items := []item{}
	for i := 0; i < 100; i++ {
		items = append(items, item{fmt.Sprintf("item %d", i), []string{r.URL.Path, r.Method}})
	}
	json.NewEncoder(w).Encode(items)
}

func ask(address string) {
	for {
		reply, err := http.Get("http://" + address + "/items")
		if err != nil {
			return
		}
		io.Copy(io.Discard, reply.Body)
		reply.Body.Close()
	}
}

func serve() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	client := exec.Command(os.Args[0], "ask", listener.Addr().String())
	if err := client.Start(); err != nil {
		panic(err)
	}
	http.HandleFunc("/", answer)
	http.Serve(listener, nil)
}

func sign() {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	data := make([]byte, 100000)
	for {
		sum := sha256.Sum256(data)
		if _, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:]); err != nil {
			panic(err)
		}
	}
}

func main() {
	switch os.Args[1] {
	case "serve":
		serve()
	case "ask":
		for i := 0; i < 7; i++ {
			go ask(os.Args[2])
		}
		ask(os.Args[2])
	case "sign":
		sign()
	}
}
"""


def measure(options, what, command, environment=None):
    with KernelStatistics(), Daemon(options.flamed) as daemon:
        time.sleep(options.before)
        before, began = daemon.reading(), time.time()
        load = subprocess.Popen(command, env=environment, start_new_session=True, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)
        try:
            load.wait(options.seconds)
        except subprocess.TimeoutExpired:
            pass
        used = difference(before, daemon.reading())
        # The tree of a process that has ended is not known for long.
        time.sleep(2.2)
        target = f"tree={load.pid}&from={began}"
        answer = daemon.get_json(f"/profile?format=top&max_nodes=1&{target}")
        folded = daemon.ask(f"/profile?format=folded&{target}")[2].splitlines() if options.show_cut else []
        frequency = daemon.metrics()["flamed_sampling_frequency_hertz"]
        if load.poll() is None:
            os.killpg(load.pid, signal.SIGKILL)
            load.wait()
    quality = answer["quality"]
    cut = {reason: count for reason, count in quality["truncated"].items() if count}
    samples = quality["whole"] + quality["guessed"] + sum(cut.values())
    cost = (used["all"] + used["run_seconds"]) / used["busy"]
    print(f"  {what}: {samples} samples, {100 * quality['whole'] / max(samples, 1):.2f} % whole, "
          f"{quality['guessed']} guessed, {json.dumps(cut)}; {frequency:g} Hz, {100 * cost:.2f} % of busy CPU time",
          flush=True)
    for line in [line for line in folded if "[truncated" in line][:options.show_cut]:
        print("     ", line[:400])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--before", type=float, default=5)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--show-cut", type=int, default=0, metavar="STACKS")
    parser.add_argument("flamed")
    parser.add_argument("go", nargs="+")
    options = parser.parse_args()
    for go in options.go:
        with tempfile.TemporaryDirectory() as folder:
            environment = {"PATH": os.environ["PATH"], "HOME": folder, "GOCACHE": os.path.join(folder, "cache"),
                           "GO111MODULE": "off", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
            print(subprocess.run([go, "version"], env=environment, capture_output=True, text=True, check=True).stdout.strip(),
                  flush=True)
            source, program = os.path.join(folder, "load.go"), os.path.join(folder, "load")
            with open(source, "w", encoding="utf-8") as file:
                file.write(SOURCE)
            subprocess.run([go, "build", "-o", program, source], env=environment, check=True)
            measure(options, "server", [program, "serve"])
            measure(options, "signatures", [program, "sign"])
            measure(options, "build", [go, "build", "-a", "-o", os.devnull, source], environment)


main()
