#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The commands shown in a page of the guide are run, in the page's order and in one shell (guide_shell.py), and what they print has the shape of what is shown: numbers may differ, words may not. Writes TAP.
test_guide.py ROOT BUILD PAGE PROGRAM... [--write]: with --write, puts what was printed into the page.

Blocks that begin with
  ```console  have commands, in lines that begin with "$ " (one that ends with a backslash goes on in the next line; one that ends with & stays in the background) or "# " (as root), and what they print. Lines that begin with the name
              of a command's program and "> " are typed at its prompt. A line "..." stands for any lines, and lines that begin with "event: " come when they come.
  ```sh       have commands alone, which have to succeed.
A block directly below one of these comments is not run, and the test says why:
  <!-- not run: REASON -->     never
  <!-- needs: WORDS -->        where the machine has not got one of them: root (and a network of its own), or a program of the PATH"""
import os
import re
import shutil
import subprocess
import sys

from guide_shell import Shell

BLOCK = re.compile(r'(?:^<!-- (not run|needs): ([^\n]*) -->\n\n?)?^```(console|sh)\n(.*?)^```\n', re.S | re.M)
NUMBER = re.compile(r'\b(?:0x[0-9a-f]+|[0-9a-f]{2}(?::[0-9a-f]{2}){5}|[0-9a-f]*[0-9][0-9a-f]*(?:\.[0-9]+)?(?:[kMGT]|[num]?s)?)\b')


def is_command(line):
    return line.startswith(('$ ', '# '))


def cut(lines):
    """[(lines of the command, what is shown below it)]"""
    parts = []
    for line in lines:
        if is_command(line):
            parts.append(([line], []))
        elif parts and parts[-1][0][-1].endswith('\\'):
            parts[-1][0].append(line)
        else:
            parts[-1][1].append(line)
    return parts


def run(shell, command, shown):
    """What a command prints, with the typed lines at their places."""
    text = '\n'.join(command)[2:]
    prompt = next((w for w in text.split() if '=' not in w), '') + '> '
    typed = [line[len(prompt):] for line in shown if line.startswith(prompt)]
    # a word that there is not, after each: its one line tells where the answer to the next begins
    feed = ''.join(f'{line}\nmark-{i}\n' for i, line in enumerate(typed))
    printed, _ = shell.run(text, feed, lambda found: is_alike([line.rstrip() for line in shown], found))
    parts = re.split(r'^"mark-\d+": .*\n', printed, flags=re.M)
    out = []
    for i, line in enumerate(typed):
        out.append(prompt + line)
        out += (parts[i] if i < len(parts) else 'NOTHING: IT HAD ENDED').splitlines()
    return [line.rstrip() for line in (out if typed else parts[0].splitlines())]


def shape(line):
    """Which calls of the kernel a control path takes is the machine's business, too."""
    return re.sub(r'\s+', ' ', NUMBER.sub('N', re.sub(r'(system call)s?: .*', r'\1s', line))).strip()


def fits(shown, found):
    if not shown:
        return not found
    if shown[0] == '...':
        return any(fits(shown[1:], found[i:]) for i in range(len(found) + 1))
    return bool(found) and shape(shown[0]) == shape(found[0]) and fits(shown[1:], found[1:])


def is_alike(shown, found):
    """Whether the lines found fit those shown."""
    return fits(*([line for line in lines if not line.startswith('event: ')] for lines in (shown, found)))


def missing(shell, words):
    """What of the needs there is not."""
    for word in words.replace(',', ' ').split():
        if word == 'root' and not shell.has_network:
            return 'root, and a network namespace of its own'
        if word != 'root' and not shutil.which(word, path=shell.bin + ':' + os.environ['PATH']):
            return word
    return None


def play(shell, kind, body, is_write):
    """(whether all is as shown, the block as it was found, what to say)"""
    if kind == 'sh':
        text, code = shell.run('(set -e\n' + body + ')')
        return code == 0, body, [f'exit code {code}', *text.splitlines()]
    found, is_fine = [], True
    for command, shown in cut(body.splitlines()):
        printed = run(shell, command, shown)
        is_fine = is_fine and is_alike([line.rstrip() for line in shown], printed)
        found += command + (shown if '...' in shown else printed)
        if not is_fine and not is_write:
            return False, '\n'.join(found) + '\n', [*command, 'shown:', *shown, 'found:', *printed]
    return True, '\n'.join(found) + '\n', []


def test_blocks(root, build, page, programs, is_write):
    with open(page, encoding='utf-8') as f:
        text = f.read()
    blocks = list(BLOCK.finditer(text))
    shell = Shell(root, build, programs)
    print(f'1..{len(blocks) + 1}')
    failed, written, at = 0, '', 0
    for number, block in enumerate(blocks, 1):
        mark, words, kind, body = block.groups()
        name = f'{number} - {body.splitlines()[0]}'.replace('#', '\\#')
        lacking = words if mark == 'not run' else 'there is no ' + missing(shell, words) if mark and missing(shell, words) else None
        if lacking:
            print(f'ok {name} # SKIP {lacking}', flush=True)
            continue
        try:
            is_fine, found, said = play(shell, kind, body, is_write)
        except (AssertionError, OSError, subprocess.SubprocessError) as e:
            is_fine, found, said = False, body, [str(e)]
            shell = Shell(root, build, programs)
        written += text[at:block.start(4)] + found
        at = block.end(4)
        if not is_fine and not is_write:
            failed += 1
            print('\n'.join('# ' + line for line in said))
        print(f"{'ok' if is_fine or is_write else 'not ok'} {name}", flush=True)
    shell.end()
    if is_write:
        with open(page, 'w', encoding='utf-8') as f:
            f.write(written + text[at:])
    named = re.findall(r'\]\(([a-zA-Z.][^)#:]*)\)', text)
    lost = [n for n in named if not os.path.exists(os.path.join(os.path.dirname(page), n))]
    print(f"{'not ok' if lost else 'ok'} {len(blocks) + 1} - what is named exists {' '.join(lost)}")
    return failed == 0 and not lost


if __name__ == '__main__':
    arguments = [a for a in sys.argv[1:] if a != '--write']
    sys.exit(not test_blocks(*(os.path.abspath(a) for a in arguments[:3]), arguments[3:], '--write' in sys.argv))
