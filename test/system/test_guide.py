#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The sessions shown in a page of the guide are run, and what they print has the shape of what is shown: numbers may differ, words may not. Writes TAP.
test_guide.py PAGE PROGRAM... [--write]: with --write, puts what was printed into the page.

A session is a block that begins with ```console. Its first line is "$ PROGRAM ARGUMENTS"; lines that begin with PROGRAM's name and "> " are typed at its prompt, the others are what comes. A line "..." stands for any lines."""
import os
import re
import subprocess
import sys

PATIENCE = 180
page, *programs = [a for a in sys.argv[1:] if a != '--write']
path_of = {os.path.basename(p): p for p in programs}
text = open(page, encoding='utf-8').read()
BLOCK = re.compile(r'(```console\n)(.*?)(```\n)', re.S)


def run(lines):
    """What is printed, with the typed lines at their places."""
    words = lines[0][2:].split()
    prompt = words[0] + '> '
    typed = [line[len(prompt):] for line in lines[1:] if line.startswith(prompt)]
    # a word that there is not, after each: its one line tells where the answer to the next begins
    feed = ''.join(f'{line}\nmark-{i}\n' for i, line in enumerate(typed))
    p = subprocess.run([path_of[words[0]], *words[1:]], input=feed, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE, env={**os.environ, 'UROCE_LOG': 'error'}, check=False)
    parts = re.split(r'^"mark-\d+": .*\n', p.stdout, flags=re.M)
    shown = parts[0]
    out = [lines[0]]
    for i, line in enumerate(typed):
        out.append(prompt + line)
        out += (parts[i] if i < len(parts) else 'NOTHING: IT HAD ENDED').splitlines()
    if not typed:
        out += shown.splitlines()
    return out


NUMBER = re.compile(r'\b(?:0x[0-9a-f]+|[0-9a-f]{2}(?::[0-9a-f]{2}){5}|[0-9a-f]*[0-9][0-9a-f]*(?:\.[0-9]+)?)\b')


def shape(line):
    """Which calls of the kernel a control path takes is the machine's business, too."""
    return re.sub(r'\s+', ' ', NUMBER.sub('N', re.sub(r'(system calls: ).*', r'\1', line))).strip().replace('calls:', 'calls')


def is_alike(shown, found):
    """Whether the lines found fit those shown."""
    if not shown:
        return not found
    if shown[0] == '...':
        return any(is_alike(shown[1:], found[i:]) for i in range(len(found) + 1))
    return bool(found) and shape(shown[0]) == shape(found[0]) and is_alike(shown[1:], found[1:])


blocks = list(BLOCK.finditer(text))
print(f'1..{len(blocks) + 1}')
failed = 0
written = []
for number, block in enumerate(blocks, 1):
    shown = block.group(2).splitlines()
    try:
        found = run(shown)
    except (subprocess.TimeoutExpired, OSError, KeyError) as e:
        found = [shown[0], f'{type(e).__name__}: {e}']
    written.append(block.group(2) if '...' in shown else '\n'.join(found) + '\n')
    fine = '--write' in sys.argv or is_alike(shown, found)
    if not fine:
        failed += 1
        print('\n'.join('# ' + line for line in ['shown:', *shown, 'found:', *found]))
    print(f"{'ok' if fine else 'not ok'} {number} - {shown[0]}", flush=True)
named = re.findall(r'\]\(([a-zA-Z.][^)#:]*)\)', text)
missing = [n for n in named if not os.path.exists(os.path.join(os.path.dirname(page), n))]
print(f"{'not ok' if missing or not blocks else 'ok'} {len(blocks) + 1} - what is named exists {' '.join(missing)}")
if '--write' in sys.argv:
    rest = iter(written)
    with open(page, 'w', encoding='utf-8') as f:
        f.write(BLOCK.sub(lambda m: m.group(1) + next(rest) + m.group(3), text))
sys.exit(bool(failed or missing or not blocks))
