#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The service of doc/guide/embedding.md as its operator and its users have it: with engines of its own and as a client of a daemon, with clients that are killed, break its rules or are too many, and over the death of its daemon. Writes TAP.

test_service.py UROCED KV_SERVER KV_CLIENT ROGUE"""
import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

from daemon import Daemon, until

UROCED, SERVER, CLIENT, ROGUE = (os.path.abspath(a) for a in sys.argv[1:5])


def free_port(host):
    with socket.socket(socket.AF_INET6 if ':' in host else socket.AF_INET) as s:
        s.bind((host.strip('[]'), 0))
        return s.getsockname()[1]


class Service:
    """A kv-server, ended as an operator would; what it said is in `text`."""

    def __init__(self, device, client_device=None, host='127.0.0.1'):
        self.port = free_port(host)
        self.address = f'{host}:{self.port}'
        self.environment = {**os.environ, 'UROCE_LOG': 'error', 'UROCE_DEVICE': device}
        self.client_environment = {**self.environment, 'UROCE_DEVICE': client_device or device}
        self.out = tempfile.NamedTemporaryFile('r', prefix='kv-server-')

    def __enter__(self):
        with open(self.out.name, 'w', encoding='utf-8') as f:
            self.process = subprocess.Popen([SERVER, self.address], stdin=subprocess.DEVNULL, stdout=f, stderr=subprocess.STDOUT, env=self.environment)
        until(lambda: 'ready' in self.text() or self.process.poll() is not None, 30, 'the server to be ready')
        assert self.process.poll() is None, self.text()
        return self

    def __exit__(self, kind, *_):
        if self.process.poll() is None:
            self.process.terminate()
        try:
            code = self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            code = 'it did not end'
        if kind is None:
            assert code == 0, f'exit code {code}: {self.text()}'
            assert 'kv-server: put ' in self.text().splitlines()[-1], self.text()

    def text(self):
        with open(self.out.name, encoding='utf-8') as f:
            return f.read()

    def statistics(self):
        """The newest line, as numbers by name."""
        before = self.text().count('kv-server: put ')
        self.process.send_signal(signal.SIGUSR1)
        until(lambda: self.text().count('kv-server: put ') > before, 10, 'statistics')
        line = self.text().splitlines()[-1]
        return {k.strip(): int(v) for k, v in re.findall(r'([a-z][a-z ]*) (\d+)', line.split(':', 1)[1])}

    def start(self, *words, program=CLIENT):
        return subprocess.Popen([program, self.address, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self.client_environment)

    def ask(self, *words, code=0, program=CLIENT):
        p = self.start(*words, program=program)
        text = p.communicate(timeout=120)[0]
        assert p.returncode == code, f'kv-client {words}: exit code {p.returncode}: {text}{self.text()}'
        return text


def ask_all(s):
    assert s.ask('put', 'colour', 'green') == ''
    assert s.ask('get', 'colour') == 'green\n'
    assert s.ask('put', 'colour', 'blue' * 100) == ''
    assert s.ask('get', 'colour') == 'blue' * 100 + '\n'
    assert s.ask('put', 'nothing', '') == ''
    assert s.ask('get', 'nothing') == '\n'
    assert 'no such key' in s.ask('get', 'shape', code=3)
    assert s.ask('delete', 'colour') == ''
    assert 'no such key' in s.ask('get', 'colour', code=3)
    assert 'no such key' in s.ask('delete', 'colour', code=3)
    text = s.ask('bench', '8', '2000')
    assert text.count('2000 requests on 8 connections, all answers right') == 2, text


def memif(mode, role, name, side):
    return f'{mode}:net_memif0,role={role},socket={name},ip=10.0.0.{side}/24'


def test_embedded():
    name = f'kv-{os.getpid()}-e'
    with Service(memif('embedded', 'server', name, 1), memif('embedded', 'client', name, 2)) as s:
        ask_all(s)


def test_inline():
    name = f'kv-{os.getpid()}-i'
    with Service(memif('inline', 'server', name, 1), memif('inline', 'client', name, 2)) as s:
        ask_all(s)


def test_served():
    with Daemon(UROCED) as d, Service(d.device) as s:
        ask_all(s)
        n = s.statistics()
        assert n['put'] == 3 + 2000 and n['get'] == 5 + 2000 and n['delete'] == 2 and n['not found'] == 3 and n['bad'] == 0 and n['failed'] == 0, n
        assert n['connections'] == 10 + 8 and n['items'] == 1001 and n['sleeps'] > 0, n


def test_ipv6():
    try:
        free_port('[::1]')
    except OSError as e:
        return f'no IPv6 here: {e.strerror}'
    with Daemon(UROCED) as d, Service(d.device, host='[::1]') as s:
        assert s.ask('put', 'a', 'b') == ''
        assert s.ask('get', 'a') == 'b\n'
    return None


def test_many_at_once():
    with Daemon(UROCED) as d, Service(d.device) as s:
        clients = [s.start('bench', '4', '1000') for _ in range(4)]
        for c in clients:
            text = c.communicate(timeout=120)[0]
            assert c.returncode == 0 and text.count('all answers right') == 2, text


def test_too_many_are_refused():
    with Daemon(UROCED) as d, Service(d.device) as s:
        with contextlib.ExitStack() as stack:
            for _ in range(64):
                stack.enter_context(socket.create_connection(('127.0.0.1', s.port)))
            until(lambda: 'as many clients' in s.ask('get', 'x', code=1), 10, 'a refusal')
            time.sleep(5.1)
            s.ask('put', 'x', 'y') # whoever has not greeted by now makes room
            assert s.statistics()['failed'] == 1
        until(lambda: s.statistics()['failed'] == 64, 10, 'the 64 to be gone')
        s.ask('bench', '64', '2000')


def test_no_greeting():
    with Daemon(UROCED) as d, Service(d.device) as s:
        for said in (b'GET / HTTP/1.0\r\n\r\n' * 10, b'urocekv1' + b'\xff' * 32, b'urocekv1'):
            with socket.create_connection(('127.0.0.1', s.port)) as c:
                with contextlib.suppress(OSError): # it may have hung up already
                    c.sendall(said)
                    c.shutdown(socket.SHUT_WR)
                    assert c.recv(100) == b''
        s.ask('put', 'colour', 'green')


def test_killed_clients_cost_nothing():
    """A server that stands still shows how many receives there are: all that 64 clients may send at once finds one, after many clients have died in the middle of it."""
    with Daemon(UROCED) as d, Service(d.device) as s:
        for _ in range(12):
            c = s.start('bench', '16', '10000000')
            before = s.statistics()['put']
            until(lambda: s.statistics()['put'] > before + 100, 30, 'requests')
            c.kill()
            c.communicate()
        c = s.start('bench', '64', '10000')
        before = s.statistics()['put']
        until(lambda: s.statistics()['put'] > before, 30, 'requests')
        for _ in range(3):
            s.process.send_signal(signal.SIGSTOP)
            time.sleep(0.2)
            s.process.send_signal(signal.SIGCONT)
            time.sleep(0.05)
        text = c.communicate(timeout=120)[0]
        assert text.count('all answers right') == 2, text
        assert 'drop out_of_buffer' not in d.report(), d.report()


def test_bad_requests():
    with Daemon(UROCED) as d, Service(d.device) as s:
        s.ask('bench', '8', '4000') # so that every receive holds an earlier request
        for _ in range(3):
            s.ask(program=ROGUE)
        assert s.statistics()['bad'] == 21, s.statistics()
        assert s.text().count('more requests outstanding than it may') == 3, s.text()
        s.ask('bench', '4', '1000')


def test_daemon_dies():
    with Daemon(UROCED) as d, Service(d.device) as s:
        s.ask('put', 'colour', 'green')
        d.process.kill()
        d.process.wait()
        until(lambda: 'the engine is gone' in s.text(), 10, 'the server to notice')
        s.ask('get', 'colour', code=1)
        with Daemon(UROCED, socket=d.socket):
            until(lambda: 'serving again' in s.text(), 20, 'the server to serve again')
            assert s.ask('get', 'colour') == 'green\n'
            s.ask('bench', '4', '1000')


def test_ends_without_its_daemon():
    with Daemon(UROCED) as d:
        with Service(d.device) as s:
            d.process.kill()
            d.process.wait()
            until(lambda: 'the engine is gone' in s.text(), 10, 'the server to notice')


def test_wrong_words():
    nothing = {**os.environ, 'UROCE_DEVICE': '', 'UROCE_LOG': 'error'}
    for words in ([CLIENT], [CLIENT, 'localhost'], [CLIENT, 'localhost', 'shout'], [CLIENT, 'localhost', 'get', 'k' * 65], [CLIENT, 'localhost', 'bench', '65'], [SERVER, '--help']):
        p = subprocess.run(words, capture_output=True, text=True, env=nothing, timeout=20, check=False)
        assert p.returncode == 2 and p.stderr.count('\n') == 1, (words, p)
    p = subprocess.run([SERVER, str(free_port('127.0.0.1'))], capture_output=True, text=True, env=nothing, timeout=20, check=False)
    assert p.returncode == 1 and 'cannot have the device' in p.stderr, p


def main():
    tests = [(n, f) for n, f in globals().items() if n.startswith('test_')]
    failed = 0
    print(f'1..{len(tests)}')
    for number, (name, test) in enumerate(tests, 1):
        begin = time.monotonic()
        try:
            why_not = test()
            print(f'ok {number} - {name} ' + (f'# SKIP {why_not}' if why_not else f'{time.monotonic() - begin:.1f} s'), flush=True)
        except (AssertionError, OSError, subprocess.SubprocessError) as e:
            failed += 1
            print('\n'.join('# ' + line for line in f'{type(e).__name__}: {e}'.splitlines()))
            print(f'not ok {number} - {name}', flush=True)
    sys.exit(failed > 0)


if __name__ == '__main__':
    main()
