#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""testroce's manners: the prompt in a pseudo-terminal, wrong input and options, files of commands, signals, and the lesson. Writes TAP.
test_testroce_prompt.py PATH-OF-TESTROCE [TEST...]"""
import os
import re
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from troce import PATIENCE, TESTROCE, MODES, Process, Terminal, report, run, run_tests, script, skip, table, tmp  # noqa: E402


# ---- wrong input ----

BAD = [
    ('foo', 'expected help'), ('set', 'expected fwd'), ('set fwd', 'a mode: send'), ('set fwd sned', 'a mode: send'), ('set size', 'bytes, from 0'), ('set size 17M', 'bytes, from 0'), ('set size -1', 'bytes'),
    ('set depth 0', 'a number from 1'), ('set qps x', 'a number from 1'), ('set mtu 1000', 'a path MTU'), ('set verify maybe', 'on or off'), ('start now', 'expected nothing'), ('stop', 'nothing runs'),
    ('show', 'expected'), ('show port 7', 'the number of a port'), ('show fwd', 'no traffic yet'), ('show port stats all', 'show port stats is show counters here'), ('show fwd stats all', 'is show fwd here'), ('clear port stats all', 'is clear counters here'), ('gid add 0 10.0.0', 'an address and its prefix'), ('gid add 0 10.0.0.9/33', 'an address and its prefix'),
    ('gid add 0 224.0.0.1/24', 'cannot add'), ('gid del 0 60', 'there is none'), ('gid del 0 4294967296', 'an index'), ('neigh add 0 10.0.0.9 02:00', 'a MAC address'), ('neigh add 0 224.0.0.9 02:00:00:00:00:01', 'one host'),
    ('fault set 0 dorp:1%', 'begins with none of drop'), ('fault set 0 drop:200%', 'a probability'), ('fault on 0', 'has no faults'), ('fault set 2 drop:1%', 'the number of a port'),
    ('capture start 0 /nowhere/x', 'cannot capture into'), ('capture start 0 /nowhere/x 0x1000000', 'a QPN'), ('capture stop 0', 'no capture'), ('load /nowhere', 'cannot read'), ('pd destroy 3', 'there is no pd 3'), ('mr create 9 4K', 'there is no pd 9'),
    ('qp create 0 0 xrc', 'rc, uc or ud'), ('mw create 0 3', 'the type of a window'), ('show mr 99999999999999999999', 'the number of an MR'), ('qp send-imm 0 0 1 0x100000000', 'a number of 32 bits'), ('srq limit 3 1', 'there is no srq 3'), ('srq limit 3 4294967297', 'a number of WRs'),
    ('set seed 18446744073709551616', 'a number, decimal'), ('set depth 4097', 'a number from 1 to 4096'), ('wait 1e9', 'seconds'), ('set stats-period nan', 'seconds'), ('qp join 0 1', 'there is no qp 0'), ('cq create 0 0', 'a number from 1'), ('wait soon', 'seconds'), ('help nothing', 'the first word'), ('x ' * 300, 'too long'), ('x' * 5000, 'too long'), ('load /', 'cannot read /: Is a directory'),
]


def test_bad_input():
    wrong = []
    r = run('--', '-i', feed='\n'.join(line for line, _ in BAD) + '\nshow config\nquit\n')
    said = [line for line in r.err.splitlines() if line and 'expected at least' not in line and not line.startswith('uroce')]
    for (line, expected), answer in zip(BAD, said):
        if expected not in answer:
            wrong.append(f'{line!r}: {answer!r} instead of {expected!r}')
    report(r.code == 1 and len(said) == len(BAD) and not wrong and 'mode send' in r.out, f'{len(BAD)} bad commands: one line each, it goes on, and the exit code tells', '\n'.join(wrong + [str(r)]))


def test_bad_options():
    for args, expected in [
        (['--fast'], '--help'), (['--device'], 'device'), (['--forward-mode', 'x'], 'a mode'), (['--size', 'big'], 'bytes'), (['--stats-period', '0.0001'], 'from 0.1'), (['--auto-start=yes'], 'no value'),
        (['--connect', 'localhost'], 'expected one --device'), (['--listen', '1', '--connect', 'x'], 'one of them'),
    ]:
        r = run('--', *args)
        report(r.code == 2 and len(r.err.splitlines()) == 1 and expected in r.err and not r.out, f"bad option {' '.join(args)}", r)
    r = run('--', '-i', '--device', 'inline:nonsense0')
    report(r.code == 1 and 'cannot use device' in r.err, 'a device that there is not', r)
    r = run('--', '--cmdline-file', '/nowhere')
    report(r.code == 1 and 'cannot read /nowhere' in r.err, 'a file that there is not', r)
    r = run('--', '--help')
    report(r.code == 0 and all(f'--{o}' in r.out for o in 'interactive device cmdline-file auto-start stats-period forward-mode listen connect lesson'.split()), '--help names every option', r)


# ---- the program ----

def test_program():
    r = run('--', '--auto-start', '--stats-period', '0.2', '--cmdline-file', '/dev/null', '-i', '--forward-mode=echo', feed='wait 0.7\nstop\nquit\n')
    report(r.code == 0 and r.out.count('echo client:') >= 2 and 'round trip' in r.out, '--auto-start and --stats-period', r)
    p = subprocess.Popen([TESTROCE, '--'], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = p.communicate(timeout=PATIENCE)
    report(p.returncode == 0 and 'stopped' in out and 'standard input is closed: the traffic ends' in err, 'without a prompt, until its input ends', out + err)
    p = Process('--')
    p.until('press Enter to end')
    p.process.stdin.write(b'\n')
    p.process.stdin.flush()
    report(p.process.wait(PATIENCE) == 0 and p.end() == 0 and 'stopped' in p.text and 'closed' not in p.text, 'without a prompt, until Enter', p.text)
    p = Process('--', '--stats-period', '0.2')
    p.process.stdin.close()
    fine = p.until('(?s)standard input is closed: the traffic goes on.*send client: .*send client: .*send client: ')
    p.process.send_signal(signal.SIGTERM)
    report(fine and p.end() == 0 and 'stopped' in p.text, 'nobody can press Enter: traffic that tells of itself goes on until a signal', p.text)
    r = run('--', '-i', feed='start\nwait 0.2\nstop\nshow fwd')
    report(r.code == 0 and r.out.count('mode send, stopped') == 2, 'a last line without a newline is one', r)
    r = run('--', '-i', feed='bogus\nshow config\n')
    report(r.code == 1 and 'mode send' in r.out, 'what went wrong in a pipe is in the exit code', r)
    r = run('--', '-i', '--cmdline-file', '/nowhere', feed='bogus\n')
    report(r.code == 1, 'a file that cannot be read and a wrong line: still wrong', r)
    r = run('--no-huge', '-m', '512', '--no-pci', '--no-shconf', '--no-telemetry', '-l', '0', '--', '-i', feed='start\nwait 0.2\nstop\nquit\n')
    report(r.code == 0 and table(r.out)['client'][0] > 0, "DPDK's options before --", r)


# ---- the prompt ----

def test_files():
    path = os.path.join(tmp, 'itself')
    with open(path, 'w', encoding='utf-8') as f:
        f.write(f'# a comment\n\nload {path}\n')
    r = run('--', '--cmdline-file', path)
    report(r.code == 1 and r.err.count('no more than 8 deep') == 1, 'a file that loads itself', r)
    r = script('set fwd sned', 'show config', 'x' * 5000, 'set size 1K', 'show config')
    report(r.code == 1 and len(r.err.splitlines()) == 2 and 'size 1024' in r.out, 'a file goes on after lines that are wrong or too long, and the exit code tells', r)
    r = script('quit', 'show config')
    report(r.code == 0 and not r.out, 'quit ends a file', r)


def test_prompt():
    t = Terminal('--', '-i')
    steps = [
        ('', r'testroce> '), ('sh\tpo\t\n', r'port 0: inline:net_ring'), ('set fwd wr\t', r'ite'), ('\t', r'write-imm'), ('-\t\n', r'testroce> $'), ('show config\n', r'mode write-imm'),
        ('show configgg\x7f\x7f\n', r'mode write-imm'), ('\x1b[A\n', r'mode write-imm'), ('set ?', r'stats-period'), ('\x03', r'testroce> '), ('bogus\n', r'"bogus": expected help'), ('set fwd echo\n', r'testroce> '),
        ('set stats-period 0.2\n', r'testroce> '), ('start\n', r'echo client: \d+ messages'), ('stop\n', r'mode echo, stopped'), ('quit\n', r'\n'),
    ]
    for feed, pattern in steps:
        t.write(feed)
        if t.read_until(pattern) is None:
            t.write('\x03\nquit\n')
            t.end()
            return report(False, f'the prompt: {feed!r} brings {pattern!r}', repr(t.text))
    report(t.end() == 0, 'the prompt: editing, history, completion, help, lines while traffic runs', repr(t.text))
    t = Terminal('--', '-i')
    t.read_until('testroce> ')
    t.write('\x04')
    report(t.end() == 0, 'the prompt ends with Control-D', repr(t.text))
    t = Terminal('--', '-i', '--lesson')
    fine = t.read_until('(?s)1\\. Both.*-- Enter', 60) is not None and '2. They' not in t.text
    t.write('\n')
    fine = fine and t.read_until('(?s)2\\. They.*-- Enter') is not None
    t.write('q')
    t.write('\n')
    report(fine and t.end() == 0, 'the lesson waits for Enter after each step', repr(t.text))


def stop_with_peer(verdict, expected, *, is_asked=True):
    """(exit code, what it said) of a client whose peer answers stop like that and then goes, or goes before it is asked. What it pretends to be are datagrams' QPs, so that nobody misses an answer."""
    with socket.create_server(('127.0.0.1', 0)) as server:
        p = Process('--', '-i', '--size', '1K', '--forward-mode', 'ud', '--connect', '127.0.0.1:%d' % server.getsockname()[1], '--device', 'inline:net_ring,link=alone,side=0,ip=10.0.0.1/24')
        peer, _ = server.accept()
        with peer, peer.makefile('r') as lines:
            p.process.stdin.write(b'start\n')
            p.process.stdin.flush()
            lines.readline()
            peer.sendall(b'{"card": {"caps": 0, "addr": 4096, "rkey": 1, "stride": 1152, "qps": [["00000000000000000000ffff0a000002", 7, 1, 4096, 1]]}}\n')
            lines.readline()
            peer.sendall(b'{"ready": true}\n')
            if is_asked:
                p.process.stdin.write(b'stop\n')
                p.process.stdin.flush()
                lines.readline()
            peer.sendall(verdict)
        fine = p.until(expected, seconds=10)
        return p.end() if fine else None, p.text


def test_peer_that_fails():
    done = b'{"done": true, "messages": 5, "verified": 4, "lost": 1, "error": ""}\n'
    counts = '5 messages, 4 verified, 1 lost'
    code, text = stop_with_peer(done, counts)
    report(code == 0, 'a peer that has nothing against it', f'exit code {code}\n{text}')
    code, text = stop_with_peer(b'{"error": "it broke"}\n' + done, counts)
    report(code == 1 and text.count('at the peer: it broke') == 1, 'what a failed peer has counted is still heard, after what it said of its failure', f'exit code {code}\n{text}')
    code, text = stop_with_peer(b'', 'the peer is gone')
    report(code == 1 and 'mode ud, stopped' in text, 'a peer that goes without a verdict: the exit code tells', f'exit code {code}\n{text}')
    code, text = stop_with_peer(b'{"done": true, "messages": "many"}\n', 'it does not say how the traffic was')
    report(code == 1, 'a verdict that makes no sense: the exit code tells', f'exit code {code}\n{text}')
    code, text = stop_with_peer(b'', 'the peer is gone', is_asked=False)
    report(code == 1, 'a peer that goes while traffic runs: the exit code tells', f'exit code {code}\n{text}')


def test_lesson():
    r = run('--', '--lesson')
    titles = re.findall(r'^(\d\.|WRITE \d\.|READ \d\.|socket \d:)', r.out, re.M)
    report(r.code == 0 and titles == [f'{i}.' for i in range(1, 10)] + [f'WRITE {i}.' for i in range(1, 6)] + [f'READ {i}.' for i in range(1, 6)] + [f'socket {i}:' for i in range(1, 4)], 'the lesson has its steps', r)
    parts = dict(zip(titles, re.split(r'^(?:\d\.|WRITE \d\.|READ \d\.|socket \d:) ', r.out, flags=re.M)[1:]))
    if 'not counted' in r.out:
        skip('after the control path the kernel is not asked for anything', 'this process may not be traced here')
    else:
        quiet = [t for t in titles[2:19] if '  kernel   0 system calls' not in parts[t]]
        report(not quiet and 'system call: sendto' in parts['socket 2:'] and 'system call: recvfrom' in parts['socket 3:'], 'after the control path the kernel is not asked for anything', f'{quiet}\n{r}')
    wanted = {'3.': ['RQ slot', 'tail', 'by program B'], '4.': ['SQ slot', 'SGE 0', 'by program A'], '5.': ['RC SEND ONLY', 'payload 11'], '6.': ["B's memory: bytes 256", 'hello, RDMA'], '7.': ['ACKNOWLEDGE', 'RECV'],
              '8.': ["A's SQ, head", 'CQE', 'SEND'], '9.': ['WC ', 'success, RECV', 'success, SEND'], 'WRITE 2.': ['RC RDMA WRITE ONLY', 'rkey'], 'WRITE 3.': ['HELLO, rdma'], 'READ 2.': ['RC RDMA READ REQUEST'],
              'READ 3.': ['RC RDMA READ RESPONSE ONLY'], 'READ 4.': ["A's memory: bytes 256", 'HELLO, rdma']}
    missing = [(t, w) for t in wanted for w in wanted[t] if w not in parts.get(t, '')]
    untouched = [t for t in ('READ 3.', '5.') if '  memory' in parts.get(t, '')]
    report(not missing and not untouched, 'each step shows what it did', f'{missing} {untouched}\n{r}')


def test_prompt_help():
    t = Terminal('--', '-i')
    wrong = t.go(('', 'testroce> '), ('set size ?', '<bytes>: bytes, from 0 to 16M'), ('\x03', 'testroce> $'), ('set size \t', '<bytes>: bytes'), ('4K ?', 'Enter: bytes of a message'), ('\n', 'testroce> $'), ('pd create \t', '(?s)0.*1'),
                 ('1\n', 'pd 0'), ('mr create \t', 'create 0 '), ('4K\n', 'mr 0'), ('set fwd wi\t', 'window '), ('\x01\x0b', r'\x1b\[15D'), ('shw fwd\x1b[D\x1b[D\x1b[D\x1b[D\x1b[D', 'shw'), ('o\n', 'no traffic yet'),
                 ('help qp\n', '(?s)objects: .*qp create.*wrs: .*qp send'), ('help wrs\n', 'cq poll <cq>'), ('quit\n', ''))
    report(not wrong and t.end() == 0, 'the prompt: values are explained, objects completed, and words in the middle of a line', f'{wrong}\n{t.text!r}')


def test_interrupts():
    t = Terminal('--', '-i')
    wrong = t.go(('', 'testroce> '), ('wait 600\n', 'wait'))
    time.sleep(0.3)
    wrong = wrong or t.go(('\x03', 'interrupted'), ('show config\n', 'mode send'), ('set qps 2\n', 'testroce> $'), ('start\n', 'testroce> $'), ('set stats-period 0.1\n', r'\r\x1b\[Ksend client: \d+ messages'), ('quit\n', 'mode send, stopped'))
    report(not wrong and t.end() == 0, 'Control-C ends a command and not the program; quit ends traffic', f'{wrong}\n{t.text!r}')
    for name in ('SIGINT', 'SIGTERM'):
        t = Terminal('--', '-i')
        wrong = t.go(('', 'testroce> '), ('start\n', 'testroce> $'))
        os.kill(t.pid, getattr(signal, name))
        report(not wrong and t.read_until('mode send, stopped') is not None and t.end() == 0, f'{name} at the prompt: traffic is stopped, and the program ends', f'{wrong}\n{t.text!r}')
        p = Process('--', '--listen', '127.0.0.1:0', '--device', 'inline:net_ring,link=alone,side=0,ip=10.0.0.1/24')
        fine = p.until('waiting for a testroce')
        began = time.monotonic()
        p.process.send_signal(getattr(signal, name))
        code = p.end()
        report(fine and code is not None and time.monotonic() - began < 3, f'{name} ends a server that waits', f'exit code {code}\n{p.text}')
    p = Process('--')
    p.until('send client: ')
    p.process.send_signal(signal.SIGINT)
    report(p.end() == 0 and 'stopped' in p.text, 'SIGINT ends traffic without a prompt', p.text)


def test_silent_peer():
    """One that takes connections and says nothing."""
    with socket.create_server(('127.0.0.1', 0)) as server:
        where = '127.0.0.1:%d' % server.getsockname()[1]
        p = Process('--', '-i', '--connect', where, '--device', 'inline:net_ring,link=alone,side=0,ip=10.0.0.1/24')
        peer, _ = server.accept()
        p.process.stdin.write(b'start\n')
        p.process.stdin.flush()
        asked = peer.recv(4096)
        time.sleep(0.3)
        p.process.send_signal(signal.SIGINT)
        code = p.end()
        report(b'"testroce"' in asked and code is not None and 'interrupted' in p.text, 'a peer that does not answer is left by a signal', f'exit code {code}\n{p.text}')
        peer.close()
        p = Process('--', '-i', '--connect', where, '--device', 'inline:net_ring,link=alone,side=0,ip=10.0.0.1/24')
        peer, _ = server.accept()
        peer.close()
        said = p.poll_until('show config', 'the peer is gone') + p.do('start')
        report('the peer is gone' in said and 'expected a testroce that listens' in said and p.end() is not None, 'a peer that goes away is told of', p.text)


run_tests([test_bad_input, test_bad_options, test_program, test_files, test_prompt, test_prompt_help, test_interrupts, test_silent_peer, test_peer_that_fails, test_lesson], sys.argv[2:])
