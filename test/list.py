#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""list.py ROOT [--rows]: every test with its suite and the rows of the list of known bugs that it covers, or row by row.

A C test names its rows in a comment directly above its function, /* known-bugs: 21 23 */; a script, a trace and a fuzz target in
a line of its own, "# known-bugs: 21" or the same C comment, above what it covers or at the top. Rows of a whole file count for
the file's name."""
import os
import re
import signal
import sys

SUITES = ('unit', 'trace', 'sim', 'abi', 'fuzz', 'system', 'interop')
ROWS = re.compile(r'known-bugs:\s*((?:[A-Z]?\d+[\s,]*)+)')
REGISTERED = re.compile(r'cmocka_unit_test\w*\(\s*(\w+)')
# What may stand directly below a comment with rows: a function of C, Python or the shell, or a row of a table that begins with a name.
BELOW = re.compile(r'^(?:static\s+)?(?:[\w*]+\s+)*?[*]?(\w+)\(|^def\s+(\w+)|^\s*\{\s*"([^"]+)"')


def rows_in(line):
    found = ROWS.search(line)
    return found.group(1).replace(',', ' ').split() if found else []


def name_below(lines, i):
    for line in lines[i + 1:i + 3]:
        if ROWS.search(line):
            continue
        found = BELOW.match(line)
        return next((g for g in found.groups() if g), None) if found else None
    return None


def tests_in(folder, file):
    """{name: rows} of a file."""
    stem, ext = os.path.splitext(file)
    with open(os.path.join(folder, file), encoding='utf-8', errors='replace') as f:
        text = f.read()
    lines = text.splitlines()
    tests = {name: [] for name in REGISTERED.findall(text)} if ext == '.c' else {}
    is_whole = ext == '.trace' or stem.startswith('fuzz_') and 'LLVMFuzzerTestOneInput' in text
    if is_whole:
        tests[stem] = []
    for i, line in enumerate(lines):
        rows = rows_in(line)
        if rows:
            name = stem if is_whole else name_below(lines, i) or stem
            tests.setdefault(name, []).extend(rows)
    return tests


def scripts_in(folder):
    """Names of tests in meson.build that are one program, those of a foreach over a list of words too."""
    path = os.path.join(folder, 'meson.build')
    if not os.path.exists(path):
        return []
    with open(path, encoding='utf-8') as f:
        text = f.read()
    names = re.findall(r"(?<![\w.])test\('([\w-]+)',\s*(?:find_program|system_python)", text)
    for variable, words, begins in re.findall(r"foreach (\w+) : \[([^\]]*)\]\n\s*test\((?:'([\w-]*)' \+ )?\1,\s*system_python", text):
        names += [begins + word for word in re.findall(r"'([\w-]+)'", words)]
    return names


def collect(root):
    """[(suite, file or program, test, rows)]"""
    found = []
    for suite in SUITES:
        folder = os.path.join(root, 'test', suite)
        if not os.path.isdir(folder):
            continue
        listed = set()
        for file in sorted(os.listdir(folder)):
            if os.path.splitext(file)[1] not in ('.c', '.py', '.sh', '.trace'):
                continue
            stem = os.path.splitext(file)[0]
            for name, rows in tests_in(folder, file).items():
                listed.add(stem.removeprefix('test_'))
                found.append((suite, name if name == stem else stem + '.' + name, rows))
        for name in scripts_in(folder):
            if name.removeprefix('test_') not in listed:
                found.append((suite, name, []))
    return found


def row_order(row):
    letters = re.match(r'[A-Z]*', row).group(0)
    return letters, int(row[len(letters):])


def main():
    root, by_row = sys.argv[1], '--rows' in sys.argv[2:]
    tests = collect(root)
    if by_row:
        rows = {}
        for suite, name, covered in tests:
            for row in covered:
                rows.setdefault(row, []).append(suite + ' ' + name)
        for row in sorted(rows, key=row_order):
            for i, test in enumerate(rows[row]):
                print('%-5s %s' % (row if i == 0 else '', test))
        return 0
    for suite, name, covered in tests:
        print(('%-7s %-56s %s' % (suite, name, ' '.join(dict.fromkeys(covered)))).rstrip())
    return 0


if __name__ == '__main__':
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `--list | head`
    sys.exit(main())
