#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""testroce as a user runs it: the prompt in a pseudo-terminal, scripts, every mode alone and over a link with faults, wrong input, captures read back by tshark, the lesson, and two processes. Writes TAP.
test_testroce.py PATH-OF-TESTROCE"""
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

testroce = sys.argv[1]
tmp = tempfile.mkdtemp()
number = 0
failed = 0
MODES = 'send send-imm write write-imm read atomic uc ud srq echo incast mixed'.split()
PATIENCE = 120


def report(is_fine, name, said=''):
    global number, failed
    number += 1
    failed += not is_fine
    if not is_fine:
        for line in str(said).splitlines()[-40:]:
            print('# ' + line)
    print(f"{'ok' if is_fine else 'not ok'} {number} - {name}", flush=True)


def skip(name, why):
    global number
    number += 1
    print(f'ok {number} - {name} # SKIP {why}', flush=True)


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def __str__(self):
        return f'exit code {self.code}\n{self.out}\n{self.err}'


def run(*args, feed=''):
    try:
        p = subprocess.run([testroce, *args], input=feed, capture_output=True, text=True, timeout=PATIENCE)
        return Result(p.returncode, p.stdout, p.stderr)
    except subprocess.TimeoutExpired as e:
        return Result(124, (e.stdout or b'').decode(), (e.stderr or b'').decode())


def script(*lines, args=()):
    """Runs the lines as a --cmdline-file."""
    path = os.path.join(tmp, 'script')
    with open(path, 'w', encoding='utf-8') as f:
        f.write('\n'.join(lines) + '\n')
    return run('--', *args, f'--cmdline-file={path}')


def table(out):
    """{end: [messages, bytes, verified, lost, late]} of the last table."""
    rows = re.findall(r'^  (client|server) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) ', out, re.M)
    return {r[0]: [int(x) for x in r[1:]] for r in rows}


def counters(out, port):
    """{name: value} of `show counters` of a port."""
    part = re.split(r'^port (\d+)$', out, flags=re.M)
    text = ''.join(part[i + 1] for i in range(1, len(part) - 1, 2) if part[i] == str(port))
    return {m[0]: int(m[1]) for m in re.findall(r'^  (\w+) +(\d+)  ', text, re.M)}


# ---- modes ----

def check_mode(mode, setup, name, *, lossy=False):
    r = script(f'set fwd {mode}', *setup, 'start', 'wait 1', 'stop')
    t = table(r.out)
    client, server = t.get('client', [0] * 5), t.get('server', [0] * 5)
    fine = r.code == 0 and client[0] > 0 and client[2] + server[2] > 0 and not r.err
    if not lossy and mode in ('send', 'send-imm', 'write-imm', 'srq', 'echo'):
        fine = fine and client[0] == server[0] and client[3] == server[3] == 0
    report(fine, name, r)


FAULTS = 'drop:1%/dup:1%/reorder:2%/corrupt:0.5%/ce:1%/delay:5us:5us/seed:7'
BOTH = [f'fault set 0 {FAULTS}', f'fault set 1 {FAULTS}']


def test_modes():
    for mode in MODES:
        check_mode(mode, [], f'mode {mode}')
    for mode in MODES:
        check_mode(mode, BOTH, f'mode {mode} with every fault on', lossy=mode in ('uc', 'ud'))
    for size in ('0', '1', '4097', '1M'):
        check_mode('send', [f'set size {size}'], f'messages of {size} bytes')
    check_mode('write', ['set qps 16', 'set mtu 256'], 'sixteen QPs and the least path MTU')
    r = script('set fwd send', 'set verify off', 'start', 'wait 0.5', 'stop')
    report(r.code == 0 and table(r.out)['client'][0] > 0 and table(r.out)['server'][2] == 0, 'without looking at bytes', r)
    r = script('set fwd mixed', 'set qps 4', 'set seed 99', *BOTH, 'start', 'wait 5', 'stop', 'show counters all')
    report(r.code == 0 and table(r.out)['client'][2] > 1000 and counters(r.out, 0).get('retransmitted_packets', 0) > 0, 'mode mixed for five seconds with every fault on', r)


def test_faults_at_run_time():
    r = script('set fwd write', 'set verify off', 'start', 'wait 0.3', 'show counters 0', 'fault set 1 drop:2%/seed:3', 'wait 0.5', 'show fault 1', 'fault off 1', 'wait 0.7', 'clear counters all', 'wait 0.7', 'show counters 1',
               'fault on 1', 'wait 0.3', 'fault del 1', 'show fault 1', 'stop')
    dropped = [int(n) for n in re.findall(r' dropped (\d+)', r.out)]
    # while they are off nothing is beyond a gap
    off = counters(r.out, 1)
    report(r.code == 0 and dropped and dropped[0] > 0 and 'out_of_sequence' not in off and off.get('rx_packets', 0) > 0 and r.out.count('no faults') == 1, 'faults switched on and off while traffic runs', r)
    r = script('fault set 1 drop:100%', 'set size 64', 'start', 'wait 10', 'stop')
    report(r.code == 1 and 'no ACK from' in r.err + r.out, 'a link that carries nothing: the traffic ends, and says why', r)


# ---- captures ----

def test_capture():
    name = 'counters equal what the capture shows'
    if not shutil.which('tshark'):
        return skip(name, 'needs tshark')
    near, far = os.path.join(tmp, 'near.pcapng'), os.path.join(tmp, 'far.pcapng')
    r = script(f'capture start 0 {near}', f'capture start 1 {far}', 'fault set 1 drop:2%/reorder:1%/seed:5', 'set fwd write', 'set depth 4', 'set verify off', 'start', 'wait 0.3', 'stop', 'capture stop 0', 'capture stop 1',
               'show counters all')
    if r.code:
        return report(False, name, r)

    def comments(path, what):
        p = subprocess.run(['tshark', '-r', path, '-T', 'fields', '-e', 'frame.comment', '-e', 'infiniband.bth.psn', '-e', 'infiniband.bth.opcode'], capture_output=True, text=True, timeout=PATIENCE)
        return [line for line in p.stdout.splitlines() if what in line]
    ahead = len(comments(far, 'dropped: out_of_sequence'))
    sent = [line.split('\t') for line in comments(near, 'tx, QP') if 'in RTS' in line]
    psns = [int(f[1], 0) for f in sent if f[1]]
    again, frontier = 0, None
    for psn in psns:
        if frontier is not None and (psn - frontier) & 0xffffff >= 0x800000:
            again += 1
        else:
            frontier = (psn + 1) & 0xffffff
    c0, c1 = counters(r.out, 0), counters(r.out, 1)
    fine = ahead == c1.get('out_of_sequence', 0) > 0 and again == c0.get('retransmitted_packets', 0) > 0
    report(fine, name, f'{r}\ncapture: {ahead} ahead, {again} sent again of {len(psns)}')


def test_capture_of_one():
    name = 'a capture of one QP has only its frames'
    if not shutil.which('tshark'):
        return skip(name, 'needs tshark')
    path = os.path.join(tmp, 'one.pcapng')
    lines = ['pd create 0', 'cq create 0 16', 'qp create 0 0 rc', 'show qp 0']
    qpn = re.search(r'QPN (0x[0-9a-f]+)', script(*lines).out)
    r = script(*lines, f'capture start 0 {path} 0x123456', 'start', 'wait 0.1', 'stop', 'capture stop 0')
    report(bool(qpn) and r.code == 0 and f'0 frames in {path}' in r.out, name, r)


# ---- wrong input ----

BAD = [
    ('foo', 'expected help'), ('set', 'expected fwd'), ('set fwd', 'a mode: send'), ('set fwd sned', 'a mode: send'), ('set size', 'bytes, from 0'), ('set size 17M', 'bytes, from 0'), ('set size -1', 'bytes'),
    ('set depth 0', 'a number from 1'), ('set qps x', 'a number from 1'), ('set mtu 1000', 'a path MTU'), ('set verify maybe', 'on or off'), ('start now', 'expected nothing'), ('stop', 'nothing runs'),
    ('show', 'expected'), ('show port 7', 'the number of a port'), ('show fwd', 'no traffic yet'), ('gid add 0 10.0.0', 'an address and its prefix'), ('gid add 0 10.0.0.9/33', 'an address and its prefix'),
    ('gid add 0 224.0.0.1/24', 'cannot add'), ('gid del 0 60', 'there is none'), ('neigh add 0 10.0.0.9 02:00', 'a MAC address'), ('neigh add 0 224.0.0.9 02:00:00:00:00:01', 'one host'),
    ('fault set 0 dorp:1%', 'begins with none of drop'), ('fault set 0 drop:200%', 'a probability'), ('fault on 0', 'has no faults'), ('fault set 2 drop:1%', 'the number of a port'),
    ('capture start 0 /nowhere/x', 'cannot capture into'), ('capture stop 0', 'no capture'), ('load /nowhere', 'cannot read'), ('pd destroy 3', 'there is no pd 3'), ('mr create 9 4K', 'there is no pd 9'),
    ('qp create 0 0 xrc', 'rc, uc or ud'), ('qp join 0 1', 'there is no qp 0'), ('cq create 0 0', 'a number from 1'), ('wait soon', 'seconds'), ('help nothing', 'the first word'), ('x ' * 300, 'too long'),
]


def test_bad_input():
    wrong = []
    r = run('--', '-i', feed='\n'.join(line for line, _ in BAD) + '\nshow config\nquit\n')
    said = [line for line in r.err.splitlines() if line and 'expected at least' not in line and not line.startswith('uroce')]
    for (line, expected), answer in zip(BAD, said):
        if expected not in answer:
            wrong.append(f'{line!r}: {answer!r} instead of {expected!r}')
    report(r.code == 0 and len(said) == len(BAD) and not wrong and 'mode send' in r.out, f'{len(BAD)} bad commands: one line each, and it goes on', '\n'.join(wrong + [str(r)]))


def test_bad_options():
    for args, expected in [
        (['--fast'], '--help'), (['--device'], 'device'), (['--forward-mode', 'x'], 'a mode'), (['--size', 'big'], 'bytes'), (['--stats-period', '0'], 'seconds'), (['--auto-start=yes'], 'no value'),
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


# ---- scripts ----

def test_objects():
    r = script('pd create 0', 'pd create 1', 'cq create 0 16', 'cq create 1 16', 'mr create 0 4K', 'mr create 1 4K', 'qp create 0 0 rc', 'qp create 1 1 rc', 'qp join 0 1', 'mr fill 0 hello', 'qp recv 1 1', 'qp send 0 0 5',
               'wait 0.2', 'cq poll 0', 'cq poll 1', 'mr dump 1', 'show qp all', 'show mr 1', 'show qp counters 0', 'show neigh all', 'pd destroy 0')
    fine = r.code == 1 and r.err.count('\n') == 1 and 'what uses it' in r.err and 'success, RECV, 5 bytes' in r.out and 'success, SEND' in r.out and '68 65 6c 6c 6f 00' in r.out and r.out.count('RTS') == 2
    report(fine and 'completed_requests' in r.out, 'objects by hand, to a SEND', r)
    rkey, addr = re.search(r'rkey (0x\w+)', r.out), re.search(r'bytes at (0x\w+)', r.out)
    r = script('pd create 0', 'cq create 0 16', 'mr create 0 4K', 'qp create 0 0 rc', 'cq create 0 16', 'qp create 0 1 rc', 'qp join 0 1', 'qp write 0 0 8 0x1000 0x77', 'wait 0.2', 'cq poll 0', 'show qp 0', 'qp reset 0',
               'qp destroy 0', 'qp destroy 1', 'cq destroy 0', 'cq destroy 1', 'mr destroy 0', 'pd destroy 0', 'show pd')
    report(bool(rkey and addr) and r.code == 0 and 'remote access error' in r.out and 'ERR' in r.out and 'no pd' in r.out, 'a WRITE with a wrong rkey, and everything destroyed', r)
    lines = ['pd create 0', 'pd create 1', 'cq create 0 16', 'cq create 1 16', 'mr create 0 4K', 'mr create 1 4K', 'qp create 0 0 rc', 'qp create 1 1 rc', 'qp join 0 1', 'mw create 1', 'mw bind 1 0 1 64', 'wait 0.2', 'cq poll 1',
             'show mw', 'show mr 1']
    r = script(*lines)
    report(r.code == 0 and 'success, BIND_MW' in r.out and 'mw 0: port 1' in r.out and 'rkey 0x' in r.out, 'a memory window bound by hand', r)
    r = script('pd create 1', 'srq create 0 8', 'mr create 0 4K', 'srq recv 0 0', 'show srq', 'gid add 1 10.0.0.77/24', 'show gid 1', 'gid del 1 1', 'neigh add 0 10.0.0.50 02:00:00:00:00:32', 'show neigh 0', 'show cores all', 'show drops all',
               'show port all', 'show capture', 'show modes', 'help qp')
    report(r.code == 0 and '10.0.0.77' in r.out and 'static' in r.out and 'srq 0: port 1' in r.out and r.out.count('path MTU') == 2, 'SRQ, GID, neighbour, and what can be shown', r)


def test_program():
    r = run('--', '--auto-start', '--stats-period', '0.2', '--cmdline-file', '/dev/null', '-i', '--forward-mode=echo', feed='wait 0.7\nstop\nquit\n')
    report(r.code == 0 and r.out.count('echo client:') >= 2 and 'round trip' in r.out, '--auto-start and --stats-period', r)
    p = subprocess.Popen([testroce, '--'], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = p.communicate(timeout=PATIENCE)
    report(p.returncode == 0 and 'stopped' in out, 'without a prompt, until its input ends', out + err)
    r = run('--no-huge', '-m', '512', '--no-pci', '--no-shconf', '--no-telemetry', '-l', '0', '--', '-i', feed='start\nwait 0.2\nstop\nquit\n')
    report(r.code == 0 and table(r.out)['client'][0] > 0, "DPDK's options before --", r)


# ---- the prompt ----

class Terminal:
    def __init__(self, *args):
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.execv(testroce, [testroce, *args])
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

    def end(self):
        for _ in range(100):
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.1)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        return None


def test_prompt():
    t = Terminal('--', '-i')
    steps = [
        ('', r'testroce> '), ('sh\tpo\t\n', r'port 0: inline:net_ring'), ('set fwd w\t', r'rite'), ('\t', r'write-imm'), ('-\t\n', r'testroce> $'), ('show config\n', r'mode write-imm'),
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


def test_lesson():
    r = run('--', '--lesson')
    titles = re.findall(r'^(\d\.|WRITE \d\.|READ \d\.|socket \d:)', r.out, re.M)
    report(r.code == 0 and titles == [f'{i}.' for i in range(1, 10)] + [f'WRITE {i}.' for i in range(1, 6)] + [f'READ {i}.' for i in range(1, 6)] + [f'socket {i}:' for i in range(1, 4)], 'the lesson has its steps', r)
    parts = dict(zip(titles, re.split(r'^(?:\d\.|WRITE \d\.|READ \d\.|socket \d:) ', r.out, flags=re.M)[1:]))
    if 'not counted' in r.out:
        skip('after the control path the kernel is not asked for anything', 'this process may not be traced here')
    else:
        quiet = [t for t in titles[2:19] if '  kernel   0 system calls' not in parts[t]]
        report(not quiet and 'system calls: sendto' in parts['socket 2:'] and 'system calls: recvfrom' in parts['socket 3:'], 'after the control path the kernel is not asked for anything', f'{quiet}\n{r}')
    wanted = {'3.': ['RQ slot', 'tail', 'by program B'], '4.': ['SQ slot', 'SGE 0', 'by program A'], '5.': ['RC SEND ONLY', 'payload 12'], '6.': ["B's memory: bytes 256", 'hello, RDMA'], '7.': ['ACKNOWLEDGE', 'RECV'],
              '8.': ["A's SQ, head", 'CQE', 'SEND'], '9.': ['WC ', 'success, RECV', 'success, SEND'], 'WRITE 2.': ['RC RDMA WRITE ONLY', 'rkey'], 'WRITE 3.': ['HELLO, rdma'], 'READ 2.': ['RC RDMA READ REQUEST'],
              'READ 3.': ['RC RDMA READ RESPONSE ONLY'], 'READ 4.': ["A's memory: bytes 256", 'HELLO, rdma']}
    missing = [(t, w) for t in wanted for w in wanted[t] if w not in parts.get(t, '')]
    untouched = [t for t in ('READ 3.', '5.') if '  memory' in parts.get(t, '')]
    report(not missing and not untouched, 'each step shows what it did', f'{missing} {untouched}\n{r}')


# ---- two processes ----

def test_pair():
    if not os.path.isdir('/dev/shm'):
        return skip('two processes over memif', 'needs /dev/shm')
    socket, port = os.path.join(tmp, 'memif'), str(20000 + os.getpid() % 20000)
    server = subprocess.Popen([testroce, '--', '--listen', f'127.0.0.1:{port}', '--device', f'inline:net_memif0,role=server,socket={socket},socket-abstract=no,ip=10.9.0.1/24'], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
    lines = []
    for mode in MODES:
        lines += [f'set fwd {mode}', 'start', 'wait 0.4', 'stop']
    path = os.path.join(tmp, 'script')
    with open(path, 'w', encoding='utf-8') as f:
        f.write('\n'.join(lines) + '\n')
    r = run('--', '--connect', f'127.0.0.1:{port}', '--device', f'inline:net_memif0,role=client,socket={socket},socket-abstract=no,ip=10.9.0.2/24', '--cmdline-file', path)
    try:
        out, _ = server.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        server.kill()
        out, _ = server.communicate()
    fine = r.code == 0 and server.returncode == 0 and r.out.count(', stopped,') == len(MODES) and r.out.count(' messages, ') == len(MODES) and out.count('serving mode') == len(MODES)
    report(fine, 'two processes over memif, every mode', f'{r}\nserver: exit code {server.returncode}\n{out}')


os.environ['UROCE_LOG'] = 'error'
only = sys.argv[2:]
try:
    for test in [test_modes, test_faults_at_run_time, test_capture, test_capture_of_one, test_bad_input, test_bad_options, test_objects, test_program, test_prompt, test_lesson, test_pair]:
        if not only or test.__name__ in only:
            test()
finally:
    shutil.rmtree(tmp, ignore_errors=True)
print(f'1..{number}')
sys.exit(failed != 0)
