#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two testroce processes, every mode, over what joins two hosts: af_packet at two ends of a veth pair in network namespaces, tap interfaces in a bridge, memory shared by memif; and as clients of uroced, alone and against an
engine of another process. Needs root but for memif and uroced's ring; makes and removes its namespaces. Writes TAP.
test_testroce_links.py PATH-OF-TESTROCE PATH-OF-UROCED [TEST...]"""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon import Daemon  # noqa: E402
from troce import MODES, Process, report, run_tests, script, skip, tmp  # noqa: E402

UROCED = os.path.abspath(sys.argv[2])
PORT = 20000 + os.getpid() % 20000
SPACES = ['uroce-ta-%d' % os.getpid(), 'uroce-tb-%d' % os.getpid()]
ADDRESSES = ['10.78.0.1', '10.78.0.2']


def ip(space, *words):
    subprocess.run(['ip', '-n', SPACES[space], *' '.join(words).split()], check=True, capture_output=True, timeout=20)


def inside(space):
    return ('ip', 'netns', 'exec', SPACES[space])


class Spaces:
    """As many namespaces, each with its loopback."""

    def __init__(self, count):
        self.count = count

    def __enter__(self):
        for i in range(self.count):
            subprocess.run(['ip', 'netns', 'add', SPACES[i]], check=True, capture_output=True, timeout=20)
            ip(i, 'link set lo up')
        return self

    def __exit__(self, *_):
        for i in range(self.count):
            subprocess.run(['ip', 'netns', 'del', SPACES[i]], capture_output=True, timeout=20, check=False)

    def join(self):
        ip(0, 'link add eth0 mtu 4200 type veth peer name eth0 netns', SPACES[1], 'mtu 4200')
        for i, address in enumerate(ADDRESSES):
            ip(i, 'addr add', address + '/24 dev eth0')
            ip(i, 'link set eth0 up')


def why_not():
    if os.geteuid():
        return 'needs root'
    return '' if os.path.exists('/dev/net/tun') else 'needs /dev/net/tun'


def check_pair(name, devices, at='127.0.0.1', before=((), ()), modes=None, size='4K'):
    """Every mode between two processes; the first one serves."""
    modes = modes or MODES
    server = Process('--', '--listen', f'{at}:{PORT}', '--device', devices[0], before=before[0])
    lines = ['set size ' + size] + [line for mode in modes for line in (f'set fwd {mode}', 'start', 'wait 0.3', 'stop')]
    if not server.until('waiting for a testroce'):
        server.end(1)
        return report(False, name, server.text)
    r = script(*lines, args=('--connect', f'{at}:{PORT}', '--device', devices[1]), before=before[1])
    code = server.end()
    moved = [int(n) for n in re.findall(r'^  client +(\d+) ', r.out, re.M)]
    fine = r.code == 0 and code == 0 and r.out.count(', stopped,') == len(modes) == server.text.count('serving mode') and len(moved) == len(modes) and all(moved) and not r.err
    return report(fine, name, f'{r}\nserver: exit code {code}\n{server.text}')


def test_packet():
    name = 'two processes over af_packet'
    if why_not():
        return skip(name, why_not())
    with Spaces(2) as spaces:
        spaces.join()
        before = inside(0), inside(1)
        check_pair(name, ['inline:net_af_packet0,iface=eth0'] * 2, ADDRESSES[0], before)
        check_pair('the same with poll cores', ['embedded:net_af_packet0,iface=eth0,idle=sleep'] * 2, ADDRESSES[0], before, ['write', 'echo', 'mixed'])
        p = Process('--', '-i', '--device', 'inline:net_af_packet0,iface=eth0', before=before[0])
        up = p.poll_until('show port', '  mode +inline, up')
        ip(1, 'link set eth0 down')
        down = p.poll_until('show event', 'port 0: PORT_ERR: it has no link')
        ip(1, 'link set eth0 up')
        again = p.poll_until('show event', 'PORT_ACTIVE: it has a link')
        report('inline, up' in up and 'event: port 0: PORT_ERR' in down and 'event: port 0: PORT_ACTIVE' in again and p.end() == 1, 'a port that loses its link, and gets it back', p.text)
    return None


def test_tap():
    name = 'two processes over tap interfaces in a bridge'
    if why_not():
        return skip(name, why_not())
    with Spaces(1):
        ip(0, 'link add br0 type bridge forward_delay 0 mcast_snooping 0')
        ip(0, 'link set br0 up')
        for tap in ('t0', 't1'):
            ip(0, f'tuntap add dev {tap} mode tap multi_queue')
            ip(0, f'link set {tap} master br0 up')
        check_pair(name, [f'inline:net_tap{i},iface=t{i},ip=10.4.0.{i + 1}/24' for i in range(2)], before=(inside(0), inside(0)), size='1K')
    return None


def test_memif():
    if not os.path.isdir('/dev/shm'):
        return skip('two processes over memif', 'needs /dev/shm')
    socket = os.path.join(tmp, 'memif')
    return check_pair('two processes over memif', [f'inline:net_memif0,role={role},socket={socket},socket-abstract=no,ip=10.9.0.{i}/24' for i, role in ((1, 'server'), (2, 'client'))])


def test_served():
    with Daemon(UROCED) as daemon:
        r = script(*[line for mode in MODES for line in (f'set fwd {mode}', 'start', 'wait 0.3', 'stop')], args=('--device', daemon.device))
        report(r.code == 0 and r.out.count(', stopped,') == len(MODES) and not r.err, 'both ends as clients of one uroced', r)
        r = script('show port 0', 'show counters 0', args=('--device', daemon.device))
        report('  mode       served, ' in r.out and "is a daemon's" in r.err, "what is the daemon's is not shown as the program's own", r)
        check_pair('two processes, both clients of one uroced', [daemon.device] * 2)
    name = 'a client of uroced, and a process with an engine of its own, over af_packet'
    if why_not():
        return skip(name, why_not())
    with Spaces(2) as spaces:
        spaces.join()
        socket = os.path.join(tempfile.mkdtemp(dir=tmp), 's')
        daemon = subprocess.Popen([*inside(0), UROCED, '--vdev', 'net_af_packet0,iface=eth0', '--idle', 'sleep', '--socket', socket], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            for line in daemon.stdout:
                if line.startswith('  memory '):
                    break
            check_pair(name, ['unix:' + socket, 'inline:net_af_packet0,iface=eth0'], ADDRESSES[0], (inside(0), inside(1)))
        finally:
            daemon.terminate()
            daemon.communicate(timeout=20)
    return None


run_tests([test_packet, test_tap, test_memif, test_served], sys.argv[3:])
