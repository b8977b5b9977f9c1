# SPDX-License-Identifier: BSD-3-Clause
"""UD multicast beside the matrix: what is sent to a group that the receiver has left, or never was in, does not arrive, and what is sent to its own does."""
from lab import GUEST_IP4, GUEST_IP6, HOST_IP4, HOST_IP6, PeerError, gid_index
from pair import UD_MULTICAST, Pair

ADDRESSES = {'IPv4': (HOST_IP4, GUEST_IP4), 'IPv6': (HOST_IP6, GUEST_IP6)}
OTHER = {'IPv4': '::ffff:239.1.2.4', 'IPv6': 'ff0e::1:2:4'}
SILENT_MS = 500


def expect_nothing(pair, why):
    requester, responder = pair.ends
    pair.sends += 1
    requester.do('send op=send at=0 len=64', 'wait sends=%d' % pair.sends)
    if responder.ask('wait recvs=%d ms=%d' % (pair.recvs + 1, SILENT_MS))['recvs'] > pair.recvs:
        raise PeerError('%s: a datagram arrived %s' % (responder.name, why))


def run(host, guest, family, requester_is_uroce):
    ends = (host, guest) if requester_is_uroce else (guest, host)
    gids = [gid_index(end, address) for end, address in zip((host, guest), ADDRESSES[family])]
    pair = Pair(*ends, gids if requester_is_uroce else gids[::-1], 1024, service=UD_MULTICAST)
    try:
        own, other, responder = pair.group, OTHER[family], ends[1]
        responder.do('join gid=%s' % other, 'leave gid=%s' % other, 'recv at=%d len=104' % pair.half)
        pair.waiting = 1
        pair.aim_at_group(other)
        expect_nothing(pair, 'to a group that it has left')
        pair.aim_at_group(own)
        pair.run('send', 64)
        responder.do('leave gid=%s' % own, 'recv at=%d len=104' % pair.half)
        expect_nothing(pair, 'to the group that it was in')
        pair.check_states()
    finally:
        pair.close()
