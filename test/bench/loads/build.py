# SPDX-License-Identifier: Apache-2.0
"""A build load: a small tree of C++ and C is built again and again with `make -j`."""

import contextlib
import os
import shutil
import subprocess
import threading
import time

from loads.load import Load
from support.skip import Skip

CPP_FILES = 8
C_FILES = 60
CPP = """#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>
namespace part_{n} {{
struct Item {{ std::string name; std::map<std::string, int> counts; std::unique_ptr<Item> next; }};
int count(const std::vector<Item>& items) {{
  std::vector<const Item*> sorted;
  for (const Item& item : items) sorted.push_back(&item);
  std::sort(sorted.begin(), sorted.end(), [](auto a, auto b) {{ return a->name < b->name; }});
  int sum = {n};
  for (const Item* item : sorted) for (const auto& [name, value] : item->counts) sum += value + int(name.size());
  return sum;
}}
}}
"""
C = """int value_{n}(int x) {{ int sum = 0; for (int i = 0; i < x; i++) sum += i * {n}; return sum; }}
"""
MAKEFILE = """CPP := $(wildcard *.cc)
C := $(wildcard *.c)
all.a: $(CPP:.cc=.o) $(C:.c=.o)
\tar rc $@ $^
%.o: %.cc
\tg++ -O1 -c $< -o $@
%.o: %.c
\tmd5sum $< | cut -c -32 > $@.sum && gcc -O1 -c $< -o $@
clean:
\trm -f *.o *.a *.sum
"""


def write_sources(folder):
    """Writes what is built, and its Makefile."""
    texts = {f"cpp_{n}.cc": CPP.format(n=n) for n in range(CPP_FILES)}
    texts |= {f"c_{n}.c": C.format(n=n) for n in range(C_FILES)}
    texts["Makefile"] = MAKEFILE
    for name, text in texts.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)


class Build(Load):
    name = "build"
    title = (f"a full build, again and again: `make -j` with {CPP_FILES} C++ files, {C_FILES} small C files, and "
             "some 400 processes for them")
    warm_up_s = 0

    def start(self):
        for program in ("make", "g++", "gcc", "ar"):
            if shutil.which(program) is None:
                raise Skip(f"there is no {program} here")
        write_sources(self.folder)
        self.build()

    def build(self):
        subprocess.run(["make", "-s", "clean"], cwd=self.folder, check=True)
        began = time.monotonic()
        # With a compiler cache it would be another load.
        environment = {**os.environ, "PATH": "/usr/bin:/bin", "LC_ALL": "C"}
        child = self.group.start(["/usr/bin/make", "-s", f"-j{os.cpu_count()}"], cwd=self.folder, env=environment)
        if child.wait() != 0:
            raise RuntimeError("the build failed")
        self.group.children.remove(child)
        return time.monotonic() - began

    def interval(self, seconds):
        """Whole builds, for about this long."""
        took, builds = 0.0, 0
        while builds == 0 or took + 0.5 * took / builds < seconds:
            took += self.build()
            builds += 1
        return [builds / took]

    @contextlib.contextmanager
    def running(self):
        stop = threading.Event()

        def go_on():
            while not stop.is_set():
                self.build()

        thread = threading.Thread(target=go_on)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
