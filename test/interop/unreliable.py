# SPDX-License-Identifier: BSD-3-Clause
"""UC and UD over links that lose, duplicate and reorder: what arrives is right, what does not is missing whole, no QP is told, and what uroce counts and delivers is what a capture of the wire makes of it.

Towards uroce the guest's own egress is at fault, and towards rxe, for losses, a rule of nft's: both before the capture, so what the receiver gets is known packet by packet. Duplicates and new orders towards rxe come
from a queue in the guest, behind the capture: what is known then is how many packets came out of it."""
import re

import capture
from lab import GUEST_IP4, HOST_IP4, PeerError, ask_together, gid_index
from loss import GUEST_NETEM, GUEST_NETEM_END
from pair import GUARD_BYTES, UC, UD, Pair

MTU, COUNT, WINDOW, FIRST_PSN = 1024, 200, 16, 0xffff00
SLOTS = 250  # receives: datagrams may come twice
SIZE, ONE_PACKET = 2500, 1000
SETTLE_MS = 1500  # what has not come by then is lost
GUEST_EGRESS, GUEST_EGRESS_END = 'tc qdisc add dev eth0 root netem limit 10000 ', 'tc qdisc del dev eth0 root'


class Fault:
    """netem: what the guest's queue does. rule: nft's instead, towards rxe."""

    def __init__(self, name, netem, rule=''):
        self.name, self.netem, self.rule = name, netem, rule


FAULTS = (
    Fault('2 % lost', 'loss 2%', 'udp dport 4791 numgen random mod 50 0'),
    Fault('2 % duplicated', 'duplicate 2%'),
    Fault('2 % reordered', 'delay 200us reorder 2%'),
)
CASES = tuple((service, op, fault) for service, ops in ((UC, ('send_imm', 'write_imm')), (UD, ('send_imm',))) for op in ops for fault in FAULTS)


class Seen:
    """What came of COUNT messages. got: by slot, the message in it, None for none; recvs: receives that completed; lost: packets before the capture; passed: packets behind the guest's queue, or None."""

    def __init__(self, is_rxe):
        self.is_rxe = is_rxe  # the receiver
        self.got, self.recvs, self.packets, self.lost, self.passed, self.counters = [], 0, [], 0, None, {}


def size_of(service, op, to_rxe):
    """After a WRITE of several packets of which one is missing rxe takes nothing more from that QP, ever."""
    return ONE_PACKET if service is UD or (to_rxe and op == 'write_imm') else SIZE


def begin_fault(lab, fault, to_uroce):
    if to_uroce:
        lab.guest.must(GUEST_EGRESS + fault.netem)
    elif fault.rule:
        lab.drop_before_capture(fault.rule)
    else:
        lab.guest.must(GUEST_NETEM + fault.netem)


def end_fault(lab, fault, to_uroce, seen):
    if to_uroce:
        lab.guest.run(GUEST_EGRESS_END)
    elif fault.rule:
        seen.lost = lab.end_drops()
    else:
        said = lab.guest.run(GUEST_NETEM_END)[1]
        seen.passed = int(re.search(r'Sent \d+ bytes (\d+) pkt', said).group(1))


def send_all(pair, op, size, seen):
    requester, responder = pair.ends
    header, stride = pair.service.header_bytes, (size + GUARD_BYTES + 7) // 8 * 8
    slots = 'at=%d len=%d n=%d stride=%d' % (pair.half + header, size, SLOTS, stride)
    ask_together((requester, ['fill at=0 len=%d seed=1 n=%d stride=%d' % (size, COUNT, stride)]),
                 (responder, ['zero at=%d len=%d' % (pair.half, SLOTS * stride), 'recv at=%d len=%d n=%d stride=%d' % (pair.half, 0 if op == 'write_imm' else header + size, SLOTS, stride)]))
    requester.do('send op=%s at=0 len=%d n=%d stride=%d window=%d %s' % (op, size, COUNT, stride, WINDOW, pair.target()), 'wait sends=%d' % COUNT, seconds=60)
    answer = responder.ask('wait recvs=%d ms=%d' % (SLOTS, SETTLE_MS))
    pair.judge(responder, answer, 0, 0, 'a receive of ' + op)
    pair.check_states()
    seen.recvs = answer['recvs']
    seen.got = [int(k) if k != '-' else None for k in responder.ask('arrived %s seed=1 of=%d' % (slots, COUNT))['got'].split(',')[:-1]]


def check_exact(service, op, seen, first_psn, psns):
    """What the capture has is what the receiver got: the packets of each message that arrives, and no others."""
    receiver = (capture.RxeReceiver if seen.is_rxe else capture.UroceReceiver)(first_psn, psns)
    for p in seen.packets:
        (receiver.accept if service is UD else receiver.take)(p)  # a datagram is taken whatever its PSN
    expected = receiver.arrived
    if seen.recvs != len(expected):
        raise PeerError('%d messages arrived, by the capture %d should have' % (seen.recvs, len(expected)))
    if op == 'write_imm':
        wrong = [k for k in expected if seen.got[k] != k]
    else:
        wrong = [k for k, got in zip(expected, seen.got) if k != got]
    if wrong:
        raise PeerError('of what arrived, messages %s are not right: %s' % (wrong[:10], seen.got))
    return ('rx_packets', len(seen.packets)), ('out_of_sequence', receiver.out_of_sequence), ('dropped_packets', receiver.dropped), ('completed_receives', len(expected))


def check_plausible(op, seen, psns):
    """Behind the guest's queue. Messages of one packet: as many as came out of it. Of several: whole ones, in order and once each."""
    got = [k for k in seen.got if k is not None]
    if psns == 1 and seen.recvs != seen.passed:
        raise PeerError('%d messages arrived, %d came out of the queue' % (seen.recvs, seen.passed))
    if psns > 1 and got != sorted(set(got)):
        raise PeerError('messages came twice or in another order: %s' % got)
    if len(got) != (COUNT if op == 'write_imm' else seen.recvs) or seen.recvs < COUNT // 2:
        raise PeerError('%d receives completed, %d messages are right' % (seen.recvs, len(got)))


def run(lab, host, guest, case, requester_is_uroce):
    """How much arrived. Raises PeerError."""
    service, op, fault = case
    ends = (host, guest) if requester_is_uroce else (guest, host)
    gids = (gid_index(host, HOST_IP4), gid_index(guest, GUEST_IP4))
    size, seen, source = size_of(service, op, requester_is_uroce), Seen(requester_is_uroce), HOST_IP4 if requester_is_uroce else GUEST_IP4
    pair = Pair(*ends, gids if requester_is_uroce else gids[::-1], MTU, FIRST_PSN, SLOTS * (size + GUARD_BYTES + 8), SLOTS, service=service)
    tracer = lab.start_capture('unreliable')
    try:
        begin_fault(lab, fault, not requester_is_uroce)
        try:
            send_all(pair, op, size, seen)
        finally:
            end_fault(lab, fault, not requester_is_uroce, seen)
        seen.counters = host.ask('counters')
        packets, tracer = tracer.stop(), None
        seen.packets = [p for p in packets if p.source == source and p.qpn == pair.cards[1]['qpn']]
        check(service, op, seen, requester_is_uroce, (size + MTU - 1) // MTU)
    finally:
        if tracer:
            tracer.stop()
        pair.close()
    return '%d of %d messages arrived' % (seen.recvs, COUNT)


def check(service, op, seen, requester_is_uroce, psns):
    counted = ()
    if requester_is_uroce:
        counted = (('tx_packets', len(seen.packets) + seen.lost),)
    if seen.passed is None:
        received = check_exact(service, op, seen, FIRST_PSN, psns)
        counted = counted or received
    else:
        check_plausible(op, seen, psns)
    for name, value in counted:
        if seen.counters[name] != value:
            raise PeerError('uroce counts %d %s, by the wire it should be %d' % (seen.counters[name], name, value))
