# SPDX-License-Identifier: BSD-3-Clause
"""What each side says when the other does something wrong. Where rxe departs from the specification, its row says so; uroce follows the specification, and takes what rxe does."""
from lab import GUEST_IP4, HOST_IP4, PeerError, gid_index
from pair import QKEYS, RC, RC_SRQ, UC, UC_SRQ, UD, UD_SRQ, Pair

SHORT = 'timeout=12 retry_cnt=3'
REFUSED = 'refused'


class Case:
    """requester_says, responder_says: status of the first completion that is no success ('' none, REFUSED: it could not be posted), by which stack has that part: a string for both, or {'uroce': ..., 'rxe': ...}.
    Where a part says nothing its QP is in RTS afterwards, and the next message arrives."""

    def __init__(self, service, name, act, requester_says='', responder_says='', requester_keys='', responder_keys='', responder_qp=''):
        self.name, self.act, self.service = '%s: %s' % (service.name, name), act, service
        self.requester_says, self.responder_says = requester_says, responder_says
        self.requester_keys, self.responder_keys, self.responder_qp = requester_keys, responder_keys, responder_qp


def send(op, size=64, key='rkey', flip=0, to=0):
    """One request with a key of the responder's, some bits of it flipped."""
    def act(pair):
        card = pair.cards[1]
        pair.ends[0].ask('send op=%s at=0 len=%d addr=%d rkey=%d' % (op, size, card['addr'] + pair.half + to, card[key] ^ flip))
    return act


def send_to_short_receive(size, room):
    def act(pair):
        pair.ends[1].ask('recv at=%d len=%d' % (pair.half, pair.service.header_bytes + room))
        send('send', size)(pair)
    return act


def send_with_wrong_qkey(pair):
    requester, card = pair.ends[0], pair.cards[1]
    aim = 'aim gid=%s qpn=%d qkey=%%d' % (card['gid'], card['qpn'])
    pair.ends[1].ask('recv at=%d len=104' % pair.half)
    requester.do(aim % (QKEYS[1] ^ 1), 'send op=send at=0 len=64', 'wait sends=1', aim % QKEYS[1])


def write_by_window(pair, key):
    return 'send op=write at=0 len=64 addr=%d rkey=%d' % (pair.cards[1]['addr'] + pair.half, key)


def write_after_invalidate(pair):
    """The window takes a WRITE, the peer invalidates it, and it takes none any more."""
    requester, responder = pair.ends
    key = responder.do('bind at=%d len=64' % pair.half, 'recv at=%d len=64' % pair.half)[0]['rkey']
    requester.do(write_by_window(pair, key), 'send op=send_inv at=0 len=8 rkey=%d' % key)
    pair.finish(requester, 2, 0, 'WRITE by a window and SEND with invalidate')
    pair.finish(responder, 0, 1, 'the receive of SEND with invalidate')
    requester.ask(write_by_window(pair, key))


def write_after_rebind(pair):
    """A window of type 1 that is bound again: the new key takes a WRITE, the old one none any more."""
    requester, responder = pair.ends
    old, new = (responder.ask('bind at=%d len=64 type=1' % pair.half)['rkey'] for _ in range(2))
    requester.ask(write_by_window(pair, new))
    pair.finish(requester, 1, 0, 'WRITE by a window')
    requester.ask(write_by_window(pair, old))


def send_to_nobody(pair):
    pair.ends[1].ask('destroy')
    send('send')(pair)


def with_receive(op):
    """The receive is there: the request fails for another reason, and the receive is flushed."""
    def act(pair):
        pair.ends[1].ask('recv at=%d len=64' % pair.half)
        send(op, flip=0x100)(pair)
    return act


# the specification: NAK invalid request (IBA 9.9.3); rxe answers NAK remote operational error, and calls the end of its own receive a QP operation error
TOO_LONG_RC = {'rxe': 'REM_INV_REQ_ERR', 'uroce': 'REM_OP_ERR'}
# the specification: an unreliable message that does not fit is dropped (IBA 9.9.3, class D); rxe ends its QP, as for RC
TOO_LONG_UC = {'uroce': '', 'rxe': 'LOC_QP_OP_ERR'}

CASES = (
    Case(RC, 'WRITE, unknown rkey', send('write', flip=0x100), 'REM_ACCESS_ERR'),
    Case(RC, 'WRITE of several packets, unknown rkey', send('write', 5000, flip=0x100), 'REM_ACCESS_ERR'),
    Case(RC, 'WRITE by a window that was invalidated', write_after_invalidate, 'REM_ACCESS_ERR'),
    Case(RC, 'WRITE by the old key of a window that was bound anew', write_after_rebind, 'REM_ACCESS_ERR'),
    # the specification takes the receive at the end of a message that is accepted, so it is flushed (IBA 9.9.3); rxe ends it with the error of the request
    Case(RC, 'WRITE with immediate, unknown rkey, while a receive waits', with_receive('write_imm'), 'REM_ACCESS_ERR', {'uroce': 'WR_FLUSH_ERR', 'rxe': 'REM_ACCESS_ERR'}),
    Case(RC, 'READ, unknown rkey', send('read', flip=0x100), 'REM_ACCESS_ERR'),
    Case(RC, 'compare-and-swap, unknown rkey', send('cas', 8, flip=0x100), 'REM_ACCESS_ERR'),
    Case(RC, 'fetch-and-add, unknown rkey', send('fadd', 8, flip=0x100), 'REM_ACCESS_ERR'),
    Case(RC, 'WRITE, rkey of another PD', send('write', key='foreign'), 'REM_ACCESS_ERR'),
    Case(RC, 'READ, rkey of another PD', send('read', key='foreign'), 'REM_ACCESS_ERR'),
    Case(RC, 'fetch-and-add, rkey of another PD', send('fadd', 8, key='foreign'), 'REM_ACCESS_ERR'),
    Case(RC, 'WRITE beyond the region', send('write', to=1 << 30), 'REM_ACCESS_ERR'),
    Case(RC, 'READ beyond the region', send('read', to=1 << 30), 'REM_ACCESS_ERR'),
    Case(RC, 'WRITE, region without the right', send('write'), 'REM_ACCESS_ERR', responder_qp='rights=5'),
    Case(RC, 'READ, region without the right', send('read'), 'REM_ACCESS_ERR', responder_qp='rights=3'),
    Case(RC, 'fetch-and-add, region without the right', send('fadd', 8), 'REM_ACCESS_ERR', responder_qp='rights=7'),
    Case(RC, 'WRITE, not enabled on the QP', send('write'), 'REM_INV_REQ_ERR', responder_qp='access=5'),
    Case(RC, 'READ, not enabled on the QP', send('read'), 'REM_INV_REQ_ERR', responder_qp='access=3'),
    Case(RC, 'fetch-and-add, not enabled on the QP', send('fadd', 8), 'REM_INV_REQ_ERR', responder_qp='access=7'),
    Case(RC, 'SEND longer than the receive', send_to_short_receive(100, 50), TOO_LONG_RC, {'uroce': 'LOC_LEN_ERR', 'rxe': 'LOC_QP_OP_ERR'}),
    Case(RC, 'SEND of several packets longer than the receive', send_to_short_receive(5000, 2000), TOO_LONG_RC, {'uroce': 'LOC_LEN_ERR', 'rxe': 'LOC_QP_OP_ERR'}),
    Case(RC, 'RNR retries used up', send('send'), 'RNR_RETRY_EXC_ERR', requester_keys='rnr_retry=2', responder_keys='min_rnr=12'),
    Case(RC, 'retries used up: the peer\'s QP is gone', send_to_nobody, 'RETRY_EXC_ERR', requester_keys=SHORT),
    Case(RC_SRQ, 'SEND longer than the receive', send_to_short_receive(100, 50), TOO_LONG_RC, {'uroce': 'LOC_LEN_ERR', 'rxe': 'LOC_QP_OP_ERR'}),
    Case(RC_SRQ, 'RNR retries used up: nothing in the SRQ', send('send'), 'RNR_RETRY_EXC_ERR', requester_keys='rnr_retry=2', responder_keys='min_rnr=12'),
    Case(RC_SRQ, 'WRITE, unknown rkey', send('write', flip=0x100), 'REM_ACCESS_ERR'),
    Case(UC, 'WRITE, unknown rkey', send('write', flip=0x100)),
    Case(UC, 'WRITE of several packets, unknown rkey', send('write', 5000, flip=0x100)),
    Case(UC, 'WRITE with immediate, unknown rkey, while a receive waits', with_receive('write_imm')),
    Case(UC, 'WRITE, rkey of another PD', send('write', key='foreign')),
    Case(UC, 'WRITE beyond the region', send('write', to=1 << 30)),
    Case(UC, 'WRITE, region without the right', send('write'), responder_qp='rights=5'),
    Case(UC, 'WRITE, not enabled on the QP', send('write'), responder_qp='access=5'),
    Case(UC, 'SEND longer than the receive', send_to_short_receive(100, 50), '', TOO_LONG_UC),
    Case(UC, 'SEND of several packets longer than the receive', send_to_short_receive(5000, 2000), '', TOO_LONG_UC),
    Case(UC, 'SEND without a receive', send('send')),
    Case(UC, 'READ', send('read'), {'uroce': REFUSED, 'rxe': 'LOC_QP_OP_ERR'}),
    Case(UC_SRQ, 'SEND longer than the receive', send_to_short_receive(100, 50), '', TOO_LONG_UC),
    Case(UC_SRQ, 'SEND, nothing in the SRQ', send('send')),
    Case(UD, 'wrong Q_Key', send_with_wrong_qkey),
    Case(UD, 'SEND longer than the receive', send_to_short_receive(100, 50), '', TOO_LONG_UC),
    Case(UD, 'SEND longer than the port carries', send('send', 5000), {'uroce': REFUSED, 'rxe': ''}),
    Case(UD, 'SEND without a receive', send('send')),
    Case(UD, 'WRITE', send('write'), {'uroce': REFUSED, 'rxe': 'LOC_QP_OP_ERR'}),
    Case(UD_SRQ, 'SEND longer than the receive', send_to_short_receive(100, 50), '', TOO_LONG_UC),
    Case(UD_SRQ, 'SEND, nothing in the SRQ', send('send')),
)

# Of a peer that has ATOMIC WRITE, and of one that has not, or no FLUSH: rxe drops what is in none of its tables (IBA 9.7.4.1.3 would have it answer NAK invalid request), and every FLUSH (see matrix.find_lack).
ATOMIC_WRITE_CASES = (
    Case(RC, 'ATOMIC WRITE, unknown rkey', send('atomic_write', 8, flip=0x100), 'REM_ACCESS_ERR'),
    Case(RC, 'ATOMIC WRITE, rkey of another PD', send('atomic_write', 8, key='foreign'), 'REM_ACCESS_ERR'),
    Case(RC, 'ATOMIC WRITE, region without the right', send('atomic_write', 8), 'REM_ACCESS_ERR', responder_qp='rights=5'),
    Case(RC, 'ATOMIC WRITE, not enabled on the QP', send('atomic_write', 8), 'REM_INV_REQ_ERR', responder_qp='access=5'),
)
NO_ATOMIC_WRITE_CASES = (Case(RC, 'ATOMIC WRITE, which the peer does not know', send('atomic_write', 8), 'RETRY_EXC_ERR', requester_keys=SHORT),)
NO_FLUSH_CASES = (Case(RC, 'FLUSH, which the peer drops', send('flush'), 'RETRY_EXC_ERR', requester_keys=SHORT),)


def newest_cases(has_atomic_write):
    return (ATOMIC_WRITE_CASES if has_atomic_write else NO_ATOMIC_WRITE_CASES) + NO_FLUSH_CASES


def says(expected, stack):
    return expected[stack] if isinstance(expected, dict) else expected


def check_said(end, what, said, expected):
    """The line for what was said."""
    if said != expected:
        raise PeerError('%s as %s says %s, expected %s' % (end.name, what, said or 'nothing', expected or 'nothing'))
    return '%s: %s' % (end.name, said or 'nothing')


def act_and_hear(case, pair):
    try:
        case.act(pair)
    except PeerError as e:
        if 'Invalid argument' not in str(e):
            raise
        return REFUSED
    told = pair.ends[0].ask('wait sends=%d ms=8000' % pair.ends[0].ask('wait')['posted'])
    return '' if told['first'] == 'SUCCESS' and told['sends'] else told['first']


def send_another(pair):
    """The QPs are in RTS, and a message arrives, whatever became of the one before it."""
    pair.check_states()
    requester, responder = pair.ends
    before = responder.ask('wait recvs=1 ms=100')['recvs']
    responder.ask('recv at=%d len=64' % pair.half)
    requester.ask('send op=send_imm at=0 len=8 imm=0x5eed')
    answer = responder.ask('wait recvs=%d ms=3000' % (before + 1))
    if before or answer['recvs'] != 1 or answer['bad'] or answer.get('imm') != 0x5eed or answer['len'] != pair.service.header_bytes + 8:
        raise PeerError('the message after it did not arrive: %d receives before it; %s' % (before, answer['text']))
    pair.check_states()


def run(host, guest, case, requester_is_uroce):
    """One line on what both said. Raises PeerError when it is something else than expected."""
    ends = (host, guest) if requester_is_uroce else (guest, host)
    gids = (gid_index(host, HOST_IP4), gid_index(guest, GUEST_IP4))
    expected = [says(text, end.name) for text, end in zip((case.requester_says, case.responder_says), ends)]
    pair = Pair(*ends, gids if requester_is_uroce else gids[::-1], 1024, requester_keys=case.requester_keys, responder_keys=case.responder_keys, responder_qp=case.responder_qp, service=case.service)
    try:
        line = check_said(ends[0], 'requester', act_and_hear(case, pair), expected[0])
        if case.service.is_reliable and ends[0].ask('state')['state'] != 'ERR':
            raise PeerError('%s as requester is not in ERR' % ends[0].name)
        if expected[1]:
            line += ', ' + check_said(ends[1], 'responder', ends[1].ask('wait recvs=1 ms=3000')['first'], expected[1])
        elif expected[0] in ('', REFUSED) and case.act is not send_to_nobody:
            send_another(pair)
            line += ', %s: nothing, and the next message arrives' % ends[1].name
        return line
    finally:
        pair.close()
