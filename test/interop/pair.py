# SPDX-License-Identifier: BSD-3-Clause
"""Two ends joined by a QP each, and one operation between them with everything looked at: completions, data, the bytes behind, immediate data, headers of datagrams, results of atomics."""
import ipaddress
import struct

from lab import PeerError, ask_together

GUARD_BYTES, GRH_BYTES = 64, 40
GROUPS, QPN_MULTICAST = {4: '::ffff:239.1.2.3', 6: 'ff0e::1:2:3'}, 0xffffff
QKEYS = (0x11111111, 0x22222222)  # of requester and responder
TRIES = 5  # of a message that may be lost
LOST_MS = 3000  # after so long, and one more for each KiB, what has not come is lost
MASK64 = (1 << 64) - 1
UDP_BYTES, BTH_BYTES, DETH_BYTES, IMM_BYTES, ICRC_BYTES = 8, 12, 8, 4, 4


class Op:
    """verb: the peer's op, if it is not the name. by_window: the responder binds a window of type 2 for it, and the request names that one's key. is_newest: IBA 1.5, not every peer has it."""

    def __init__(self, name, takes_recv=False, has_imm=False, is_read=False, is_atomic=False, is_newest=False, by_window=False, verb=None):
        self.name, self.takes_recv, self.has_imm, self.is_read, self.is_atomic, self.is_newest = name, takes_recv, has_imm, is_read, is_atomic, is_newest
        self.by_window, self.verb = by_window, verb or name


OPS = {op.name: op for op in (
    Op('send', takes_recv=True),
    Op('send_imm', takes_recv=True, has_imm=True),
    Op('write'),
    Op('write_imm', takes_recv=True, has_imm=True),
    Op('read', is_read=True),
    Op('cas', is_atomic=True),
    Op('fadd', is_atomic=True),
    Op('atomic_write', is_newest=True),
    Op('flush', is_newest=True),
    Op('send_inv', takes_recv=True, by_window=True),
    Op('write_mw', by_window=True, verb='write'),
)}


class Service:
    """word: the peer's. ops: names. A receive begins with header_bytes that are not the message's."""

    def __init__(self, name, ops, has_srq=False, is_multicast=False):
        self.name, self.word, self.ops, self.has_srq, self.is_multicast = name, name[:2].lower(), ops, has_srq, is_multicast
        self.is_reliable, self.is_datagram = self.word == 'rc', self.word == 'ud'
        self.header_bytes = GRH_BYTES if self.is_datagram else 0


RC = Service('RC', tuple(OPS))
UC = Service('UC', ('send', 'send_imm', 'write', 'write_imm'))
UD = Service('UD', ('send', 'send_imm'))
RC_SRQ = Service('RC, SRQ', ('send', 'send_imm', 'write_imm'), has_srq=True)
UC_SRQ = Service('UC, SRQ', ('send', 'send_imm', 'write_imm'), has_srq=True)
UD_SRQ = Service('UD, SRQ', ('send', 'send_imm'), has_srq=True)
UD_MULTICAST = Service('UD, multicast', UD.ops, is_multicast=True)
SERVICES = (RC, UC, UD, RC_SRQ, UC_SRQ, UD_SRQ, UD_MULTICAST)


class Pair:
    """requester and responder are what they are in run()."""

    def __init__(self, requester, responder, gids, mtu, first_psn=0x1000, message_bytes=1 << 16, depth=64, requester_keys='', responder_keys='', responder_qp='', service=RC):
        self.ends, self.service = (requester, responder), service
        self.mtu, self.psns = mtu, (first_psn, (first_psn + 0x800000) % (1 << 24))
        self.half = (message_bytes + GRH_BYTES + 2 * GUARD_BYTES + 4095) // 4096 * 4096
        self.recvs, self.sends, self.serial = 0, 0, 0
        self.waiting, self.lost = 0, 0  # receives that no message has come for; messages that did not arrive
        common = 'service=%s bytes=%d depth=%d' % (service.word, 2 * self.half, depth)
        rows = ((requester, gids[0], QKEYS[0], ''), (responder, gids[1], QKEYS[1], 'srq=%d %s' % (service.has_srq, responder_qp)))
        self.cards = [a[0] for a in ask_together(*((end, ['qp %s gid=%d qkey=%d %s' % (common, gid, qkey, keys)]) for end, gid, qkey, keys in rows))]
        for end, own, other, own_psn, other_psn, keys in ((requester, 0, 1, *self.psns, requester_keys), (responder, 1, 0, *reversed(self.psns), responder_keys)):
            end.ask('connect qpn=%d psn=%d own_psn=%d gid=%s mtu=%d %s' % (self.cards[other]['qpn'], other_psn, own_psn, self.cards[other]['gid'], mtu, keys))
            if service.is_datagram:
                end.ask('aim gid=%s qpn=%d qkey=%d' % (self.cards[other]['gid'], self.cards[other]['qpn'], QKEYS[other]))
        self.group = GROUPS[4 if ipaddress.ip_address(self.cards[1]['gid']).ipv4_mapped else 6]
        if service.is_multicast:
            responder.ask('join gid=%s' % self.group)
            self.aim_at_group(self.group)

    def aim_at_group(self, group):
        self.ends[0].ask('aim gid=%s qpn=%d qkey=%d' % (group, QPN_MULTICAST, QKEYS[1]))
        self.cards[1]['gid'] = group

    def target(self, to=0):
        """Where the responder's second half is, as words of a command."""
        return 'addr=%d rkey=%d' % (self.cards[1]['addr'] + self.half + to, self.cards[1]['rkey'])

    def close(self):
        for end in self.ends:
            try:
                end.ask('destroy')
            except PeerError:
                pass

    @staticmethod
    def judge(end, answer, sends, recvs, what):
        """answer: of wait."""
        if answer['bad']:
            why = end.ask('why')['text']
            raise PeerError('%s: %s of %s ended with %s%s' % (end.name, what, end.name, answer['first'], ': ' + why if why else ''))
        if answer['sends'] < sends or answer['recvs'] < recvs:
            raise PeerError('%s: %s: %d of %d sends and %d of %d receives completed in %d ms' % (end.name, what, answer['sends'], sends, answer['recvs'], recvs, answer['ms']))
        return answer

    def finish(self, end, sends, recvs, what, ms=20000):
        """Waits for that many completions of an end, all good."""
        return self.judge(end, end.ask('wait sends=%d recvs=%d ms=%d' % (sends, recvs, ms), seconds=ms / 1000 + 20), sends, recvs, what)

    def run(self, op, size):
        """One operation. Raises PeerError with what was wrong. What is lost on an unreliable service is tried again."""
        self.serial += 1
        op = OPS[op]
        if op.is_atomic:
            return self.run_atomic(op, size)
        tries = 1 if self.service.is_reliable else TRIES
        while not self.run_message(op, size, is_last=tries == 1):
            tries -= 1
            self.lost += 1

    def run_message(self, op, size, is_last):
        """False: it was lost, and may be (is_last: that is an error)."""
        requester, responder = self.ends
        source, result = (responder, requester) if op.is_read else (requester, responder)
        source_at, result_at = (self.half, 0) if op.is_read else (0, self.half)
        header, imm = self.service.header_bytes if op.takes_recv else 0, 0xc0de0000 + self.serial
        prepare = ['zero at=%d len=%d' % (result_at, header + size + GUARD_BYTES)]
        if op.takes_recv and not self.waiting:
            prepare.append('recv at=%d len=%d' % (self.half, header + size if op.name != 'write_imm' else 0))
            self.waiting = 1
        if op.by_window:
            prepare.append('bind at=%d len=%d' % (self.half, max(size, 8)))
        ready = ask_together((source, ['fill at=%d len=%d seed=%d' % (source_at, size, self.serial)]), (result, prepare))
        key = ready[1][-1]['rkey'] if op.by_window else self.cards[1]['rkey']
        self.sends += 1
        ms = 20000 if self.service.is_reliable else LOST_MS + size // 1024
        words = (op.verb, size, imm, self.cards[1]['addr'] + self.half, key)
        work = [(requester, ['send op=%s at=0 len=%d imm=%d addr=%d rkey=%d' % words, 'wait sends=%d ms=20000' % self.sends])]
        if op.takes_recv:
            work.append((responder, ['wait recvs=%d ms=%d' % (self.recvs + 1, ms)]))
        said = ask_together(*work)
        self.judge(requester, said[0][1], self.sends, 0, op.name)
        if op.takes_recv:
            heard = self.judge(responder, said[1][0], 0, self.recvs + is_last, 'the receive of ' + op.name)
            if heard['recvs'] <= self.recvs:
                return False
            self.recvs, self.waiting = self.recvs + 1, 0
            self.check_receive(op, size, heard, imm, key)
        elif op.by_window:
            responder.ask('unbind')
        return self.check_result(result, result_at + header, size, is_last or op.takes_recv)

    def check_receive(self, op, size, wc, imm, key):
        responder = self.ends[1]
        header = self.service.header_bytes
        if wc['len'] != header + size or wc.get('imm') != (imm if op.has_imm else None):
            raise PeerError('%s: the receive of %s says %d bytes, immediate %s' % (responder.name, op.name, wc['len'], wc.get('imm')))
        if wc.get('inv') != (key if op.by_window and responder.name != 'rxe' else None):  # rxe tells only programs of the kernel's
            raise PeerError('%s: the receive of %s says that key %s was invalidated' % (responder.name, op.name, wc.get('inv')))
        if header and (wc.get('grh') != 1 or wc.get('src') != self.cards[0]['qpn']):
            raise PeerError('%s: the datagram has GRH %s and comes from QP %s, not %s' % (responder.name, wc.get('grh'), wc.get('src'), self.cards[0]['qpn']))
        if header:
            wrong = find_header_error(bytes.fromhex(responder.ask('bytes at=%d len=%d' % (self.half, header))['hex'][1:]), *(c['gid'] for c in self.cards), size, op.has_imm)
            if wrong:
                raise PeerError('%s: the 40 bytes before a datagram: %s' % (responder.name, wrong))

    def check_result(self, end, at, size, is_certain):
        """What nothing completes for may still be on its way: a WRITE of an unreliable service. False: it did not come."""
        ms = 0 if self.service.is_reliable else LOST_MS + size // 1024
        try:
            end.do('check at=%d len=%d seed=%d ms=%d' % (at, size, self.serial, ms), 'untouched at=%d len=%d' % (at + size, GUARD_BYTES))
        except PeerError:
            if is_certain:
                raise
            return False
        return True

    def run_atomic(self, op, size):
        """A compare-and-swap that is meant to fit, one that is not, or an addition that wraps."""
        requester, responder = self.ends
        at, before = self.half + 8, 0xfedcba9876543210 + self.serial
        compare = before if self.serial % 2 else before ^ 1
        swap, add = 0x0123456789abcdef + self.serial, 0x1111111111111111
        after = (before + add) & MASK64 if op.name == 'fadd' else swap if compare == before else before
        responder.do('zero at=%d len=24' % self.half, 'word at=%d set=%d' % (at, before))
        requester.do('zero at=0 len=16', 'send op=%s at=0 len=8 %s %s' % (op.name, self.target(8), 'add=%d' % add if op.name == 'fadd' else 'compare=%d swap=%d' % (compare, swap)))
        self.sends += 1
        self.finish(requester, self.sends, 0, op.name)
        old, new = requester.ask('word at=0')['word'], responder.ask('word at=%d' % at)['word']
        if old != before or new != after:
            raise PeerError('%s of 0x%x: the requester got 0x%x, the memory is 0x%x and should be 0x%x' % (op.name, before, old, new, after))
        requester.ask('untouched at=8 len=8')
        responder.do('untouched at=%d len=8' % self.half, 'untouched at=%d len=8' % (at + 8))

    def check_states(self):
        for end in self.ends:
            state = end.ask('state')['state']
            if state != 'RTS':
                raise PeerError('%s: the QP is in %s' % (end.name, state))

    def run_stream(self, op, size, count, window, ms=60000):
        """count messages (atomics: additions to one word) with up to window outstanding, each to a place of its own; all looked at afterwards."""
        requester, responder = self.ends
        self.serial += count
        if op == 'fadd':
            return self.run_additions(count, window, ms)
        is_read, takes_recv, stride = OPS[op].is_read, OPS[op].takes_recv, (size + GUARD_BYTES + 7) // 8 * 8
        source, result = (responder, requester) if is_read else (requester, responder)
        source_at, result_at = (self.half, 0) if is_read else (0, self.half)
        source.ask('fill at=%d len=%d seed=%d n=%d stride=%d' % (source_at, size, self.serial, count, stride))
        result.ask('zero at=%d len=%d' % (result_at, count * stride))
        if takes_recv:
            result.ask('recv at=%d len=%d n=%d stride=%d' % (self.half, size, count, stride))
            self.recvs += count
        self.sends += count
        requester.ask('send op=%s at=0 len=%d n=%d stride=%d window=%d ms=%d %s' % (op, size, count, stride, window, ms, self.target()), seconds=ms / 1000 + 20)
        self.finish(requester, self.sends, 0, op, ms)
        if takes_recv:
            self.finish(responder, 0, self.recvs, 'the receive of ' + op, ms)
        result.ask('check at=%d len=%d seed=%d n=%d stride=%d' % (result_at, size, self.serial, count, stride))
        result.ask('untouched at=%d len=%d n=%d stride=%d' % (result_at + size, stride - size, count, stride))

    def run_additions(self, count, window, ms):
        """Each addition gives back how many were before it: executed once and in order, or it shows."""
        requester, responder = self.ends
        responder.ask('word at=%d set=0' % self.half)
        self.sends += count
        for i in range(count):  # one by one: they all add to the same word
            requester.ask('send op=fadd at=%d len=8 window=%d ms=%d add=1 %s' % (8 * i, window, ms, self.target()), seconds=ms / 1000 + 20)
        self.finish(requester, self.sends, 0, 'fadd', ms)
        got = [a['word'] for a in requester.do(*('word at=%d' % (8 * i) for i in range(count)))]
        total = responder.ask('word at=%d' % self.half)['word']
        if got != list(range(count)) or total != count:
            raise PeerError('fadd: %d additions of 1 made %d, and gave %s' % (count, total, got))


def find_header_error(header, source, destination, size, has_imm):
    """What of the 40 bytes before a datagram is not what the wire had; '' nothing. source, destination: GIDs."""
    source, destination = ipaddress.ip_address(source), ipaddress.ip_address(destination)
    udp = UDP_BYTES + BTH_BYTES + DETH_BYTES + IMM_BYTES * has_imm + (size + 3) // 4 * 4 + ICRC_BYTES
    if source.ipv4_mapped:
        seen = header[:20], header[20], struct.unpack('>H', header[22:24])[0], header[29], header[32:36], header[36:40]
        right = bytes(20), 0x45, 20 + udp, 17, source.ipv4_mapped.packed, destination.ipv4_mapped.packed
    else:
        seen = header[0] >> 4, struct.unpack('>H', header[4:6])[0], header[6], header[8:24], header[24:40]
        right = 6, udp, 17, source.packed, destination.packed
    return '' if seen == right else '%r, expected %r' % (seen, right)
