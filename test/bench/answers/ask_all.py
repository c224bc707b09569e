#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sends all kinds of queries to a synthetic host, to see whether a change of the code changed an answer.

    ask_all.py ask ANSWERS_HOST FILE      writes each question and the whole answer to FILE
    ask_all.py compare BEFORE AFTER       exit status 1 where an answer differs; prints how

ANSWERS_HOST is the program of answers_host.cc. The questions come from its own /openapi.json: each route with each
value of each parameter, right and wrong, in each format; then a fixed choice of combinations; then requests that are no
good. The same script must ask both times. FILE is JSON, a line for each question.
"""

import base64
import difflib
import hashlib
import itertools
import json
import random
import socket
import subprocess
import sys
import urllib.parse
import zlib

NOW_S = 1769868330  # the host's clock, see FakeSources
COMBINATIONS = 700  # for each route with parameters
MOST_DIFFERENCES = 20  # printed at most

GOOD = {
    "pid": ["100", "150", "150@999999", "100,200,250", "500@1008", "7"],
    "tid": ["100", "101,102,153", "7"],
    "comm": ["web", "worker 3", "größe", "nobody"],
    "exe": ["java", "/usr/bin/build", "nothing"],
    "unit": ["unit-1", "unit-2.service", "none"],
    "container": ["a" * 12, "b" * 64, "zzz"],
    "cgroup": ["/", "/system.slice", "/system.slice/unit-0.service", "/nowhere"],
    "uid": ["0", "1000", "0,1000", "77"],
    "tree": ["100", "150@1001", "200"],
    "from": ["-1h", "-90s", "-2d", "14:00", str(NOW_S - 600), "2026-01-31T13:30:00Z", "now"],
    "to": ["-1m", "-30m", "14:04", str(NOW_S - 60), "2026-01-31T14:00:00Z", "now", "14:30"],
    "offset_from": ["0", "250", "999.5"],
    "offset_to": ["1", "500", "1000"],
    "focus": ["part", "^inner", "größe", "x{2}"],
    "ignore": ["sys_", "function_1.$"],
    "hide": ["part::", "."],
    "root": ["web", "java", "no such"],
    "min_percent": ["0", "1.5", "100"],
    "max_nodes": ["1", "10", "300"],
    "step": ["1", "60", "10m", "1h"],
    "processes": ["0", "3", "64"],
    "rows": ["1", "7", "1000"],
}
BAD = ["", "-1", "0", "x", "1e99", "99999999999999999999", "1,,2", "(", "[a", "%", "\x00", "a" * 1025, "ä" * 20, "14:61"]
HEADERS = [
    {}, {"Accept": "text/plain"}, {"Accept": "application/octet-stream"}, {"Accept": "image/png"}, {"Accept": "*/*;q=0"},
    {"Accept-Encoding": "gzip"}, {"Accept-Encoding": "gzip;q=0"}, {"Origin": "http://elsewhere"},
    {"If-None-Match": "*"}, {"Authorization": "Bearer x"}, {"Range": "bytes=0-9"}, {"Sec-Fetch-Site": "cross-site"},
]  # fmt: skip
PATHS = ["/", "/index.html", "/nothing", "//", "/profile/", "/PROFILE", "/profile%00", "/%70rofile", "/../etc/passwd",
         "/favicon.ico", "/metrics?x=1", "/healthz?verbose=1", "/profile?pid", "/profile?pid=100&pid=100",
         "/profile?nothing=1", "/profile?pid=100#x", "/debug/pprof/", "/debug/pprof/cmdline", "*", "http://a/profile"]  # fmt: skip
METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "get", "G ET", ""]


class Host:
    def __init__(self, program):
        self.process = subprocess.Popen([program], stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1])

    def close(self):
        self.process.terminate()
        self.process.wait()

    def ask(self, request):
        """All bytes until the host closes the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection:
            connection.sendall(request.replace(b"{port}", str(self.port).encode()))
            answer = b""
            while piece := connection.recv(1 << 16):
                answer += piece
        return answer.replace(f":{self.port}".encode(), b":PORT")


def head(target, method="GET", version="HTTP/1.1", host="127.0.0.1:{port}", **headers):
    lines = [f"{method} {target} {version}", f"Host: {host}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def query(path, parameters):
    return path + ("?" + urllib.parse.urlencode(parameters) if parameters else "")


def values_of(parameter):
    name = parameter["name"]
    schema = parameter["schema"]
    schema = schema.get("items", schema)
    if "enum" in schema:
        return [str(value) for value in schema["enum"]]
    plain = name.removeprefix("base_")
    # A window with a start and a length does not wait: see windows().
    if plain == "seconds":
        return []
    return GOOD.get(plain, ["0", "1"])


def formats_of(parameters):
    return next((values_of(one) for one in parameters if one["name"] == "format"), [None])


def questions_of_route(path, parameters):
    # With `seconds` allowed, a window without a start would wait, on a stopped clock.
    waits = path.endswith("/pprof/profile")
    fixed = [("from", "-20m")] if waits else []
    for form in formats_of(parameters):
        base = fixed + ([("format", form)] if form else [])
        yield query(path, base)
        yield query(path, base + [("from", "-40m")] if not waits else base)
        for parameter in parameters:
            if parameter["name"] in ("format", "seconds") or (waits and parameter["name"] == "from"):
                continue
            for value in values_of(parameter):
                yield query(path, base + [(parameter["name"], value)])
    for parameter in parameters:
        if parameter["name"] == "seconds":
            for value in ["1", "60", "10m", *BAD]:
                yield query(path, [("from", "-20m"), ("seconds", value)])
            continue
        for value in BAD:
            yield query(path, (fixed if parameter["name"] != "from" else []) + [(parameter["name"], value)])
        for value in values_of(parameter)[:1]:
            yield query(path, fixed + [(parameter["name"], value)] * 2)
    if not parameters:
        return
    chance = random.Random(path)
    usable = [one for one in parameters if one["name"] != "seconds" and values_of(one)]
    for _ in range(COMBINATIONS):
        chosen = chance.sample(usable, chance.randint(2, 6))
        if waits:
            chosen = [one for one in chosen if one["name"] != "from"]
        yield query(path, fixed + [(one["name"], chance.choice(values_of(one))) for one in chosen])


def requests(openapi):
    for path, methods in openapi["paths"].items():
        for target in questions_of_route(path, methods["get"].get("parameters", [])):
            yield head(target)
    some = ["/profile", "/profile?format=folded", "/profile?pid=x", "/processes", "/metrics", "/openapi.json", "/"]
    for target, headers in itertools.product(some, HEADERS):
        yield head(target, **headers)
    for method, target in itertools.product(METHODS, [*PATHS, "/profile", "/version"]):
        yield head(target, method)
    for target, host in itertools.product(["/version", "/profile"], ["localhost", "evil.example", "[::1]:{port}", "", "a b"]):
        yield head(target, host=host)
    for version in ["HTTP/1.0", "HTTP/1.2", "HTTP/2", "HTTP/1.1x", ""]:
        yield head("/version", version=version)
    for lines in [
        "GET /version HTTP/1.1\r\n\r\n",
        "GET /version HTTP/1.1\r\nHost: localhost:{port}\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n",
        "GET /version HTTP/1.1\nHost: localhost\nConnection: close\n\n",
        "GET /version HTTP/1.1\r\nHost: localhost:{port}\r\nContent-Length: 2\r\nConnection: close\r\n\r\nxx",
        "GET /version HTTP/1.1\r\nHost: localhost:{port}\r\nContent-Length: -2\r\n\r\n",
        "GET /version HTTP/1.1\r\nHost: localhost:{port}\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
        "GET /version HTTP/1.1\r\nHost: localhost:{port}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "GET /version HTTP/1.1\r\nHost: localhost:{port}\r\nA : b\r\n\r\n",
        "GET /version HTTP/1.1\r\nHost: localhost:{port}\r\nA: b\r\n c\r\nConnection: close\r\n\r\n",
        "GET /version HTTP/1.1\r\nHost: localhost:{port}\r\n: b\r\n\r\n",
        "GET /version HTTP/1.1\r\nHost: localhost:{port}\r\nA\x01: b\r\n\r\n",
        "GET /" + "a" * 20000 + " HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n",
        "GET /version HTTP/1.1\r\nHost: localhost:{port}\r\nA: " + "b" * 40000 + "\r\n\r\n",
        "GET /version HTTP/1.1\r\nHost: localhost:{port}\r\n\r\nGET /version HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n",
        "\r\nGET /version HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n",
        "\x16\x03\x01\x02\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ]:  # fmt: skip
        yield lines.encode("latin-1")
    for body in ['{"text": "deploy"}', '{"text": "a", "time_ms": %d}' % (NOW_S * 1000 - 60_000), "{}", "[", "", '{"text": 1}', "x" * 5000]:
        for length, kind in itertools.product([len(body), -1, 2 * len(body) + 5000], ["application/json", "text/plain"]):
            lines = f"POST /marks HTTP/1.1\r\nHost: localhost:{{port}}\r\nConnection: close\r\nContent-Type: {kind}\r\n"
            yield f"{lines}Content-Length: {length}\r\n\r\n{body}".encode()
    yield head("/marks?from=-1h")


def ask(program, file):
    host = Host(program)
    asked = 0
    try:
        openapi = json.loads(host.ask(head("/openapi.json")).split(b"\r\n\r\n", 1)[1])
        with open(file, "w", encoding="utf-8") as out:
            for request in dict.fromkeys(requests(openapi)):
                answer = host.ask(request)
                packed = base64.b64encode(zlib.compress(answer)).decode()
                out.write(json.dumps([request.decode("latin-1"), hashlib.sha256(answer).hexdigest(), packed]) + "\n")
                asked += 1
    finally:
        host.close()
    print(f"{asked} questions were asked")


def read(file):
    with open(file, encoding="utf-8") as lines:
        return {request: (digest, packed) for request, digest, packed in map(json.loads, lines)}


def text_of(packed):
    return zlib.decompress(base64.b64decode(packed)).decode("latin-1")


def compare(before_file, after_file):
    before, after = read(before_file), read(after_file)
    differ = [request for request in before if request in after and before[request][0] != after[request][0]]
    for request in differ[:MOST_DIFFERENCES]:
        print("===", request.split("\r\n\r\n", maxsplit=1)[0].replace("\r\n", " | ")[:300])
        texts = [text_of(answers[request][1]).replace(",", ",\n").splitlines() for answers in (before, after)]
        for line in itertools.islice(difflib.unified_diff(*texts, lineterm="", n=0), 12):
            print(line[:200])
    only = [len(before.keys() - after.keys()), len(after.keys() - before.keys())]
    print(f"{len(before)} answers before, {len(after)} after: {len(differ)} differ, {only[0]} and {only[1]} were asked only once")
    statuses = [text_of(packed)[9:12] for _, packed in after.values()]
    print("statuses: " + ", ".join(f"{status or 'none'} {statuses.count(status)}" for status in sorted(set(statuses))))
    return 1 if differ or any(only) else 0


def main():
    if len(sys.argv) == 4 and sys.argv[1] == "ask":
        ask(sys.argv[2], sys.argv[3])
        return 0
    if len(sys.argv) == 4 and sys.argv[1] == "compare":
        return compare(sys.argv[2], sys.argv[3])
    print(__doc__, file=sys.stderr)
    return 2


sys.exit(main())
