#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The contract headers as rows for test_layout.c: every struct, member, enum value and number that they define, so that none can be forgotten.

usage: layout.py HEADER... > layout_rows.h

Reads the C that these headers are written in, and stops at what it does not understand."""
import re
import sys

NOT_SHARED = {'ctl_row'}  # structs that never leave the process


def strip(text):
    text = re.sub(r'/\*.*?\*/', ' ', text, flags=re.S)
    text = re.sub(r'_Static_assert\(.*?\);', ' ', text, flags=re.S)
    return text


def defines(text):
    for line in text.splitlines():
        m = re.match(r'#define\s+(\w+)\s+(\S.*)', line)
        if m:
            yield m.group(1)


def match_brace(text, at):
    depth = 0
    for i in range(at, len(text)):
        depth += {'{': 1, '}': -1}.get(text[i], 0)
        if not depth:
            return i
    raise SystemExit('layout.py: a brace is never closed')


def members(body, prefix=''):
    """Paths of all members of a struct or union, those of nested ones too."""
    at = 0
    while body[at:].strip():
        m = re.compile(r'\s*(?:struct|union)\s*\{').match(body, at)
        if m:
            end = match_brace(body, m.end() - 1)
            name = re.compile(r'\s*(\w*)\s*;').match(body, end + 1)
            if not name:
                raise SystemExit('layout.py: cannot read what follows: ' + body[end:end + 40])
            inner = prefix + name.group(1) + '.' if name.group(1) else prefix
            yield from members(body[m.end():end], inner)
            at = name.end()
            continue
        end = body.index(';', at)
        declaration = re.sub(r'_Alignas\(\w+\)', ' ', body[at:end])
        declaration = re.sub(r'\[[^]]*\]', ' ', declaration)
        names = [part.split()[-1].lstrip('*') for part in declaration.split(',')]
        for name in names:
            if not re.fullmatch(r'\w+', name):
                raise SystemExit('layout.py: cannot read: ' + body[at:end])
            yield prefix + name
        at = end + 1


def rows(text):
    for name in defines(text):
        yield f'VALUE({name})'
    code = re.sub(r'^#.*$', '', text, flags=re.M)
    for m in re.finditer(r'\benum\s+(\w+)\s*\{', code):
        for item in code[m.end():match_brace(code, m.end() - 1)].split(','):
            if item.strip():
                yield f'VALUE({item.split("=")[0].strip()})'
    for m in re.finditer(r'^struct\s+(\w+)\s*\{', code, flags=re.M):
        if m.group(1) in NOT_SHARED:
            continue
        yield f'SIZE({m.group(1)})'
        for path in members(code[m.end():match_brace(code, m.end() - 1)]):
            yield f'AT({m.group(1)}, {path})'


for path in sys.argv[1:]:
    with open(path, encoding='utf-8') as header:
        for row in rows(strip(header.read())):
            print(row)
