# SPDX-License-Identifier: BSD-3-Clause
"""A connection between two ends, and one operation on it with everything looked at: completions, data, the bytes behind, immediate data, results of atomics."""
from lab import PeerError

GUARD_BYTES = 64
OPS = ('send', 'send_imm', 'write', 'write_imm', 'read', 'cas', 'fadd')
ATOMICS = ('cas', 'fadd')
TAKES_RECV = ('send', 'send_imm', 'write_imm')
MASK64 = (1 << 64) - 1


class Pair:
    """Two ends joined by a QP each. requester and responder are what they are in run()."""

    def __init__(self, requester, responder, gids, mtu, first_psn=0x1000, message_bytes=1 << 16, depth=64, requester_keys='', responder_keys='', responder_qp=''):
        self.ends = (requester, responder)
        self.mtu, self.psns = mtu, (first_psn, (first_psn + 0x800000) % (1 << 24))
        self.half = (message_bytes + 2 * GUARD_BYTES + 4095) // 4096 * 4096
        self.cards, self.recvs, self.sends, self.serial = [], 0, 0, 0
        for end, gid, keys in zip(self.ends, gids, ('', responder_qp)):
            self.cards.append(end.ask('qp gid=%d bytes=%d depth=%d %s' % (gid, 2 * self.half, depth, keys)))
        for end, own, other, own_psn, other_psn, keys in ((requester, 0, 1, *self.psns, requester_keys), (responder, 1, 0, *reversed(self.psns), responder_keys)):
            end.ask('connect qpn=%d psn=%d own_psn=%d gid=%s mtu=%d %s' % (self.cards[other]['qpn'], other_psn, own_psn, self.cards[other]['gid'], mtu, keys))

    def target(self, to=0):
        """Where the responder's second half is, as words of a command."""
        return 'addr=%d rkey=%d' % (self.cards[1]['addr'] + self.half + to, self.cards[1]['rkey'])

    def close(self):
        for end in self.ends:
            try:
                end.ask('destroy')
            except PeerError:
                pass

    def finish(self, end, sends, recvs, what, ms=20000):
        """Waits for that many completions of an end, all good."""
        answer = end.ask('wait sends=%d recvs=%d ms=%d' % (sends, recvs, ms), seconds=ms / 1000 + 20)
        if answer['bad']:
            why = end.ask('why')['text']
            raise PeerError('%s: %s of %s ended with %s%s' % (end.name, what, end.name, answer['first'], ': ' + why if why else ''))
        if answer['sends'] < sends or answer['recvs'] < recvs:
            raise PeerError('%s: %s: %d of %d sends and %d of %d receives completed in %d ms' % (end.name, what, answer['sends'], sends, answer['recvs'], recvs, ms))
        return answer

    def run(self, op, size):
        """One operation. Raises PeerError with what was wrong."""
        self.serial += 1
        (self.run_atomic if op in ATOMICS else self.run_message)(op, size)

    def run_message(self, op, size):
        requester, responder = self.ends
        is_read, has_imm, imm = op == 'read', op.endswith('_imm'), 0xc0de0000 + self.serial
        source, result = (responder, requester) if is_read else (requester, responder)
        source_at, result_at = (self.half, 0) if is_read else (0, self.half)
        source.ask('fill at=%d len=%d seed=%d' % (source_at, size, self.serial))
        prepare = ['zero at=%d len=%d' % (result_at, size + GUARD_BYTES)]
        if op in TAKES_RECV:
            prepare.append('recv at=%d len=%d' % (self.half, size if op != 'write_imm' else 0))
            self.recvs += 1
        result.do(*prepare)
        requester.ask('send op=%s at=0 len=%d imm=%d %s' % (op, size, imm, self.target()))
        self.sends += 1
        self.finish(requester, self.sends, 0, op)
        if op in TAKES_RECV:
            wc = self.finish(responder, 0, self.recvs, 'the receive of ' + op)
            if wc['len'] != size or wc.get('imm') != (imm if has_imm else None):
                raise PeerError('%s: the receive of %s says %d bytes, immediate %s' % (responder.name, op, wc['len'], wc.get('imm')))
        result.do('check at=%d len=%d seed=%d' % (result_at, size, self.serial), 'untouched at=%d len=%d' % (result_at + size, GUARD_BYTES))

    def run_atomic(self, op, size):
        """A compare-and-swap that is meant to fit, one that is not, or an addition that wraps."""
        requester, responder = self.ends
        at, before = self.half + 8, 0xfedcba9876543210 + self.serial
        compare = before if self.serial % 2 else before ^ 1
        swap, add = 0x0123456789abcdef + self.serial, 0x1111111111111111
        after = (before + add) & MASK64 if op == 'fadd' else swap if compare == before else before
        responder.do('zero at=%d len=24' % self.half, 'word at=%d set=%d' % (at, before))
        requester.do('zero at=0 len=16', 'send op=%s at=0 len=8 %s %s' % (op, self.target(8), 'add=%d' % add if op == 'fadd' else 'compare=%d swap=%d' % (compare, swap)))
        self.sends += 1
        self.finish(requester, self.sends, 0, op)
        old, new = requester.ask('word at=0')['word'], responder.ask('word at=%d' % at)['word']
        if old != before or new != after:
            raise PeerError('%s of 0x%x: the requester got 0x%x, the memory is 0x%x and should be 0x%x' % (op, before, old, new, after))
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
        is_read, stride = op == 'read', (size + GUARD_BYTES + 7) // 8 * 8
        source, result = (responder, requester) if is_read else (requester, responder)
        source_at, result_at = (self.half, 0) if is_read else (0, self.half)
        source.ask('fill at=%d len=%d seed=%d n=%d stride=%d' % (source_at, size, self.serial, count, stride))
        result.ask('zero at=%d len=%d' % (result_at, count * stride))
        if op in TAKES_RECV:
            result.ask('recv at=%d len=%d n=%d stride=%d' % (self.half, size, count, stride))
            self.recvs += count
        self.sends += count
        requester.ask('send op=%s at=0 len=%d n=%d stride=%d window=%d ms=%d %s' % (op, size, count, stride, window, ms, self.target()), seconds=ms / 1000 + 20)
        self.finish(requester, self.sends, 0, op, ms)
        if op in TAKES_RECV:
            self.finish(responder, 0, self.recvs, 'the receive of ' + op, ms)
        result.ask('check at=%d len=%d seed=%d n=%d stride=%d' % (result_at, size, self.serial, count, stride))
        result.do(*('untouched at=%d len=%d' % (result_at + i * stride + size, stride - size) for i in range(count)))

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
