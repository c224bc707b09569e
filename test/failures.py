#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What failed, in a few lines: failures.py NAME FILE

FILE is a Meson log (one JSON object a line), of which the output of failed tests counts, or what a compiler, clang-tidy,
clang-format or shellcheck said. Understands Catch2's console output and that of Node's test runner.
"""
import json
import re
import sys

WIDTH = 160
DETAIL_WIDTH = 480  # what was expected, what was found, and the messages: of a failure that may not come again
MOST_MESSAGES = 4  # of one failed expectation


def shorten(text, width):
    text = re.sub(r'[\x00-\x1f\x7f]+', ' ', text).strip()
    return text if len(text) <= width else text[: width - 3] + '...'


def catch2(output):
    """Test case, then "file:line: EXPRESSION: expansion; messages" for each expectation that failed."""
    found = []
    lines = output.splitlines()
    case = told = None
    i = 0
    while i < len(lines):
        if re.fullmatch('-{70,}', lines[i]):  # -----, the name on one or more lines, -----
            end = next((j for j in range(i + 1, len(lines)) if re.fullmatch('-{70,}', lines[j])), None)
            if end is not None and end - i < 12:
                case = ' '.join(line.strip() for line in lines[i + 1 : end])
                i = end
        failed = re.match(r'(\S+?):(\d+): FAILED:', lines[i])
        if failed:
            words = []
            for line in lines[i + 1 :]:
                if not line.strip() or re.match(r'\S+:\d+: |[-=.~]{70,}', line):
                    break
                if line.startswith('  '):
                    words.append(line.strip())
            if case != told:
                found.append(case or '(no test case)')
                told = case
            place = failed.group(1).rsplit('/', 1)[-1] + ':' + failed.group(2)
            found.append('  ' + place + ': ' + '; '.join(words[: 1 + MOST_MESSAGES]))
        i += 1
    return found


def node(output):
    found = []
    for line in output.splitlines():
        name = re.match(r'\s*(?:not ok \d+ - |\u2716 )(.+?)(?: \([\d.]+ms\))?$', line)
        error = re.match(r"\s+(?:error: |\w*Error(?: \[\w+\])?: )(.+)", line)
        if name and not name.group(1).startswith(('failing tests', '/')) and name.group(1) not in found:
            found.append(name.group(1))
        elif error and found and not found[-1].startswith('  ') and error.group(1) not in ("'test failed'", '|-'):
            found.append('  ' + error.group(1))
    return found


def last_words(output):
    return ['  ' + line for line in [line for line in output.splitlines() if line.strip()][-3:]]


def of_meson(text):
    found = []
    for line in text.splitlines():
        test = json.loads(line)
        if test['result'] in ('OK', 'EXPECTEDFAIL', 'SKIP'):
            continue
        output = test.get('stdout') or ''
        errors = test.get('stderr') or ''
        told = catch2(output) or node(output) or last_words(output + '\n' + errors)
        if test['result'] == 'TIMEOUT':
            told.append('  it took too long and was ended')
        found += told
    return found


def of_check(text):
    found = []
    for line in text.splitlines():
        unformatted = re.match(r'(\S+?):\d+:\d+: error: code should be clang-formatted', line)
        complaint = unformatted.group(1) if unformatted else None
        if complaint is None and re.match(r'\S+?:\d+:(\d+:)? (fatal )?(warning|error): |In \S+ line \d+:', line):
            complaint = line
        if complaint is not None and complaint not in found:
            found.append(complaint)
    return found or last_words(text)


def main():
    name, path = sys.argv[1:]
    with open(path, encoding='utf-8', errors='replace') as file:
        text = file.read()
    for line in of_meson(text) if text.startswith('{') else of_check(text):
        is_detail = line.startswith('  ')
        print('  ' + shorten(line, DETAIL_WIDTH) if is_detail else shorten(name + ': ' + line, WIDTH))


if __name__ == '__main__':
    main()
