# SPDX-License-Identifier: BSD-3-Clause
"""What each side says when the other does something wrong. Where rxe departs from the specification, its row says so; uroce follows the specification, and takes what rxe does."""
from lab import GUEST_IP4, HOST_IP4, PeerError, gid_index
from pair import Pair

SHORT = 'timeout=12 retry_cnt=3'


class Case:
    """requester_says, responder_says: status of the first completion that is no success ('' none), by which stack has that part: a string for both, or {'uroce': ..., 'rxe': ...}."""

    def __init__(self, name, act, requester_says, responder_says='', requester_keys='', responder_keys='', responder_qp=''):
        self.name, self.act = name, act
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
        pair.ends[1].ask('recv at=%d len=%d' % (pair.half, room))
        send('send', size)(pair)
    return act


def send_to_nobody(pair):
    pair.ends[1].ask('destroy')
    send('send')(pair)


def with_receive(op):
    """The receive is there: the request fails for another reason, and the receive is flushed."""
    def act(pair):
        pair.ends[1].ask('recv at=%d len=64' % pair.half)
        send(op, flip=0x100)(pair)
    return act


CASES = (
    Case('WRITE, unknown rkey', send('write', flip=0x100), 'REM_ACCESS_ERR'),
    Case('WRITE of several packets, unknown rkey', send('write', 5000, flip=0x100), 'REM_ACCESS_ERR'),
    # the specification takes the receive at the end of a message that is accepted, so it is flushed (IBA 9.9.3); rxe ends it with the error of the request
    Case('WRITE with immediate, unknown rkey, while a receive waits', with_receive('write_imm'), 'REM_ACCESS_ERR', {'uroce': 'WR_FLUSH_ERR', 'rxe': 'REM_ACCESS_ERR'}),
    Case('READ, unknown rkey', send('read', flip=0x100), 'REM_ACCESS_ERR'),
    Case('compare-and-swap, unknown rkey', send('cas', 8, flip=0x100), 'REM_ACCESS_ERR'),
    Case('fetch-and-add, unknown rkey', send('fadd', 8, flip=0x100), 'REM_ACCESS_ERR'),
    Case('WRITE, rkey of another PD', send('write', key='foreign'), 'REM_ACCESS_ERR'),
    Case('READ, rkey of another PD', send('read', key='foreign'), 'REM_ACCESS_ERR'),
    Case('fetch-and-add, rkey of another PD', send('fadd', 8, key='foreign'), 'REM_ACCESS_ERR'),
    Case('WRITE beyond the region', send('write', to=1 << 30), 'REM_ACCESS_ERR'),
    Case('READ beyond the region', send('read', to=1 << 30), 'REM_ACCESS_ERR'),
    Case('WRITE, region without the right', send('write'), 'REM_ACCESS_ERR', responder_qp='rights=5'),
    Case('READ, region without the right', send('read'), 'REM_ACCESS_ERR', responder_qp='rights=3'),
    Case('fetch-and-add, region without the right', send('fadd', 8), 'REM_ACCESS_ERR', responder_qp='rights=7'),
    Case('WRITE, not enabled on the QP', send('write'), 'REM_INV_REQ_ERR', responder_qp='access=5'),
    Case('READ, not enabled on the QP', send('read'), 'REM_INV_REQ_ERR', responder_qp='access=3'),
    Case('fetch-and-add, not enabled on the QP', send('fadd', 8), 'REM_INV_REQ_ERR', responder_qp='access=7'),
    # the specification: NAK invalid request (IBA 9.9.3); rxe answers NAK remote operational error, and calls the end of its own receive a QP operation error
    Case('SEND longer than the receive', send_to_short_receive(100, 50), {'rxe': 'REM_INV_REQ_ERR', 'uroce': 'REM_OP_ERR'}, {'uroce': 'LOC_LEN_ERR', 'rxe': 'LOC_QP_OP_ERR'}),
    Case('SEND of several packets longer than the receive', send_to_short_receive(5000, 2000), {'rxe': 'REM_INV_REQ_ERR', 'uroce': 'REM_OP_ERR'},
         {'uroce': 'LOC_LEN_ERR', 'rxe': 'LOC_QP_OP_ERR'}),
    Case('RNR retries used up', send('send'), 'RNR_RETRY_EXC_ERR', requester_keys='rnr_retry=2', responder_keys='min_rnr=12'),
    Case('retries used up: the peer\'s QP is gone', send_to_nobody, 'RETRY_EXC_ERR', requester_keys=SHORT),
)


def says(expected, stack):
    value = expected[stack] if isinstance(expected, dict) else expected
    return value or 'SUCCESS'


def run(host, guest, case, requester_is_uroce):
    """One line on what both said. Raises PeerError when it is something else than expected."""
    ends = (host, guest) if requester_is_uroce else (guest, host)
    gids = (gid_index(host, HOST_IP4), gid_index(guest, GUEST_IP4))
    pair = Pair(*ends, gids if requester_is_uroce else gids[::-1], 1024, requester_keys=case.requester_keys, responder_keys=case.responder_keys, responder_qp=case.responder_qp)
    try:
        case.act(pair)
        told = ends[0].ask('wait sends=1 ms=8000')
        if told['first'] != says(case.requester_says, ends[0].name):
            raise PeerError('%s as requester says %s, expected %s' % (ends[0].name, told['first'], says(case.requester_says, ends[0].name)))
        if ends[0].ask('state')['state'] != 'ERR':
            raise PeerError('%s as requester is not in ERR' % ends[0].name)
        line = '%s: %s' % (ends[0].name, told['first'])
        if case.responder_says:
            heard = ends[1].ask('wait recvs=1 ms=3000')
            if heard['first'] != says(case.responder_says, ends[1].name):
                raise PeerError('%s as responder says %s, expected %s' % (ends[1].name, heard['first'], says(case.responder_says, ends[1].name)))
            line += ', %s: %s' % (ends[1].name, heard['first'])
        return line
    finally:
        pair.close()
