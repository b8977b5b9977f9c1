#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Objects made, used and destroyed by hand at testroce's prompt, and the events that come of it. Writes TAP.
test_testroce_objects.py PATH-OF-TESTROCE [TEST...]"""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from troce import Process, report, run_tests, script  # noqa: E402


def test_objects():
    r = script('pd create 0', 'pd create 1', 'cq create 0 16', 'cq create 1 16', 'mr create 0 4K', 'mr create 1 4K', 'qp create 0 0 rc', 'qp create 1 1 rc', 'qp join 0 1', 'mr fill 0 hello', 'qp recv 1 1', 'qp send 0 0 5',
               'wait 0.2', 'cq poll 0', 'cq poll 1', 'mr dump 1', 'show qp all', 'show mr 1', 'show qp counters 0', 'show neigh all', 'pd destroy 0')
    fine = r.code == 1 and r.err.count('\n') == 1 and 'what uses it' in r.err and 'success, RECV, 5 bytes' in r.out and 'success, SEND' in r.out and '68 65 6c 6c 6f 00' in r.out and r.out.count('RTS') == 2
    report(fine and 'completed_requests' in r.out, 'objects by hand, to a SEND', r)
    rkey, addr = re.search(r'rkey (0x\w+)', r.out), re.search(r'bytes at (0x\w+)', r.out)
    r = script('pd create 0', 'cq create 0 16', 'mr create 0 4K', 'qp create 0 0 rc', 'cq create 0 16', 'qp create 0 1 rc', 'qp join 0 1', 'qp write 0 0 8 0x1000 0x77', 'wait 0.2', 'cq poll 0', 'show qp 0', 'qp reset 0',
               'qp destroy 0', 'qp destroy 1', 'cq destroy 0', 'cq destroy 1', 'mr destroy 0', 'pd destroy 0', 'show pd')
    report(bool(rkey and addr) and r.code == 0 and 'remote access error' in r.out and 'ERR' in r.out and 'no pd' in r.out, 'a WRITE with a wrong rkey, and everything destroyed', r)
    lines = ['pd create 0', 'pd create 1', 'cq create 0 16', 'cq create 1 16', 'mr create 0 4K', 'mr create 1 4K', 'qp create 0 0 rc', 'qp create 1 1 rc', 'qp join 0 1', 'mw create 1', 'qp bind 1 0 1 64', 'wait 0.2', 'cq poll 1',
             'show mw', 'show mr 1']
    r = script(*lines)
    report(r.code == 0 and 'success, BIND_MW' in r.out and 'mw 0: port 1, pd 1, type 1' in r.out and 'rkey 0x' in r.out, 'a memory window of type 1, bound by hand', r)
    r = script('pd create 1', 'srq create 0 8', 'mr create 0 4K', 'srq recv 0 0', 'show srq', 'gid add 1 10.0.0.77/24', 'show gid 1', 'gid del 1 1', 'neigh add 0 10.0.0.50 02:00:00:00:00:32', 'show neigh 0', 'show cores all', 'show drops all',
               'show port all', 'show capture', 'show modes', 'help qp')
    report(r.code == 0 and '10.0.0.77' in r.out and 'static' in r.out and 'srq 0: port 1' in r.out and r.out.count('path MTU') == 2, 'SRQ, GID, neighbour, and what can be shown', r)


PAIR = ['pd create 0', 'pd create 1', 'cq create 0 64', 'cq create 1 64', 'mr create 0 4K', 'mr create 1 4K']


def make_pair(service='rc', more=('qp join 0 1',)):
    """A testroce with two QPs: 0 at port 0 with MR 0 and CQ 0, 1 likewise."""
    p = Process('--', '-i')
    for line in [*PAIR, f'qp create 0 0 {service}', f'qp create 1 1 {service}', *more]:
        p.do(line)
    return p


def memory(p, mr):
    """Address and rkey, as its peer has to name them."""
    return ' '.join(re.search(r'bytes at (0x\w+), lkey 0x\w+, rkey (0x\w+)', p.do(f'show mr {mr}')).groups())


def check(name, p, *steps):
    """(command, what it or a poll after it must print): a command of None polls what was polled last. The program must then end as one that was told wrong lines, which the marks of Process.do are."""
    missing = ''
    for line, pattern in steps:
        said = p.poll_until(line, pattern) if line.startswith(('cq poll', 'show')) else p.do(line)
        if not missing and not re.search(pattern, said):
            missing = f'{line!r} does not say {pattern!r}, but {said!r}'
    code = p.end()
    report(not missing and code == 1, name, f'{missing}\nexit code {code}\n{p.text}')


def test_windows():
    p = make_pair()
    p.do('mw create 1 2')
    key = re.search(r'key (0x\w+)', p.do('qp bind 1 0 1 16')).group(1)
    address = memory(p, 1).split()[0]
    check('a memory window of type 2: bound, written through, given back by SEND with invalidate, and dead', p,
          ('cq poll 1', 'success, BIND_MW'), ('show mw', f'type 2, rkey {key}'), ('mr fill 0 through', ''), (f'qp write 0 0 7 {address} {key}', 'wr_id 0'), ('cq poll 0', 'success, WRITE'), ('mr dump 1', 'through'),
          ('qp recv 1 1', 'wr_id'), (f'qp send-inv 0 0 3 {key}', 'wr_id 1'), ('cq poll 1', f'success, RECV, 3 bytes, key {key} invalidated'), (f'qp write 0 0 7 {address} {key}', 'wr_id 2'), ('cq poll 0', 'remote access error'),
          ('show event', 'port 1, qp 1: QP_ACCESS_ERR'))
    p = make_pair()
    p.do('mw create 1 2')
    key = re.search(r'key (0x\w+)', p.do('qp bind 1 0 1 16')).group(1)
    address = memory(p, 1).split()[0]
    check('a memory window of type 2 that LOCAL_INV closes, and that can be bound again', p,
          ('cq poll 1', 'success, BIND_MW'), (f'qp local-inv 1 {key}', 'wr_id 1'), ('cq poll 1', 'success, LOCAL_INV'), ('qp bind 1 0 1 32', 'key 0x'), ('cq poll 1', 'success, BIND_MW'),
          (f'qp write 0 0 7 {address} {key}', 'wr_id 0'), ('cq poll 0', 'remote access error'))


def test_registration():
    p = make_pair()
    p.do('mr alloc 0')
    first = re.search(r'key (0x\w+)', p.do('qp reg 0 2 0 16')).group(1)
    check('an MR of REG_MR: registered, sent from, taken back, and dead', p,
          ('show mr 2', f'for REG_MR, last key {first}'), ('cq poll 0', 'success, REG_MR'), ('mr fill 0 registered', ''), ('qp recv 1 1', 'wr_id 0'), ('qp send 0 2 10', 'wr_id 1'), ('cq poll 1', 'success, RECV, 10 bytes'),
          ('mr dump 1', 'registered'), ('mr dump 2', 'expected one of mr create'), (f'qp local-inv 0 {first}', 'wr_id 2'), ('cq poll 0', 'success, LOCAL_INV'), ('qp send 0 2 10', 'wr_id 3'), ('cq poll 0', 'local protection error'))


def test_operations():
    p = make_pair()
    there = memory(p, 1)
    check('every operation of RC by hand', p,
          ('mr fill 0 12345678', ''), (f'qp write 0 0 8 {there}', 'wr_id 0'), (f'qp flush 0 8 {there}', 'wr_id 1'), ('cq poll 0', 'success, FLUSH'), ('mr dump 1', '12345678'),
          ('mr fill 0 abcdefgh', ''), (f'qp atomic-write 0 0 {there}', 'wr_id 2'), ('cq poll 0', 'success, ATOMIC WRITE'), ('mr dump 1', 'abcdefgh'),
          (f'qp fetch-add 0 0 {there} 1', 'wr_id 3'), ('cq poll 0', 'success, FETCH_ADD, 8 bytes'), ('mr dump 0', 'abcdefgh'), ('mr dump 1', 'bbcdefgh'),
          (f'qp compare-swap 0 0 {there} 0x6867666564636262 0', 'wr_id 4'), ('cq poll 0', 'success, COMPARE_SWAP, 8 bytes'), ('mr dump 1', '0000  00 00 00 00 00 00 00 00'),
          (f'qp read 0 0 8 {there}', 'wr_id 5'), ('cq poll 0', 'success, READ, 8 bytes'), ('mr dump 0', '0000  00 00 00 00 00 00 00 00'),
          ('qp recv 1 1', 'wr_id 0'), ('qp send-imm 0 0 4 77', 'wr_id 6'), ('cq poll 1', 'RECV, 4 bytes, immediate 77'), ('qp recv 1 1', 'wr_id 1'), (f'qp write-imm 0 0 4 {there} 78', 'wr_id 7'),
          ('cq poll 1', 'RECV of WRITE with immediate, 4 bytes, immediate 78'), (f'qp atomic-write 0 0 {hex(int(there.split()[0], 16) + 4)} {there.split()[1]}', 'not posted'), ('qp send 0 0 99999999', 'expected bytes'),
          ('show qp counters 0', 'completed_requests'))


def test_datagrams():
    p = make_pair('ud', ['qp open 0', 'qp open 1', 'ah create 0 10.0.0.2', 'ah create 0 239.1.2.3'])
    qpn = re.search(r'QPN (0x\w+)', p.do('show qp 1')).group(1)
    check('datagrams to a QP and to a group, which it enters and leaves', p,
          ('show ah all', r'ah 1: port 0, pd 0, to 239\.1\.2\.3'), ('qp recv 1 1', 'wr_id 0'), ('mr fill 0 alone', ''), (f'qp send-to 0 0 5 0 {qpn}', 'wr_id 0'), ('cq poll 1', '45 bytes, 40 of them headers, from QP 0x'),
          ('mr dump 1', 'alone'), ('qp attach 1 10.0.0.1', 'expected a multicast group'), ('qp detach 1 239.1.2.3', 'expected a multicast group'), ('qp attach 1 239.1.2.3', ''), ('qp recv 1 1', 'wr_id 1'), ('mr fill 0 group', ''),
          ('qp send-to 0 0 5 1', 'wr_id 1'), ('cq poll 1', '45 bytes, 40 of them headers'), ('mr dump 1', 'group'), ('qp detach 1 239.1.2.3', ''), ('qp recv 1 1', 'wr_id 2'), ('qp send-to 0 0 5 1', 'wr_id 2'),
          ('wait 0.3', ''), ('cq poll 1', 'no WC'), ('qp open 9', 'there is no qp 9'), ('ah destroy 1', ''), ('ah destroy 0', ''))


def test_events():
    p = make_pair()
    check('SQD: what was begun ends, and an event says so', p,
          ('show event', 'no events'), ('qp drain 0', ''), ('show event all', 'port 0, qp 0: SQ_DRAINED: what was begun has completed'), ('show qp 0', 'SQD'), ('qp send 0 0 5', 'wr_id 0'), ('qp recv 1 1', 'wr_id 0'), ('cq poll 0', 'no WC'),
          ('qp resume 0', ''), ('cq poll 1', 'success, RECV, 5 bytes'), ('clear event', ''), ('show event', 'no events'))
    p = make_pair(more=['srq create 1 8', 'qp create 1 1 rc 0', 'qp join 0 2', 'srq recv 0 1', 'srq recv 0 1', 'srq limit 0 2'])
    check('an SRQ below its limit, and the last receive of a QP in ERR', p,
          ('srq limit 0 99', 'expected at most'), ('qp send 0 0 5', 'wr_id 0'), ('cq poll 1', 'success, RECV'), ('show event', 'port 1, srq 0: SRQ_LIMIT_REACHED: fewer receives'), ('show srq', 'limit 0'), ('qp error 2', ''),
          ('show event', 'port 1, qp 2: QP_LAST_WQE_REACHED'))
    p = make_pair(more=['qp join 0 1', 'gid add 0 10.0.0.9/24'])
    check('an address that comes, and an overrun CQ', p,
          ('show event', 'port 0: GID_CHANGE'), ('cq create 0 1', 'cq 2'), ('qp create 0 2 rc', 'qp 2'), ('qp create 1 1 rc', 'qp 3'), ('qp join 2 3', ''), *[('qp recv 3 1', 'wr_id')] * 16, *[('qp send 2 0 1', '')] * 16,
          ('show event', 'port 0, cq 2: CQ_ERR'), ('show event', 'port 0, qp 2: QP_FATAL'))


run_tests([test_objects, test_windows, test_registration, test_operations, test_datagrams, test_events], sys.argv[2:])
