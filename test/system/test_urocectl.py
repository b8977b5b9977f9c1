#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""urocectl as an operator uses it, on a uroced with traffic: every noun as a table and as JSON, watch in a terminal (tmux), addresses, the end of a client, captures read back by tshark, and what it says to commands that make no sense. One daemon
is on a port of its own (anyone can), one between network namespaces (root). Writes TAP.

test_urocectl.py ROOT UROCED UROCECTL UROCE_PERF CLIENT [TEST...]"""
import json
import os
import pty
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from daemon import Daemon, until  # noqa: E402
from two_hosts import make_hosts, remove_hosts  # noqa: E402

ROOT, UROCED, UROCECTL, PERF, CLIENT = (os.path.abspath(a) for a in sys.argv[1:6])
NOUNS = ['device', 'port', 'gid', 'neigh', 'client', 'qp', 'cq', 'mr', 'drops', 'cores']
HOSTS = ['uroce-ca-%d' % os.getpid(), 'uroce-cb-%d' % os.getpid()]
PATIENCE = 60
running = []


class Skip(Exception):
    pass


def ctl(daemon, *words, rc=0, env=None):
    """What it prints; with another rc, the one line that it says why."""
    p = subprocess.run([UROCECTL, '--socket', daemon.socket, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE, env=env)
    assert p.returncode == rc, '%s: exit code %d: %s%s' % (' '.join(words), p.returncode, p.stdout, p.stderr)
    if rc:
        assert p.stderr.startswith('urocectl: ') and p.stderr.count('\n') == 1 and not p.stdout, '%s: not one line: %s%s' % (words, p.stdout, p.stderr)
        return p.stderr
    assert not p.stderr or words[0] == 'capture', p.stderr
    return p.stdout


def rows(daemon, noun, *words):
    return json.loads(ctl(daemon, '--json', 'show', noun, *words))


def start(words, **more):
    p = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
    running.append(p)
    return p


def load(daemon, *words):
    """Both ends of traffic that goes on until it is ended, as two clients of one process."""
    p = start([PERF, '-d', daemon.device, '--op', 'write', '--test', 'bandwidth', '--sizes', '4K', '--seconds', '600', *words])
    until(lambda: len([r for r in rows(daemon, 'qp') if r['state'] == 'RTS' and r['completed_requests'] and r['client'] in ids_of(daemon, p)]) > 0, PATIENCE, 'traffic')
    return p


def ids_of(daemon, process):
    return [r['id'] for r in rows(daemon, 'client') if r['pid'] == process.pid]


def end(process):
    process.terminate()
    process.communicate(timeout=PATIENCE)


# ---- tests: each a function, its name the test's ----

def every_noun_as_table_and_as_json():
    with Daemon(UROCED) as d:
        p = load(d, '--qps', '2')
        for noun in NOUNS:
            found = rows(d, noun)
            assert isinstance(found, list) and all(isinstance(r, dict) for r in found), found
            assert all(not isinstance(v, (list, dict)) for r in found for v in r.values()), found
            text = ctl(d, 'show', noun)
            whole = ctl(d, 'show', noun, '--all')
            assert noun in ('neigh', 'drops') or found and text and whole, noun
            if noun not in ('device', 'port', 'drops'):
                assert len(text.splitlines()) == 1 + len(found), text
            if noun != 'drops':
                assert all(re.search('^%s( |$)' % re.escape(k), whole, re.M) for r in found for k in r), whole
        clients = [r for r in rows(d, 'client') if r['pid'] == p.pid]
        assert len(clients) == 2 and all(r['uid'] == os.getuid() and r['program'] == 'uroce-perf' and r['qps'] == 2 for r in clients), clients
        assert re.search(r'^ *%d +%d +%d +uroce-perf ' % (clients[0]['id'], p.pid, os.getuid()), ctl(d, 'show', 'client'), re.M)
        qps = rows(d, 'qp', 'state=RTS')
        assert len(qps) == 4 and all(q['client'] in [c['id'] for c in clients] and q['peer_gid'] == '10.0.0.1' and q['service'].upper() == 'RC' for q in qps), qps
        assert {q['peer_qpn'] for q in qps} == {q['qpn'] for q in qps}
        for q in qps:
            assert re.search(r'^0x%06x +%d ' % (q['qpn'], q['client']), ctl(d, 'show', 'qp', 'qpn=0x%x' % q['qpn']), re.M)
        before = {q['qpn']: q for q in qps}
        until(lambda: any(q['completed_requests'] > before[q['qpn']]['completed_requests'] and q['tx_bytes'] > before[q['qpn']]['tx_bytes'] for q in rows(d, 'qp')), 10, 'counters that grow')
        assert rows(d, 'gid')[0]['gid'] == '10.0.0.1' and rows(d, 'device')[0]['cores'] == 1 and rows(d, "port")[0]["state"] == "down"  # a ring that leads nowhere
        assert sum(r['qps'] for r in rows(d, 'cores')) == 4
        end(p)
        until(lambda: not rows(d, 'client') and not rows(d, 'qp') and not rows(d, 'mr'), 10, 'the end of the clients')
        assert ctl(d, 'show', 'qp').splitlines()[0].startswith('qpn  client'), 'a table without rows has its titles'


def what_cannot_be_shown_is_said():
    with Daemon(UROCED) as d, open('/dev/full', 'w') as full:
        for words in (['show', 'device'], ['show', 'drops', '--all', '--json'], ['watch', '--interval', '0.1', '--count', '1'], ['--help']):
            p = subprocess.run([UROCECTL, '--socket', d.socket, *words], stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
            assert p.returncode == 1 and p.stderr.startswith('urocectl: standard output: ') and p.stderr.count('\n') == 1, (words, p.returncode, p.stderr)


def what_rows_are_wanted():
    with Daemon(UROCED) as d:
        p = load(d)
        ids = ids_of(d, p)
        assert {q['client'] for q in rows(d, 'qp', 'client=%d' % ids[0])} == {ids[0]}
        assert rows(d, 'qp', 'state=ERR') == [] and rows(d, 'qp', 'srq=yes') == []
        assert len(rows(d, 'client', 'program=uroce-perf', 'pid=%d' % p.pid)) == 2
        assert 'expected a member of qp' in ctl(d, 'show', 'qp', 'colour=1', rc=2)
        assert 'expected MEMBER=VALUE' in ctl(d, 'show', 'qp', 'RTS', rc=2)
        end(p)


def addresses_come_and_go():
    with Daemon(UROCED) as d:
        assert ctl(d, 'gid', 'add', '10.0.0.5/24') == 'GID 1 is 10.0.0.5\n'
        assert json.loads(ctl(d, 'gid', 'add', 'fd00::5/64', 'vlan', '7', '--json')) == {'index': 2, 'gid': 'fd00::5'}
        assert [(r['index'], r['gid'], r['vlan']) for r in rows(d, 'gid')] == [(0, '10.0.0.1', None), (1, '10.0.0.5', None), (2, 'fd00::5', 7)]
        perf = subprocess.run([PERF, '-d', d.device, '--gid-index', '1', '--op', 'write', '--test', 'verify', '--sizes', '8', '--iters', '8'], capture_output=True, text=True, timeout=PATIENCE)
        assert perf.returncode == 0, perf.stdout + perf.stderr  # its clients have found it
        assert 'this address already' in ctl(d, 'gid', 'add', '10.0.0.5/24', rc=1)
        assert 'no such address' in ctl(d, 'gid', 'del', 'fd00::5', rc=1)
        assert ctl(d, 'gid', 'del', 'fd00::5', 'vlan', '7') == 'GID 2 is gone\n'
        assert ctl(d, 'gid', 'del', '1') == 'GID 1 is gone\n'
        assert 'no GID of this index' in ctl(d, 'gid', 'del', '1', rc=1)
        assert 'unicast' in ctl(d, 'gid', 'add', '224.0.0.1/4', rc=1)
        assert [r['gid'] for r in rows(d, 'gid')] == ['10.0.0.1']
        perf = subprocess.run([PERF, '-d', d.device, '--gid-index', '1', '--op', 'write', '--test', 'verify', '--sizes', '8', '--iters', '8'], capture_output=True, text=True, timeout=PATIENCE)
        assert perf.returncode != 0
    assert re.search(r'operator pid \d+ uid \d+ urocectl: GID 1 is 10.0.0.5/24 now', d.last), d.last


def a_client_is_ended_and_no_other():
    with Daemon(UROCED) as d:
        p, other = load(d), load(d)
        idle = start([CLIENT, d.device])
        assert idle.stdout.readline() == 'attached\n'
        ctl(d, 'client', 'kill', str(ids_of(d, idle)[0]))
        out, err = idle.communicate(timeout=PATIENCE)
        assert out == 'ended: ENODEV\n' and 'ended the session (killed): an operator (pid' in err, out + err
        victim = ids_of(d, p)[0]
        assert ctl(d, 'client', 'kill', str(victim)) == 'client %d is ended\n' % victim
        out, err = p.communicate(timeout=PATIENCE)
        assert p.returncode and 'ended the session (killed): an operator (pid' in err, (p.returncode, out, err)
        assert 'no client %d' % victim in ctl(d, 'client', 'kill', str(victim), rc=1)
        before = rows(d, 'client')
        assert {r['pid'] for r in before} == {other.pid}
        until(lambda: sum(r['completed_requests'] for r in rows(d, 'client')) > sum(r['completed_requests'] for r in before), 10, 'traffic of the other')
        assert other.poll() is None
        end(other)


def captures_of_all_and_of_one_qp():
    with Daemon(UROCED, '--cores', '2') as d:
        p, other = load(d), load(d)
        name = os.path.join(d.dir, 'all.pcapng')
        said = json.loads(ctl(d, 'capture', name, '--seconds', '0.3', '--json'))
        assert said['file'] == name and said['frames'] > 10, said
        qps = rows(d, 'qp', 'client=%d' % ids_of(d, p)[0])
        one = os.path.join(d.dir, 'one.pcapng')
        q = start([UROCECTL, '--socket', d.socket, 'capture', one, 'qp', hex(qps[0]['qpn'])])
        assert 'Ctrl-C ends it' in q.stderr.readline()
        for refused in (os.path.join(d.dir, 'no.pcapng'), one):  # the running one's own file is still that, as its end tells
            assert 'another capture runs, of the operator with pid %d' % q.pid in ctl(d, 'capture', refused, rc=1)
        assert not os.path.exists(os.path.join(d.dir, 'no.pcapng')) and os.path.exists(one)
        time.sleep(0.2)
        q.send_signal(signal.SIGINT)
        out, err = q.communicate(timeout=PATIENCE)
        assert q.returncode == 0 and re.fullmatch(r'(\d+) frames in %s\n' % re.escape(one), out), out + err
        assert 'no QP' in ctl(d, 'capture', one, 'qp', '0xfffff0', rc=1)
        end(p)
        end(other)
        if not shutil.which('tshark'):
            raise Skip('needs tshark')
        lines = read_capture(name)
        assert len(lines) == said['frames'], (len(lines), said)
        assert all(re.match(r'[tr]x, QP 0x[0-9a-f]{6} in RTS', c) for c, _ in lines), lines[:5]
        assert len({c.split()[2] for c, _ in lines}) >= 4, 'frames of both cores'
        lines = read_capture(one)
        assert len(lines) == int(out.split()[0]) and {c.split()[2] for c, _ in lines} == {'0x%06x' % qps[0]['qpn']}, lines[:5]


def read_capture(name):
    """Comment and length of each frame, by tshark."""
    p = subprocess.run(['tshark', '-r', name, '-T', 'fields', '-e', 'frame.comment', '-e', 'frame.len'], capture_output=True, text=True, timeout=PATIENCE)
    assert p.returncode == 0 and 'cut short' not in p.stderr and 'damaged' not in p.stderr, p.stderr
    return [line.split('\t') for line in p.stdout.splitlines()]


def a_capture_ends_with_who_wanted_it():
    with Daemon(UROCED) as d:
        p = load(d)
        name = os.path.join(d.dir, 'k.pcapng')
        for _ in range(3):
            q = start([UROCECTL, '--socket', d.socket, 'capture', name])
            assert 'capturing' in q.stderr.readline()
            time.sleep(0.1)
            q.kill()
            q.communicate(timeout=PATIENCE)
            size = until_still(name)
            assert size > 1000
            if shutil.which('tshark'):
                assert len(read_capture(name)) > 10
        assert json.loads(ctl(d, 'capture', name, '--seconds', '0.1', '--json'))['frames'] > 0
        fifo = os.path.join(d.dir, 'fifo')
        os.mkfifo(fifo)
        assert 'expected the name of an ordinary file' in ctl(d, 'capture', fifo, rc=1)  # it does not wait for a reader
        reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        assert 'expected an ordinary file' in ctl(d, 'capture', fifo, rc=1)
        os.close(reader)
        for wrong, why in (('/dev/null', 'ordinary file'), (os.path.join(d.dir, 'no', 'such'), 'No such file'), ('/', 'Is a directory')):
            assert why in ctl(d, 'capture', wrong, rc=1)
        end(p)


def until_still(name):
    """The size of a file that does not grow any more."""
    sizes = []

    def look():
        sizes.append(os.path.getsize(name))
        time.sleep(0.05)
        return len(sizes) > 3 and len(set(sizes[-3:])) == 1
    until(look, 10, 'the end of a capture')
    return sizes[-1]


def watch_as_lines_and_as_json():
    with Daemon(UROCED) as d:
        p = load(d)
        text = ctl(d, 'watch', '--interval', '0.2', '--count', '2')
        assert len(re.findall(r'^\d\d:\d\d:\d\d  2 clients, 2 QPs', text, re.M)) == 2, text
        assert re.search(r'^ *\d+ +%d +uroce-perf +1 +[1-9][0-9.]*[kMG] ' % p.pid, text, re.M), text
        lines = ctl(d, '--json', 'watch', '--interval', '0.2', '--count', '3').splitlines()
        assert len(lines) == 3
        for line in lines:
            s = json.loads(line)
            assert 0.15 < s['interval_s'] < 5 and abs(s['time'] - time.time()) < 60, s
            assert len(s['clients']) == 2 and len(s['qps']) == 2 and len(s['port']) == 1
            sender, receiver = sorted(s['clients'], key=lambda c: -c['tx_bits_per_s'])
            assert sender['pid'] == p.pid and sender['tx_bits_per_s'] > 1e6 and receiver['rx_bits_per_s'] > 1e6, s
            assert sum(q['messages_per_s'] for q in s['qps']) > 100, s
            busy = max(s['qps'], key=lambda q: q['tx_bits_per_s'])
            assert busy['window_packets'] > 0 and busy['state'] == 'RTS', s
        end(p)
        s = json.loads(ctl(d, '--json', 'watch', '--interval', '0.1', '--count', '1'))
        assert s['clients'] == [] and s['qps'] == []


def watch_without_a_keyboard_is_text():
    """Standard output is a terminal, standard input is not: nobody could press q."""
    with Daemon(UROCED) as d:
        ours, theirs = pty.openpty()
        try:
            subprocess.run([UROCECTL, '--socket', d.socket, 'watch', '--interval', '0.2', '--count', '2'], stdin=subprocess.DEVNULL, stdout=theirs, check=True, timeout=PATIENCE)
            text = os.read(ours, 65536).decode()
        finally:
            os.close(theirs)
            os.close(ours)
        assert len(re.findall(r'^\d\d:\d\d:\d\d  0 clients', text, re.M)) == 2 and '\x1b' not in text, text


class Terminal:
    """A tmux server of its own, with one window."""

    def __init__(self, words, width=150, height=40):
        if not shutil.which('tmux'):
            raise Skip('needs tmux')
        self.name = 'uroce-%d' % os.getpid()
        self.tmux('-f', '/dev/null', 'new-session', '-d', '-x', str(width), '-y', str(height), ' '.join(words) + '; echo exit code $?; sleep 30')

    def tmux(self, *words):
        return subprocess.run(['tmux', '-L', self.name, *words], capture_output=True, text=True, timeout=PATIENCE, env={**os.environ, 'LC_ALL': 'C.UTF-8', 'TERM': 'xterm-256color'}).stdout

    def text(self):
        return self.tmux('capture-pane', '-p')

    def until(self, pattern):
        try:
            until(lambda: re.search(pattern, self.text(), re.M), 20, pattern)
        except AssertionError as e:
            raise AssertionError('%s: %s' % (e, self.text()))
        return self.text()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.tmux('kill-server')


def watch_on_a_terminal():
    with Daemon(UROCED) as d:
        p = load(d)
        with Terminal([UROCECTL, '--socket', d.socket, 'watch', '--interval', '0.3']) as t:
            screen = t.until(r'^ *\d+ +%d +uroce-perf +1 +[1-9]' % p.pid)
            assert re.search(r'^ *port +state +tx_bit/s', screen, re.M) and 'q ends it' in screen and re.search(r'^0x[0-9a-f]{6} +\d+ +RC +RTS', screen, re.M), screen
            t.tmux('resize-window', '-x', '60', '-y', '14')
            until(lambda: len(t.text().rstrip('\n').splitlines()) == 14 and 'q ends it' in t.text(), 10, 'another size')
            assert all(len(line) <= 60 for line in t.text().splitlines())
            end(p)
            t.until(r'  0 clients, 0 QPs')
            t.tmux('send-keys', 'q')
            screen = t.until('^exit code 0$')
            assert 'q ends it' not in screen, 'the screen is as it was: ' + screen
    with Daemon(UROCED) as d:
        with Terminal([UROCECTL, '--socket', d.socket, 'watch', '--interval', '0.2']) as t:
            t.until('0 clients')
            d.process.terminate()
            screen = t.until('^exit code 1$')
            assert 'the daemon ended the session (shutdown)' in screen.replace('\n', ''), screen


def what_makes_no_sense_is_one_line():
    with Daemon(UROCED) as d:
        for words, expected in ((['shwo'], 'shwo: expected show, watch'), ([], 'no command: expected show'), (['show'], 'show: expected device, port'), (['show', 'qps'], 'show qps: expected device'), (['--fast'], '--fast: expected one of the options'),
                                (['gid'], 'expected gid add ADDRESS/PREFIX'), (['gid', 'add', '10.0.0.300/24'], 'gid add 10.0.0.300/24: expected ADDRESS/PREFIX'), (['gid', 'add', '10.0.0.3'], 'expected ADDRESS/PREFIX'),
                                (['gid', 'add', '10.0.0.3/33'], 'expected ADDRESS/PREFIX'), (['gid', 'add', '10.0.0.3/24', 'vlan', '4095'], 'N from 1 to 4094'), (['gid', 'add', '10.0.0.3/24', 'now'], 'expected nothing behind it'),
                                (['gid', 'del', 'eth0'], 'gid del eth0: expected an index'), (['gid', 'del', '10.0.0.3/24'], 'an address without prefix'), (['client'], 'expected client kill ID'), (['client', 'kill', 'all'], 'client kill all: expected a number'),
                                (['client', 'stop', '3'], 'expected client kill ID'), (['capture'], 'expected capture FILE'), (['capture', 'x', 'qp', 'RTS'], 'capture x qp RTS: expected a QPN'), (['capture', 'x', 'of', '7'], 'expected capture FILE'),
                                (['watch', '--interval', '0'], '--interval 0: expected a number of seconds from 0.1'), (['watch', '--count', '-1'], '--count -1: expected'), (['watch', 'me'], 'expected nothing behind watch'),
                                (['show', 'qp', '--count', '3'], '--count: expected with command watch, not show'), (['show', 'qp', '--json=no'], 'expected no value'), (['capture', 'x', '--seconds'], '--seconds: expected a number')):
            line = ctl(d, *words, rc=2)
            assert expected in line, '"%s" is not in: %s' % (expected, line)
        assert not os.path.exists('x')
        help_text = ctl(d, '--help')
        assert all(w in help_text for w in ('show NOUN', 'watch', 'gid add', 'gid del', 'client kill', 'capture FILE', '--socket', '--json', 'Exit code')), help_text
        assert re.fullmatch(r'urocectl \d+\.\d+\.\d+\n', ctl(d, '--version'))
        # where the daemon is
        env = {**os.environ, 'UROCE_DEVICE': d.device}
        for words in (['show', 'gid'], ['--socket', 'unix:' + d.socket, 'show', 'gid']):
            p = subprocess.run([UROCECTL, *words], capture_output=True, text=True, timeout=PATIENCE, env=env)
            assert p.returncode == 0 and '10.0.0.1' in p.stdout, p.stderr
        p = subprocess.run([UROCECTL, 'show', 'gid'], capture_output=True, text=True, timeout=PATIENCE, env={**env, 'UROCE_DEVICE': 'inline:net_ring'})
        assert p.returncode == 2 and 'expected unix:PATH' in p.stderr, p.stderr
    assert 'no daemon serves this socket' in ctl(d, 'show', 'qp', rc=1) and d.socket in ctl(d, 'show', 'qp', rc=1) and 'start one: uroced' in ctl(d, 'show', 'qp', rc=1)


def others_may_not():
    if os.getuid():
        raise Skip('needs root')
    nobody = pwd.getpwnam('nobody')
    folder = tempfile.mkdtemp()
    os.chmod(folder, 0o755)
    try:
        name = shutil.copy(UROCECTL, folder)
        with Daemon(UROCED, '--mode', '0666') as d:
            os.chmod(d.dir, 0o755)
            for words in (['show', 'qp'], ['client', 'kill', '1'], ['gid', 'add', '10.0.0.9/24'], ['watch', '--count', '1']):
                p = subprocess.run([name, '--socket', d.socket, *words], capture_output=True, text=True, timeout=PATIENCE, user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[])
                assert p.returncode == 1 and p.stderr.count('\n') == 1 and 'refuses: expected root or user 0' in p.stderr, p.stderr
            assert d.value('refused_operator') == 4
    finally:
        shutil.rmtree(folder)


STRAY = 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setsockopt(socket.SOL_SOCKET, 11, 1); [s.sendto(bytes([4, 64, 255, 255, 0, 0, 0, 77, 0, 0, 0, 1]) + bytes(16), ("10.79.0.1", 4791)) for _ in range(5)]'


def drops_of_a_port_that_it_shares():
    """Five datagrams of a program that is no RDMA (SO_NO_CHECK: without a checksum, which veth would leave undone): counted, in the capture with their reason, and seen by watch."""
    try:
        lacking = make_hosts(HOSTS)
        if lacking:
            raise Skip(lacking)
        d = Daemon(UROCED)
        d.command = ['ip', 'netns', 'exec', HOSTS[0], UROCED, '--vdev', 'net_af_packet0,iface=eth0', '--socket', d.socket]
        with d:
            assert ctl(d, 'show', 'drops').splitlines()[1:] == [] or 'icrc' not in ctl(d, 'show', 'drops')
            assert len(ctl(d, 'show', 'drops', '--all').splitlines()) == 1 + len(rows(d, 'drops')) > 20
            name = os.path.join(d.dir, 'stray.pcapng')
            q = start([UROCECTL, '--socket', d.socket, 'capture', name])
            w = start([UROCECTL, '--socket', d.socket, '--json', 'watch', '--interval', '0.5'])
            assert 'capturing' in q.stderr.readline()
            w.stdout.readline()
            before = {r['name']: r['count'] for r in rows(d, 'drops')}
            subprocess.run(['ip', 'netns', 'exec', HOSTS[1], sys.executable, '-c', STRAY], check=True, timeout=PATIENCE)
            more = {}

            def five():
                more.update({r['name']: r['count'] - before[r['name']] for r in rows(d, 'drops') if r['count'] > before[r['name']]})
                return more.get('rx_icrc_errors', 0) >= 5
            until(five, 10, 'drops: %s' % more)
            assert more['rx_icrc_errors'] == 5, more
            assert re.search(r'^rx_icrc_errors +5 ', ctl(d, 'show', 'drops'), re.M), ctl(d, 'show', 'drops')
            assert rows(d, 'port')[0]['rx_icrc_errors'] == 5
            seen = 0
            for line in iter(w.stdout.readline, ''):
                s = json.loads(line)
                seen += sum(r['dropped_per_s'] for r in s['drops'] if r['name'] == 'rx_icrc_errors') * s['interval_s']
                if seen > 4.5:
                    break
            w.terminate()
            w.communicate(timeout=PATIENCE)
            q.send_signal(signal.SIGTERM)
            q.communicate(timeout=PATIENCE)
            assert q.returncode == 0 and 4.9 < seen < 5.1, (q.returncode, seen)
            assert 'kernel interface' in ctl(d, 'gid', 'add', '10.79.0.9/24', rc=1) and 'kernel interface' in ctl(d, 'gid', 'del', '0', rc=1)
            assert rows(d, 'gid')[0]['gid'] == '10.79.0.1'
            if shutil.which('tshark'):
                assert len([c for c, _ in read_capture(name) if 'dropped: rx_icrc_errors' in c]) == 5, read_capture(name)
    finally:
        remove_hosts(HOSTS)


TESTS = [every_noun_as_table_and_as_json, what_cannot_be_shown_is_said, what_rows_are_wanted, addresses_come_and_go, a_client_is_ended_and_no_other, captures_of_all_and_of_one_qp, a_capture_ends_with_who_wanted_it, watch_as_lines_and_as_json, watch_without_a_keyboard_is_text,
         watch_on_a_terminal, what_makes_no_sense_is_one_line, others_may_not, drops_of_a_port_that_it_shares]


def clean_up():
    for p in running:
        if p.poll() is None:
            p.kill()
            p.communicate()
    running.clear()


def main():
    wanted = [t for t in TESTS if not sys.argv[6:] or t.__name__ in sys.argv[6:]]
    failed = 0
    print('1..%d' % len(wanted))
    for i, test in enumerate(wanted, 1):
        name = test.__name__.replace('_', ' ')
        try:
            test()
            print('ok %d - %s' % (i, name), flush=True)
        except Skip as e:
            print('ok %d - %s # SKIP %s' % (i, name, e), flush=True)
        except (AssertionError, OSError, subprocess.SubprocessError, ValueError) as e:
            failed += 1
            sys.stdout.write(''.join('# %s\n' % line for line in str(e).splitlines()[-40:]))
            print('not ok %d - %s' % (i, name), flush=True)
        finally:
            clean_up()
    return bool(failed)


signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
sys.exit(main())
