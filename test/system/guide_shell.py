# SPDX-License-Identifier: BSD-3-Clause
"""The shell in which the commands of a page are carried out, one after the other, as a reader would in one terminal. Its folder is a new one in which the source tree's folders and `build` are to be found; the programs are in its PATH. Root has a network of
its own there, with nothing in it, so that what a page makes (namespaces, interfaces) is seen by nobody and gone afterwards."""
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time

PATIENCE = 180
BACKGROUND_PATIENCE = 20
HOME = '/home/you/uroce'
OWN_NETWORK = ['unshare', '--net', '--mount', '--propagation', 'private']
BEGIN = """sudo() { "$@"; }
"""
BEGIN_OWN = """mkdir -p /run/netns && mount -t tmpfs none /run/netns && ip link set lo up
"""


class Shell:
    def __init__(self, root, build, programs):
        self.folder = tempfile.mkdtemp(prefix='uroce-guide-')
        self.bin = os.path.join(self.folder, '.bin')
        os.mkdir(self.bin)
        for name in ('app', 'config', 'doc', 'lib', 'test'):
            os.symlink(os.path.join(root, name), os.path.join(self.folder, name))
        os.symlink(build, os.path.join(self.folder, 'build'))
        for program in programs:
            os.symlink(os.path.abspath(program), os.path.join(self.bin, os.path.basename(program)))
        self.is_root = os.geteuid() == 0
        self.has_network = self.is_root and subprocess.run([*OWN_NETWORK, 'true'], stderr=subprocess.DEVNULL, check=False).returncode == 0
        self.commands = 0
        self.start()

    def start(self):
        # huge pages are left to the tests that are about them
        environment = {**os.environ, 'PATH': self.bin + ':' + os.environ['PATH'], 'UROCE_LOG': 'error', 'LC_ALL': 'C'}
        environment.pop('UROCE_DEVICE', None)
        self.bash = subprocess.Popen([*(OWN_NETWORK if self.has_network else []), 'bash', '--norc'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1, cwd=self.folder,
                                     env=environment, start_new_session=True)
        self.bash.stdin.write(BEGIN + (BEGIN_OWN if self.has_network else ''))

    def end(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.bash.pid, number)
            except ProcessLookupError:
                break
            time.sleep(0.5)
        self.bash.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def await_mark(self, mark):
        """The exit code that stands behind it."""
        end = time.monotonic() + PATIENCE
        while True:
            ready = select.select([self.bash.stdout], [], [], max(0, end - time.monotonic()))[0]
            line = self.bash.stdout.readline() if ready else ''
            if not line:
                self.end()
                raise AssertionError('the shell has ended' if ready else f'still running after {PATIENCE} s')
            if line.startswith(mark):
                return int(line.split()[1])

    def run(self, command, typed='', is_enough=None):
        """Output and exit code of a command that reads what is typed. One that ends with & goes on: its output is awaited until is_enough(lines), some time at most. The folder is called HOME in what is printed."""
        self.commands += 1
        names = [os.path.join(self.folder, f'.{what}-{self.commands}') for what in ('in', 'out')]
        with open(names[0], 'w', encoding='utf-8') as f:
            f.write(typed)
        open(names[1], 'w', encoding='utf-8').close()
        mark = f'mark-of-command-{self.commands}'
        is_background = re.search(r'(?<!&)&$', command)
        redirected = f'<{names[0]} >{names[1]} 2>&1'
        # in the background without braces, so that the job is the program itself; what the command redirects comes later and wins
        self.bash.stdin.write(f'{redirected} {command}\n' if is_background else f'{{ {command}\n}} {redirected}\n')
        self.bash.stdin.write(f'echo {mark} $?\n')
        code = self.await_mark(mark)
        end = time.monotonic() + BACKGROUND_PATIENCE
        while True:
            with open(names[1], encoding='utf-8', errors='replace') as f:
                text = f.read().replace(self.folder, HOME)
            if not is_background or time.monotonic() > end or is_enough([line.rstrip() for line in text.splitlines()]):
                return text, code
            time.sleep(0.02)
