# SPDX-License-Identifier: BSD-3-Clause
"""A daemon for a test: starts it on a net_ring port of its own in a temporary directory, reads its reports, counts what it holds, and ends it. Used as a context manager; afterwards `last` is all that it has said."""
import os
import re
import signal
import subprocess
import tempfile
import time


class Daemon:
    def __init__(self, program, *options, socket=None):
        self.dir = tempfile.mkdtemp(prefix="uroced-")
        self.socket = socket or os.path.join(self.dir, "d.sock")
        self.out = os.path.join(self.dir, "out")
        self.device = "unix:" + self.socket
        self.command = [program, "--vdev", "net_ring0,link=t,side=0", "--ip", "10.0.0.1/24", "--idle", "pause", "--socket", self.socket, *options]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=open(self.out, "w"), stderr=subprocess.STDOUT)
        until(lambda: "socket    " in self.text() or self.process.poll() is not None, 20, "the daemon's socket")
        if self.process.poll() is not None:
            raise AssertionError("the daemon ended: " + open(self.out).read())
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.last = self.text()
        for name in os.listdir(self.dir):
            os.unlink(os.path.join(self.dir, name))
        os.rmdir(self.dir)

    def environment(self):
        return {**os.environ, "UROCE_DEVICE": self.device}

    def report(self):
        """The text of a fresh report."""
        before = os.path.getsize(self.out)
        self.process.send_signal(signal.SIGUSR1)
        until(lambda: "\ncount " in self.text(before), 5, "a report")
        return self.text(before)

    def text(self, offset=0):
        with open(self.out, errors="replace") as f:
            f.seek(offset)
            return f.read()

    def value(self, key, report=None):
        """The sum of all `key NUMBER` in a report; 0 when it is not there: counters that are 0 are left out."""
        return sum(int(n) for n in re.findall(rf"\b{re.escape(key)} (\d+)", report or self.report()))

    def clients(self):
        return int(re.search(r"^server .* clients (\d+)$", self.report(), re.M).group(1))

    def holds(self):
        """What the process has: descriptors, mappings, KiB of memory."""
        pid = self.process.pid
        with open(f"/proc/{pid}/status") as f:
            kib = int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1))
        with open(f"/proc/{pid}/maps") as f:
            maps = sum(1 for _ in f)
        return dict(fds=len(os.listdir(f"/proc/{pid}/fd")), maps=maps, kib=kib)


def until(condition, seconds, what):
    """Waits until condition() holds; returns how many seconds it took."""
    start = time.monotonic()
    while not condition():
        if time.monotonic() - start > seconds:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(0.002)
    return time.monotonic() - start
