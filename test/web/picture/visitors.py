# SPDX-License-Identifier: Apache-2.0
"""Visitors of shop.js, which listens on the port that is given: four times a second, now more and now fewer of them, and once in
a while a crowd."""

import http.client
import json
import math
import random
import sys
import time

WORDS = ["red", "blue", "oak", "lamp", "boot", "small"]
EVERY_S, WAVE_S = 0.25, 90
CROWD_EVERY_S, CROWD_S = 50, 1.5

shop = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))


def ask(method, path, body=None):
    shop.request(method, path, body)
    return shop.getresponse().read()


def products(count):
    return json.dumps({"items": [{"id": random.randrange(3000), "count": random.randint(1, 3)} for _ in range(count)]})


def visit(visitors):
    for _ in range(visitors):
        ask("GET", "/search?" + "+".join(random.sample(WORDS, 2)))
        ask("GET", f"/product?{random.randrange(3000)}")
        ask("POST", "/basket", products(40))
    for _ in range(visitors // 5):
        ask("POST", "/order", products(200))
    ask("GET", "/offers")


began = time.time()
while True:
    passed = time.time() - began
    visit(round(random.uniform(15, 25) * (1.5 + math.sin(2 * math.pi * passed / WAVE_S))))
    if passed % CROWD_EVERY_S < CROWD_EVERY_S - CROWD_S:
        time.sleep(EVERY_S - time.time() % EVERY_S)
