#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""testroce's traffic: every mode alone and over a link with faults, faults that come and go, captures read back by tshark. Writes TAP.
test_testroce.py PATH-OF-TESTROCE [TEST...]"""
import os
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from troce import MODES, PATIENCE, Process, counters, report, run_tests, script, skip, table, tmp  # noqa: E402


# ---- modes ----

def check_mode(mode, setup, name, *, lossy=False):
    r = script(f'set fwd {mode}', *setup, 'start', 'wait 1', 'stop')
    t = table(r.out)
    client, server = t.get('client', [0] * 5), t.get('server', [0] * 5)
    fine = r.code == 0 and client[0] > 0 and client[2] + server[2] > 0 and not r.err
    if not lossy and mode in ('send', 'send-imm', 'write-imm', 'srq', 'window', 'echo'):
        fine = fine and client[0] == server[0] and client[3] == server[3] == 0
    if mode == 'uc':
        fine = fine and client[0] == server[0] + server[3]
    report(fine, name, r)


FAULTS = 'drop:1%/dup:1%/reorder:2%/corrupt:0.5%/ce:1%/delay:5us:5us/seed:7'
BOTH = [f'fault set 0 {FAULTS}', f'fault set 1 {FAULTS}']


def test_modes():
    for mode in MODES:
        check_mode(mode, [], f'mode {mode}')
    for mode in MODES:
        check_mode(mode, BOTH, f'mode {mode} with every fault on', lossy=mode in ('uc', 'ud', 'multicast'))
    for size in ('0', '1', '4097', '1M'):
        check_mode('send', [f'set size {size}'], f'messages of {size} bytes')
    check_mode('write', ['set qps 16', 'set mtu 256'], 'sixteen QPs and the least path MTU')
    r = script('set fwd send', 'set verify off', 'start', 'wait 0.5', 'stop')
    report(r.code == 0 and table(r.out)['client'][0] > 0 and table(r.out)['server'][2] == 0, 'without looking at bytes', r)
    for mode, copies in (('uc', 1), ('ud', 1), ('multicast', 4)):
        r = script(f'set fwd {mode}', 'fault set 1 rule:drop@1+1:ANY', 'start', 'wait 0.2', 'stop')
        t = table(r.out)
        report(r.code == 0 and t['client'][0] > 0 and t['server'][0] == 0 and t['server'][3] == copies * t['client'][0], f'mode {mode} when nothing arrives: all is counted as lost', r)
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
    p = Process('--', '--cmdline-file=/dev/stdin')
    p.process.stdin.write(b'fault set 1 drop:100%\nset size 64\nstart\n')
    p.process.stdin.flush()
    time.sleep(6)  # it fails while the next line is waited for, which does not come
    report(p.end() == 1 and 'no ACK from' in p.text, 'traffic that fails when nobody looks any more is in the exit code', p.text)


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


run_tests([test_modes, test_faults_at_run_time, test_capture, test_capture_of_one], sys.argv[2:])
