# SPDX-License-Identifier: Apache-2.0
"""Servers and their clients: python3 and node over HTTP, sqlite3 as a database, TLS handshakes by openssl. Clients and
servers are this file's functions or the distribution's programs."""

import json
import os
import random
import shutil
import socket
import ssl
import subprocess
import sys
import time

from loads.load import CountingLoad
from support.counters import Counters
from support.daemon import free_port
from support.skip import Skip

NODE = """
const http = require('http');
http.createServer((request, response) => {
  const rows = [];
  for (let i = 0; i < 400; i++) rows.push({key: i * 7919 % 1009, text: 'row ' + i});
  rows.sort((a, b) => a.key - b.key);
  const body = JSON.stringify(rows);
  response.writeHead(200, {'Content-Length': Buffer.byteLength(body)});
  response.end(body);
}).listen(Number(process.argv[1]), '127.0.0.1');
"""
SERVICES = ("python3", "node", "sqlite3", "openssl")
PYTHON = "/usr/bin/python3"


class Servers(CountingLoad):
    name = "servers"
    title = ("servers, each with a client that sends requests as fast as they are answered: python3 and node over HTTP, "
             "sqlite3 as a database with inserts and sums, TLS 1.3 handshakes with `openssl s_server`; as the distribution "
             "ships them")
    warm_up_s = 3

    def start(self):
        for program in (*SERVICES, PYTHON):
            if shutil.which(program) is None:
                raise Skip(f"there is no {program} here")
        counters = self.make_counters(len(SERVICES))
        python_port, node_port, tls_port = free_port(), free_port(), free_port()
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        ours = [PYTHON, "-B", "-m", "loads.servers"]
        here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        key, certificate = os.path.join(self.folder, "key"), os.path.join(self.folder, "certificate")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate,
                        "-days", "2", "-subj", "/CN=localhost"], check=True, **quiet)
        self.group.start([*ours, "serve", str(python_port)], cwd=here, **quiet)
        self.group.start([shutil.which("node"), "-e", NODE, str(node_port)], **quiet)
        self.group.start(["openssl", "s_server", "-accept", f"127.0.0.1:{tls_port}", "-key", key, "-cert", certificate,
                          "-www", "-quiet"], **quiet)
        for service, argument in (("python3", python_port), ("node", node_port), ("openssl", tls_port),
                                  ("sqlite3", os.path.join(self.folder, "database"))):
            self.group.start([*ours, "ask", service, str(argument), counters.path], cwd=here)
        until = time.monotonic() + 20
        while 0 in counters.values():
            if time.monotonic() > until:
                answered = dict(zip(SERVICES, counters.values()))
                raise RuntimeError(f"a server does not answer: {answered}")
            time.sleep(0.1)

    def done(self):
        return [float(value) for value in self.counters.values()]


def serve(port):
    """A small HTTP server with some JSON and some text."""
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 65536  # sends head and body together: otherwise each answer waits for a delayed acknowledgement

        def do_GET(self):
            rows = [{"key": i * 7919 % 1009, "text": f"row {i}"} for i in range(200)]
            body = json.dumps(sorted(rows, key=lambda row: row["key"])).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


def connect(port):
    for _ in range(200):
        try:
            return socket.create_connection(("127.0.0.1", port))
        except OSError:
            time.sleep(0.1)
    raise SystemExit("nobody listens")


def ask_http(port, count):
    client = connect(port)
    while True:
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += client.recv(65536)
        head, _, body = answer.partition(b"\r\n\r\n")
        wanted = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        got = len(body)
        while got < wanted:
            got += len(client.recv(65536))
        count()


def ask_tls(port, count):
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    while True:
        with context.wrap_socket(connect(port)) as client:
            client.sendall(b"GET / HTTP/1.0\r\n\r\n")
            while client.recv(65536):
                pass
        count()


def ask_database(path, count):
    shell = subprocess.Popen(["sqlite3", path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    shell.stdin.write("pragma journal_mode = off; pragma synchronous = off;\n"
                      "create table events(number integer primary key, kind integer, text text);\n"
                      "create index kinds on events(kind);\n")
    number = 0
    while True:
        shell.stdin.write("begin;\n")
        for _ in range(20):
            number += 1
            shell.stdin.write(f"insert or replace into events values({number % 20000}, {random.randrange(100)}, hex(randomblob(50)));\n")
        shell.stdin.write("commit; select kind, count(*), max(text) from events group by kind limit 5; select 'done';\n")
        while shell.stdout.readline() not in ("done\n", ""):
            pass
        count()


def ask(service, argument, path):
    counters = Counters.of_others(path, len(SERVICES))

    def count():
        counters.add(SERVICES.index(service))

    if service == "sqlite3":
        ask_database(argument, count)
    elif service == "openssl":
        ask_tls(int(argument), count)
    else:
        ask_http(int(argument), count)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(int(sys.argv[2]))
    else:
        ask(*sys.argv[2:])
