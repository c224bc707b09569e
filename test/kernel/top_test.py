#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""flamed-top in a terminal (tmux), with a real daemon: top_test.py FLAMED FLAMED_TOP VICTIM

VICTIM is victims/known_chain.c. It runs under a name with escape sequences.
"""
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import urllib.request

FLAMED, TOP, VICTIM = (os.path.abspath(path) for path in sys.argv[1:4])
NAME = '\x1b]0;owned\x07\x1b[31mevil'
# No other test runs anything as this user.
STRANGER = 64108
ESCAPE = '\x1b'

failures = []


def check(what, holds, detail=''):
    print('ok  ' if holds else 'FAIL', what)
    if not holds:
        failures.append(what)
        print(detail)


def eventually(condition, seconds=15):
    """The condition's first true result, or its last one."""
    until = time.monotonic() + seconds
    while True:
        result = condition()
        if result or time.monotonic() > until:
            return result
        time.sleep(0.05)


class Terminal:
    def __init__(self, folder, command, columns=80, lines=24):
        self.tmux = ['tmux', '-S', os.path.join(folder, 'tmux'), '-f', '/dev/null']
        self.status = os.path.join(folder, 'status')
        self.run('new-session', '-d', '-x', str(columns), '-y', str(lines), f'{command}; echo $? > {self.status}; sleep 60')

    def run(self, *arguments):
        return subprocess.run([*self.tmux, *arguments], check=True, capture_output=True, text=True).stdout

    def screen(self, *options):
        return self.run('capture-pane', '-p', *options)

    def type(self, text):
        self.run('send-keys', '-l', text)

    def key(self, name):
        self.run('send-keys', name)

    def shows(self, pattern):
        """Waits for it."""
        return eventually(lambda: re.search(pattern, self.screen(), re.MULTILINE))

    def rows(self):
        return re.findall(r'^ *([0-9.]+)% +([0-9.]+)%  (.*)$', self.screen(), re.MULTILINE)

    def end(self):
        subprocess.run([*self.tmux, 'kill-server'], check=False, capture_output=True)


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def is_ready(port):
    try:
        with urllib.request.urlopen(f'http://127.0.0.1:{port}/readyz', timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


def plain(*arguments, **options):
    return subprocess.run([TOP, *arguments], capture_output=True, text=True, timeout=60, check=False, **options)


def try_terminal(folder, address, pid, began):
    terminal = Terminal(folder, f'env TERM=screen-256color LC_ALL=C.UTF-8 {TOP} -a {address} -d 0.5 -p {pid}')
    try:
        check('live', terminal.shows(r'^flamed-top  live, the last 60s: ') and terminal.shows('work_two'), terminal.screen())
        lines = terminal.screen().split('\n')
        check('24 lines of 80', len(lines) == 25 and max(map(len, lines)) <= 80, lines)
        check('the hottest function is first', terminal.rows()[0][2].startswith('work_two'), terminal.screen())
        check('a summary', terminal.shows(r'hottest\s+function\s+is\s+work_two'), terminal.screen())
        count = lambda: int(re.search(r'(\d+) samples$', terminal.screen(), re.MULTILINE)[1])
        before = count()
        check('it goes on', eventually(lambda: count() > before))
        check('names are harmless', '[31mevil' in terminal.screen() and '_]0;owned_' in terminal.screen() and
              ESCAPE + '[31m' not in terminal.screen('-e'), terminal.screen('-e'))
        check('the title is not changed', 'owned' not in terminal.run('display-message', '-p', '#{pane_title}'))

        terminal.type('T')
        check('T sorts by total', eventually(lambda: float(terminal.rows()[0][1]) > 99), terminal.screen())
        terminal.type('P')
        check('P sorts by self', eventually(lambda: terminal.rows()[0][2].startswith('work_two')), terminal.screen())
        terminal.type('&')
        terminal.type('^work_one$')
        terminal.key('Enter')
        check('& narrows to a function', terminal.shows(r'& \^work_one\$') and
              eventually(lambda: not any(row[2].startswith('work_two') for row in terminal.rows())), terminal.screen())
        terminal.type('&')
        terminal.type('(')
        terminal.key('Enter')
        check('a wrong pattern is told', terminal.shows('regular expression'), terminal.screen())
        terminal.type('&')
        terminal.key('Enter')
        check('& alone is everything', terminal.shows('work_two'), terminal.screen())
        terminal.type('/middle')
        terminal.key('Enter')
        check('/ finds', eventually(lambda: re.search(r'\x1b\[1m[^\n]*%  middle ', terminal.screen('-e'))), terminal.screen())
        terminal.type('p')
        terminal.key('Enter')
        check('p alone is everything', terminal.shows('By program'), terminal.screen())
        terminal.type('H')
        check('H is by thread', terminal.shows('By thread') and ESCAPE + '[31m' not in terminal.screen('-e'),
              terminal.screen())
        terminal.type('h')
        check('h is the help', terminal.shows('Any key goes back'), terminal.screen())
        check('the help fits', max(map(len, terminal.screen().split('\n'))) < 80)
        terminal.key('Escape')

        for columns, height in ((120, 40), (40, 10), (20, 5), (80, 24)):
            terminal.run('resize-window', '-x', str(columns), '-y', str(height))
            check(f'{columns} x {height}', eventually(lambda: 'flamed-top' in terminal.screen() and re.search(
                'q end|functions 1', terminal.screen().rstrip().split('\n')[-1])), terminal.screen())
        check('all is there again', terminal.shows('work_two') and len(terminal.rows()) > 3, terminal.screen())

        terminal.type('f')
        terminal.type(f'{began} {began + 2}')
        terminal.key('Enter')
        past = terminal.shows(r'^flamed-top  (20\S+Z) to \S+: [1-4]\.\d+ s of CPU time, \d+ samples$')
        check('a past window', past, terminal.screen())
        terminal.type('>')
        check('> is the window after', past and eventually(lambda: terminal.shows(r'^flamed-top  20') and
              past[1] + ' to' not in terminal.screen()), terminal.screen())
        terminal.type('l')
        terminal.key('Enter')
        check('l is live', terminal.shows('^flamed-top  live, '), terminal.screen())
        terminal.type('q')
        check('q ends well', eventually(lambda: os.path.exists(terminal.status)) and
              open(terminal.status, encoding='ascii').read() == '0\n')
        check('the terminal is as before', 'work_two' not in terminal.screen(), terminal.screen())
    finally:
        terminal.end()


def try_plain(folder, address, unix, pid, began):
    path = os.path.join(folder, 'busy.txt')
    with open(path, 'wb') as file:
        done = subprocess.run([TOP, '-a', address, '-p', str(pid), '--rows', '3'], stdout=file, env={}, timeout=60, check=False)
    with open(path, 'rb') as file:
        text = file.read()
    check('piped to a file', done.returncode == 0 and b'work_two' in text and b'hottest function' in text, text)
    check('the file has text alone', not re.search(rb'[\x00-\x09\x0b-\x1f\x7f]', text), text)
    check('rows', len(re.findall(rb'^ *[0-9.]+% ', text, re.MULTILINE)) == 3, text)
    past = plain('-a', address, '--from', str(began), '--to', str(began + 2), '-p', str(pid))
    check('a past window', 'work_two' in past.stdout and past.stdout.startswith('20'), past)
    twice = plain('-a', address, '-n', '2', '-d', '0.5')
    check('twice', twice.stdout.count('function (module)') == 2, twice)
    check('over the Unix socket', 'work_two' in plain('-a', 'unix:' + unix, '-p', str(pid)).stdout)
    copy = os.path.join(folder, 'flamed-top')
    shutil.copy(TOP, copy)
    other = subprocess.run(['setpriv', f'--reuid={STRANGER}', f'--regid={STRANGER}', '--clear-groups', copy, '-a', address],
                           capture_output=True, text=True, timeout=60, check=False)
    check("another user sees none of root's", other.returncode == 0 and 'work_two' not in other.stdout and
          f'uid {STRANGER}' in other.stdout, other)
    refused = plain('-a', address, '-p', 'nginx')
    check('a wrong pid is told', refused.returncode == 1 and 'is not a process' in refused.stderr, refused)
    away = plain('-a', f'127.0.0.1:{free_port()}')
    check('no flamed', away.returncode == 1 and 'flamed is not there' in away.stderr, away)
    check('a wrong option', plain('--colour').returncode == 2)
    check('help', plain('--help').stdout.startswith('Usage: flamed-top'))


def main():
    if not shutil.which('tmux'):
        print('SKIP: tmux is not installed')
        return 77
    folder = tempfile.mkdtemp(prefix='flamed-top-')
    os.chmod(folder, 0o755)
    port = free_port()
    unix = os.path.join(folder, 'flamed.sock')
    started = []
    try:
        flamed = subprocess.Popen([FLAMED, '--listen', f'127.0.0.1:{port}', '--listen', 'unix:' + unix, '--history', 'off',
                                   '--cpu-budget', 'off'], stderr=subprocess.DEVNULL)
        started.append(flamed)
        if not eventually(lambda: is_ready(port), 60):
            sys.exit('flamed did not become ready')
        load = os.path.join(folder, NAME)
        shutil.copy(VICTIM, load)
        os.chmod(load, stat.S_IRWXU)
        victim = subprocess.Popen([load])
        started.append(victim)
        time.sleep(1.5)
        began = int(time.time())
        eventually(lambda: time.time() > began + 3)
        try_terminal(folder, f'127.0.0.1:{port}', victim.pid, began)
        try_plain(folder, f'127.0.0.1:{port}', unix, victim.pid, began)
    finally:
        for process in started:
            process.send_signal(signal.SIGTERM)
            process.wait()
        shutil.rmtree(folder)
    print(f'{len(failures)} failures')
    return 1 if failures else 0


sys.exit(main())
