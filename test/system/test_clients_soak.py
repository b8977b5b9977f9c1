#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A thousand client processes of one daemon, in groups of fifty: they attach, connect in pairs, transfer, verify and leave, and the daemon holds as much as before. Writes TAP.
   test_clients_soak.py UROCED WORKER [PROCESSES]"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon import Daemon, until  # noqa: E402

GROUP = 50
program, worker = sys.argv[1:3]
processes = int(sys.argv[3]) if len(sys.argv) > 3 else 1000


def run_group(daemon, first):
    workers = [subprocess.Popen([worker, "pair", "20", str(first + n + 1)], env=daemon.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for n in range(GROUP // 2)]
    for w in workers:
        err = w.communicate(timeout=60)[1]
        assert w.returncode == 0, f"a worker ended with {w.returncode}: {err}"
    until(lambda: daemon.clients() == 0, 2, "the clients' end")


print("1..1")
try:
    with Daemon(program) as daemon:
        for group in range(processes // GROUP):
            run_group(daemon, group * GROUP)
            if group == 1:
                before = daemon.holds()
        after = daemon.holds()
    print(f"# {processes} processes; held after two groups {before}, at the end {after}")
    assert after["fds"] <= before["fds"] and after["maps"] <= before["maps"] + 8 and after["kib"] <= before["kib"] + 8192, "the daemon holds more than before"
    print("ok 1 - processes come and go")
except AssertionError as e:
    print("# " + str(e).replace("\n", "\n# "))
    print("not ok 1 - processes come and go")
    sys.exit(1)
