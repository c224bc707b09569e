# SPDX-License-Identifier: Apache-2.0
#
# Prints the stack of each thread in which it then stays: name, file and line of each frame, innermost first, with tabs
# between them, and an empty line. Usage: python_golden.py MODE
import asyncio
import hashlib
import os
import sys
import threading

def show_stack(frame, line):
    lines = []
    while frame is not None:
        code = frame.f_code
        name = getattr(code, 'co_qualname', code.co_name)
        lines.append('\t'.join([name, code.co_filename, str(line if line else frame.f_lineno)]))
        frame, line = frame.f_back, 0
    os.write(1, ('\n'.join(lines) + '\n\n').encode())


def busy(x=0):
    frame = sys._getframe()
    show_stack(frame, frame.f_lineno + 1)
    while True: x = x + 1 & 255  # noqa: E701


def without_lock():
    data = bytes(16 << 20)
    frame = sys._getframe()
    show_stack(frame, frame.f_lineno + 1)
    while True: hashlib.sha256(data)  # noqa: E701


def recursion(depth=40):
    return recursion(depth - 1) if depth else busy()


class Called:
    def __call__(self, x):
        return busy()


def generated(depth=3):
    yield from (generated(depth - 1) if depth else (busy() for _ in [1]))


async def task(depth=3):
    await asyncio.sleep(0)
    return await task(depth - 1) if depth else busy()


def native_callback():
    try:
        import ctypes
    except ImportError:  # built without it
        return busy()
    call = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: busy())
    return call()


def threads():
    others = [threading.Thread(target=target) for target in (recursion, without_lock)]
    for other in others:
        other.start()
    busy()


{
    'loop': busy,
    'recursion': recursion,
    'call': lambda: Called()(1),
    'sorted': lambda: sorted([1], key=Called()),
    'map': lambda: list(map(Called(), [1])),
    'generator': lambda: list(generated()),
    'async': lambda: asyncio.run(task()),
    'callback': native_callback,
    'without_lock': without_lock,
    'threads': threads,
}[sys.argv[1]]()
