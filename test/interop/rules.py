# SPDX-License-Identifier: BSD-3-Clause
"""Rules that both stacks have to keep towards each other, looked at on the wire: how many READs are outstanding, how long a receiver that is not ready is left alone, how often something is tried."""
import time

import capture
from lab import GUEST_IP4, HOST_IP4, PeerError, gid_index
from pair import Pair

MTU = 1024
RNR_CODE, RNR_SECONDS = 20, 0.01024  # IBA table 46
ADDRESS = {'uroce': HOST_IP4, 'rxe': GUEST_IP4}


class Rig:
    """A pair of fresh ends with a capture of what passes between them."""

    def __init__(self, lab, requester_is_uroce, **keys):
        self.lab, self.tracer = lab, None
        host, guest = lab.packet_end(), lab.guest_end()
        ends = (host, guest) if requester_is_uroce else (guest, host)
        try:
            self.pair = Pair(*ends, [gid_index(e, ADDRESS[e.name]) for e in ends], MTU, **keys)
            self.tracer = lab.start_capture('rules')
        except (PeerError, OSError):
            self.close()
            raise

    def packets(self):
        tracer, self.tracer = self.tracer, None
        return tracer.stop()

    def requests(self, packets):
        return [p for p in packets if p.source == ADDRESS[self.pair.ends[0].name] and p.qpn == self.pair.cards[1]['qpn'] and p.opcode in capture.REQUESTS]

    def close(self):
        if self.tracer:
            self.tracer.stop()
        for end in self.pair.ends:
            end.close()


def most_outstanding(packets, requester, qpns):
    """READs that were asked for and not wholly answered, at most. qpns: of requester and responder."""
    ends, most = [], 0
    for p in packets:
        if p.source == requester and p.qpn == qpns[1] and p.opcode == capture.READ_REQUEST:
            end = (p.psn + max(1, (p.length + MTU - 1) // MTU) - 1) % (1 << 24)
            ends += [end] if end not in ends else []
            most = max(most, len(ends))
        elif p.qpn == qpns[0] and p.opcode in (capture.READ_LAST, capture.READ_ONLY):
            ends = [e for e in ends if capture.psn_after(e, p.psn) > 0]
    return most


def outstanding_reads(limit):
    def rule(lab, requester_is_uroce):
        rig = Rig(lab, requester_is_uroce, first_psn=0xfffff0, message_bytes=100 * 3200, depth=64, requester_keys='rd=%d' % limit, responder_keys='dest_rd=%d' % limit)
        try:
            pair = rig.pair
            pair.run_stream('read', 3000, 100, 64)
            most = most_outstanding(rig.packets(), ADDRESS[pair.ends[0].name], (pair.cards[0]['qpn'], pair.cards[1]['qpn']))
            if most > limit or (requester_is_uroce and most < limit):
                raise PeerError('%d READs were outstanding, %d are allowed' % (most, limit))
        finally:
            rig.close()
    return rule


def late_receives(lab, requester_is_uroce):
    """Messages of one and of several packets, receives only after an RNR NAK. rxe answers RNR NAK and then, for what was on its way behind it, sequence NAK: the RNR time has to be kept all the same."""
    rig = Rig(lab, requester_is_uroce, message_bytes=1 << 16, responder_keys='min_rnr=%d' % RNR_CODE)
    try:
        pair = rig.pair
        requester, responder = pair.ends
        sizes = (64, 3000, 64, 3000)
        requester.do(*('fill at=%d len=%d seed=%d' % (4096 * i, size, i) for i, size in enumerate(sizes)))
        requester.do(*('send op=send at=%d len=%d' % (4096 * i, size) for i, size in enumerate(sizes)))
        wait_for_rnr(requester if requester_is_uroce else responder)
        responder.do(*('recv at=%d len=4096' % (pair.half + 4096 * i) for i in range(len(sizes))))
        pair.finish(requester, len(sizes), 0, 'send')
        pair.finish(responder, 0, len(sizes), 'the receive of send')
        responder.do(*('check at=%d len=%d seed=%d' % (pair.half + 4096 * i, size, i) for i, size in enumerate(sizes)))
        packets = rig.packets()
        waits = find_rnr_waits(packets, ADDRESS[responder.name], set(rig.requests(packets)))
        if not waits:
            raise PeerError('no RNR NAK was sent')
        if min(waits) < RNR_SECONDS:
            raise PeerError('%s sent again %.2f ms after an RNR NAK that asked for %.2f ms' % (requester.name, min(waits) * 1e3, RNR_SECONDS * 1e3))
    finally:
        rig.close()


def wait_for_rnr(uroce):
    """Until it has sent or got an RNR NAK."""
    for _ in range(200):
        counters = uroce.ask('counters')
        if counters['rnr_nak_sent'] or counters['rnr_nak_retry_err']:
            return
        time.sleep(0.05)
    raise PeerError('no RNR NAK in ten seconds')


def find_rnr_waits(packets, responder, requests):
    """From each RNR NAK to the next packet with its PSN."""
    waits = []
    for i, nak in enumerate(packets):
        if nak.source == responder and nak.syndrome is not None and nak.syndrome >> 5 == 1:
            again = [p for p in packets[i:] if p in requests and p.psn == nak.psn]
            waits += [again[0].time - nak.time] if again else []
    return waits


def retry_count(lab, requester_is_uroce):
    """retry_cnt 3: the first transmission and three more (IBA 9.9.2.4.1); uroce's tail-loss probe may be one more."""
    rig = Rig(lab, requester_is_uroce, requester_keys='timeout=12 retry_cnt=3')
    try:
        pair = rig.pair
        pair.ends[1].ask('destroy')
        pair.ends[0].ask('send op=send at=0 len=64')
        told = pair.ends[0].ask('wait sends=1 ms=8000')
        sent = len(rig.requests(rig.packets()))
        if told['first'] != 'RETRY_EXC_ERR' or sent not in ((4, 5) if requester_is_uroce else (4,)):
            raise PeerError('%s after %d transmissions' % (told['first'], sent))
    finally:
        rig.close()


def both_at_once(lab, requester_is_uroce):
    """Each is requester and responder at the same time, on the same QPs."""
    rig = Rig(lab, requester_is_uroce, first_psn=0xfffff0, message_bytes=1 << 18, depth=64)
    try:
        pair, count, size, stride = rig.pair, 40, 5000, 5120
        for seed, end in enumerate(pair.ends):
            end.do('fill at=0 len=%d seed=%d n=%d stride=%d' % (size, 1000 * seed, count, stride), 'recv at=%d len=%d n=%d stride=%d' % (pair.half, size, count, stride))
        command = 'send op=send at=0 len=%d n=%d stride=%d' % (size, count, stride)
        for end in pair.ends:
            end.begin(command)
        for end in pair.ends:
            end.collect(command)
        for seed, end in enumerate(pair.ends):
            pair.finish(end, count, count, 'send')
            end.ask('check at=%d len=%d seed=%d n=%d stride=%d' % (pair.half, size, 1000 * (1 - seed), count, stride))
    finally:
        rig.close()


RULES = (
    ('16 READs outstanding', outstanding_reads(16)),
    ('4 READs outstanding', outstanding_reads(4)),
    ('1 READ outstanding', outstanding_reads(1)),
    ('receives that come late', late_receives),
    ('retry_cnt', retry_count),
    ('requests both ways at once', both_at_once),
)
