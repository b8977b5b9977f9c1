# SPDX-License-Identifier: BSD-3-Clause
"""testroce for its tests: run with arguments, with a file of commands, in a pseudo-terminal, or line by line; and what is read out of what it prints. argv[1] is its path; tests that are named behind run alone."""
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TESTROCE = os.path.abspath(sys.argv[1])
MODES = 'send send-imm write write-imm read atomic uc ud multicast srq window echo incast mixed'.split()
PATIENCE = 120
tmp = tempfile.mkdtemp()
os.environ['UROCE_LOG'] = 'error'
number = failed = 0


def report(is_fine, name, said=''):
    global number, failed
    number += 1
    failed += not is_fine
    if not is_fine:
        for line in str(said).splitlines()[-60:]:
            print('# ' + line)
    print(f"{'ok' if is_fine else 'not ok'} {number} - {name}", flush=True)


def skip(name, why):
    global number
    number += 1
    print(f'ok {number} - {name} # SKIP {why}', flush=True)


def run_tests(tests, only):
    try:
        for test in tests:
            if not only or test.__name__ in only:
                test()
    finally:
        shutil.rmtree(tmp, ignore_errors=True)
    print(f'1..{number}')
    sys.exit(failed != 0)


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __str__(self):
        return f'exit code {self.code}\n{self.out}\n{self.err}'


def run(*args, feed='', before=()):
    """before: words in front of the program, such as "ip netns exec"."""
    try:
        p = subprocess.run([*before, TESTROCE, *args], input=feed, capture_output=True, text=True, timeout=PATIENCE, check=False)
        return Result(p.returncode, p.stdout, p.stderr)
    except subprocess.TimeoutExpired as e:
        return Result(124, (e.stdout or b'').decode(), (e.stderr or b'').decode())


def script(*lines, args=(), before=()):
    """Runs the lines as a --cmdline-file."""
    path = tempfile.mktemp(dir=tmp)
    with open(path, 'w', encoding='utf-8') as f:
        f.write('\n'.join(lines) + '\n')
    return run('--', *args, f'--cmdline-file={path}', before=before)


def table(out):
    """{end: [messages, bytes, verified, lost, late]} of the last table."""
    rows = re.findall(r'^  (client|server) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) ', out, re.M)
    return {r[0]: [int(x) for x in r[1:]] for r in rows}


def counters(out, port):
    """{name: value} of `show counters` of a port."""
    part = re.split(r'^port (\d+)$', out, flags=re.M)
    text = ''.join(part[i + 1] for i in range(1, len(part) - 1, 2) if part[i] == str(port))
    return {m[0]: int(m[1]) for m in re.findall(r'^  (\w+) +(\d+)  ', text, re.M)}


class Process:
    """One that is talked to line by line."""

    def __init__(self, *args, before=()):
        self.process = subprocess.Popen([*before, TESTROCE, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.text, self.marks = '', 0

    def until(self, pattern, start=0, seconds=30):
        """Where the pattern was found in what came; None when it does not come."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = re.search(pattern, self.text[start:])
            if found:
                return found
            self.text += (self.process.stdout.read() or b'').decode(errors='replace')
            time.sleep(0.005)
        return None

    def do(self, line):
        """What a command prints: a word that there is not, behind it, tells where that ends; so the exit code will be 1."""
        self.marks += 1
        start = len(self.text)
        self.process.stdin.write(f'{line}\nmark-{self.marks}\n'.encode())
        self.process.stdin.flush()
        end = self.until(rf'"mark-{self.marks}": .*\n', start)
        return self.text[start:start + end.start()] if end else self.text[start:] + 'NO ANSWER'

    def poll_until(self, line, pattern, seconds=10):
        """Repeats a command until it prints that; all that it printed."""
        end, said = time.monotonic() + seconds, ''
        while not re.search(pattern, said) and time.monotonic() < end:
            said += self.do(line)
        return said

    def end(self, seconds=30):
        """Its exit code when its input ends; None: it had to be killed."""
        if not self.process.stdin.closed:
            self.process.stdin.close()
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            code = None
        self.text += (self.process.stdout.read() or b'').decode(errors='replace')
        return code


class Terminal:
    """One in a pseudo-terminal."""

    def __init__(self, *args):
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.execv(TESTROCE, [TESTROCE, *args])
        self.text = ''

    def read_until(self, pattern, seconds=30):
        """What came, when the pattern is in it; None when it does not come."""
        end = time.time() + seconds
        start = len(self.text)
        while time.time() < end:
            found = re.search(pattern, self.text[start:])
            if found:
                return self.text[start:]
            ready, _, _ = select.select([self.fd], [], [], 0.1)
            if ready:
                try:
                    self.text += os.read(self.fd, 4096).decode(errors='replace')
                except OSError:
                    break
        return None

    def write(self, text):
        os.write(self.fd, text.encode())

    def go(self, *steps):
        """(what is typed, what has to come) one after the other; the first that does not, or ''."""
        for feed, pattern in steps:
            self.write(feed)
            if self.read_until(pattern) is None:
                return f'{feed!r} brings no {pattern!r}'
        return ''

    def end(self, seconds=10):
        """Its exit code; None: it had to be killed."""
        end, code = time.time() + seconds, None
        while code is None and time.time() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                code = os.waitstatus_to_exitcode(status)
            elif select.select([self.fd], [], [], 0.05)[0]:
                try:
                    self.text += os.read(self.fd, 4096).decode(errors='replace')
                except OSError:
                    time.sleep(0.05)
        if code is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)
        return code
