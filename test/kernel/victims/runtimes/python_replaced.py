# SPDX-License-Identifier: Apache-2.0
#
# Makes a function, runs it for some milliseconds, and drops it before it makes the next one, so that its code object
# lies where the last one did. Prints of each its name, the address of its code object, and when it ran, in microseconds
# of the wall clock, with tabs between them. Usage: python_replaced.py FUNCTIONS MILLISECONDS
import os
import sys
import time

SOURCE = '''{lines}def f_{number:04}(end):
  while now() < end: pass
'''


def run(number, ns):
    names = {'now': time.monotonic_ns}
    exec(compile(SOURCE.format(lines='\n' * (number % 50), number=number), '<made %04d>' % number, 'exec'), names)
    del names['__builtins__'], names['now']
    name, function = names.popitem()
    function.__globals__['now'] = time.monotonic_ns
    code = id(function.__code__)
    began = time.time_ns()
    function(time.monotonic_ns() + ns)
    return '%s\t%x\t%d\t%d\n' % (name, code, began // 1000, time.time_ns() // 1000)


def main():
    for number in range(int(sys.argv[1])):
        os.write(1, run(number, 1000000 * int(sys.argv[2])).encode())


main()
